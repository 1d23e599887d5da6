"""Charts: a bar in a row of a table, and lines over a scale; what the marks mean is above them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bellwether_load.page.figures import Unit, ticks
from bellwether_load.page.markup import Child, Markup, join, tag

WIDTH = 1000
NARROW = 360
"""Width of the same chart on a phone, where the labels of the wide one would be too small."""

_TOP, _HEIGHT, _BOTTOM = 34, 250, 44


class Line(NamedTuple):
    """A line of a chart: ``before``, ``after`` or ``bound``, and its points, x from 0 to 1."""

    kind: str
    points: Sequence[tuple[float, float]]


def bar(before: float, after: float, bound: float, most: float, *, counts: bool = True) -> Markup:
    """A load after as a bar, the load before and the bound as marks, on a scale that ends at ``most``."""

    def at(value: float) -> str:
        return f"{round(99 * value / most, 2) if most else 0}%"

    return tag(
        "svg",
        tag("rect", x=0, y=4, width=at(after), height=10, class_="after-bar" if counts else "shut"),
        tag("line", x1=at(before), y1=1, x2=at(before), y2=17, class_="before-mark"),
        tag("line", x1=at(bound), y1=0, x2=at(bound), y2=18, class_="bound"),
        width="100%",
        height=18,
        class_="bar",
        aria_hidden="true",
    )


def lines(
    title: str, label: str, unit: Unit, drawn: Sequence[Line], marks: Sequence[tuple[float, str]], note: str = ""
) -> Markup:
    """Lines over one scale from 0, for wide and narrow screens. ``marks``: texts below the axis."""

    def draw(width: int) -> Markup:
        left, right = 60, width - 16
        scale = [t * unit.size for t in ticks(max(y for one in drawn for _, y in one.points) / unit.size)]

        def x(share: float) -> float:
            return round(left + (right - left) * share, 1)

        def y(value: float) -> float:
            return round(_TOP + _HEIGHT * (1 - value / scale[-1]), 1)

        parts: list[Child] = [tag("text", label, x=0, y=14, class_="soft")]
        for value in scale:
            parts.append(tag("line", x1=left, y1=y(value), x2=right, y2=y(value), class_="grid"))
            parts.append(tag("text", f"{value / unit.size:,.10g}", x=left - 8, y=y(value) + 4, class_="soft end"))
        for share, text in marks:
            kind = "soft" if share == 0 else "soft end" if share == 1 else "soft middle"
            parts.append(tag("text", text, x=x(share), y=_TOP + _HEIGHT + 18, class_=kind))
        parts.append(tag("text", note, x=x(0.5), y=_TOP + _HEIGHT + 36, class_="soft middle") if note else None)
        for kind, points in drawn:
            places = [(x(share), y(value)) for share, value in points]
            # Of points at one height the first and the last are enough.
            kept = [p for i, p in enumerate(places) if i in (0, len(places) - 1) or p[1] != places[i - 1][1]]
            parts.append(tag("polyline", points=" ".join(f"{a},{b}" for a, b in kept), class_=f"{kind}-line"))
            if kind != "bound" and len(places) <= 60:
                parts += [tag("circle", cx=a, cy=b, r=3, class_=f"{kind}-dot") for a, b in places]
        height = _TOP + _HEIGHT + _BOTTOM
        described = tag("desc", f"{label}: " + ", ".join(one.kind for one in drawn))
        box: dict[str, Child] = {"viewBox": f"0 0 {width} {height}", "width": width, "height": height, "role": "img"}
        return tag("svg", tag("title", title), described, *parts, **box)

    widths = tag("div", draw(WIDTH), class_="for-wide"), tag("div", draw(NARROW), class_="for-narrow")
    return join(keys("before-line", "after-line", "bound-line"), *widths)


_MEANINGS = {"bound": "bound: no plan has a lower maximum", "shut": "closed: must not lead, and does not count"}


def keys(*kinds: str) -> Markup:
    """What marks mean."""
    names = (kind.split("-")[0] for kind in kinds)
    marks = (tag("span", _sample(kind), _MEANINGS.get(name, name)) for kind, name in zip(kinds, names, strict=True))
    return tag("div", *marks, class_="keys")


def _sample(kind: str) -> Markup:
    if kind in ("after-bar", "shut"):
        shape = tag("rect", x=2, y=2, width=20, height=10, class_=kind)
    elif kind in ("before-mark", "bound"):
        shape = tag("line", x1=12, y1=0, x2=12, y2=14, class_=kind)
    else:
        shape = tag("line", x1=0, y1=7, x2=24, y2=7, class_=kind)
    return tag("svg", shape, width=24, height=14, viewBox="0 0 24 14", aria_hidden="true")
