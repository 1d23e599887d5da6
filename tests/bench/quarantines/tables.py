"""The report as a table for ``docs/internals/quarantine-benchmark.md``. Pure: figures in, Markdown out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

TITLES = {
    "write-and-fsync": "writes and syncs slow",
    "fsync-only": "syncs alone slow",
    "further-loss": "another broker killed",
}
HEAD = ("play", "phase", "seconds", "p50", "p99", "unavailable, mean", "unavailable, worst")


def markdown(report: Mapping[str, Any]) -> str:
    """A row a phase."""
    lines = [HEAD, ("---",) * len(HEAD), *_rows(report["plays"])]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _rows(plays: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, play in plays.items():
        for number, phase in enumerate(play["phases"]):
            yield (
                TITLES.get(name, name) if number == 0 else "",
                phase["phase"],
                f"{phase['seconds']:.0f}",
                _milliseconds(phase["p50_ms"]),
                _milliseconds(phase["p99_ms"]),
                f"{phase['unavailable_seconds_mean']:.1f} s",
                f"{phase['unavailable_seconds_max']:.1f} s",
            )


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f} ms" if value >= 10 else f"{value:.1f} ms"
