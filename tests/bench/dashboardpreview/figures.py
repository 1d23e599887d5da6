"""Values, colours and mappings as a dashboard's JSON asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

COLORS = {
    "green": "#73bf69",
    "blue": "#5794f2",
    "yellow": "#f2cc0c",
    "orange": "#ff9830",
    "red": "#f2495c",
    "purple": "#b877d9",
    "text": "#a0a0ac",
}
LINES = ("#73bf69", "#f2cc0c", "#8ab8ff", "#ff9830", "#f2495c", "#5794f2", "#b877d9", "#37872d", "#fade2a", "#c0d8ff")

_TIMES = ((86400.0, "days"), (3600.0, "hours"), (60.0, "mins"), (1.0, "s"), (1e-3, "ms"), (0.0, "µs"))


def formatted(value: float, unit: str, decimals: int | None = None) -> str:
    """A value with its unit; without ``decimals`` with three figures."""

    def digits(number: float) -> str:
        return f"{number:.3g}" if decimals is None and abs(number) < 1000 else f"{number:.{decimals or 0}f}"

    if unit == "percentunit":
        return f"{digits(value * 100)}%"
    if unit == "s":
        size, name = next(((size, name) for size, name in _TIMES if abs(value) >= size), _TIMES[3])
        return f"{digits(value / (size or 1e-6))} {name}" if value else "0 s"
    return f"{digits(value)}{' req/s' if unit == 'reqps' else ''}"


def threshold_color(value: float, steps: Iterable[Mapping[str, Any]]) -> str:
    """The colour of the last step at or below the value."""
    return COLORS[[s["color"] for s in steps if s["value"] is None or s["value"] <= value][-1]]


def mapped(value: str, mappings: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """What a value is shown as, and its colour; the value itself where nothing maps it."""
    found = next((m["options"][value] for m in mappings if value in m["options"]), {"text": value})
    return str(found["text"]), COLORS.get(str(found.get("color", "")), "")
