"""The parts that every chart is made of: a frame with its scale, gridlines with labels, and what the marks mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bellwether_load.page.figures import Unit, ticks
from bellwether_load.page.markup import Child, Markup, join, tag

WIDTH = 1000
NARROW = 360
"""Width of the same chart on a phone, where the wide one would be cut or its labels too small."""


PROVING = "\N{BLACK DIAMOND} "
"""Marks a broker that proves the bound."""


@dataclass(frozen=True)
class Scale:
    """From a figure to a place: ``start`` is the position of 0, ``end`` that of the last tick."""

    marks: tuple[float, ...]
    start: float
    end: float

    @classmethod
    def of(cls, largest: float, unit: Unit, start: float, end: float, most: int = 6) -> Scale:
        """A scale that ends at a round figure of the unit, at or above the largest."""
        return cls(tuple(t * unit.size for t in ticks(largest / unit.size, most)), start, end)

    def __call__(self, value: float) -> float:
        """The place of a figure."""
        return round(self.start + (self.end - self.start) * value / self.marks[-1], 1)


def for_both_widths(draw: Callable[[int], Markup]) -> Markup:
    """A chart drawn for wide and for narrow screens; the style shows one of them."""
    return join(tag("div", draw(WIDTH), class_="for-wide"), tag("div", draw(NARROW), class_="for-narrow"))


def drawing(width: int, height: int, title: str, description: str, *parts: Child) -> Markup:
    """An SVG image that says what it shows to those who cannot see it; where it is too wide, it is scrolled."""
    image = tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        *parts,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        class_="wide" if width == WIDTH else None,
    )
    return tag("div", image, class_="scroll") if width == WIDTH else image


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def words(x: float, y: float, said: str, class_: str = "") -> Markup:
    """A label; ``y`` is its base line."""
    return tag("text", said, x=x, y=y, class_=class_ or None)


def short(name: str, most: int = 16) -> str:
    """A name that fits next to a chart: where it is cut it keeps its end, in which names of racks differ."""
    return name if len(name) <= most else f"…{name[1 - most :]}"


def across(scale: Scale, unit: Unit, top: float, bottom: float, label: str) -> Markup:
    """Gridlines for a scale from left to right, their figures below, and what is measured."""
    parts: list[Child] = []
    for value in scale.marks:
        x = scale(value)
        parts += [line(x, top, x, bottom, "grid"), words(x, bottom + 16, unit.mark(value), "soft middle")]
    parts.append(words((scale.start + scale.end) / 2, bottom + 34, label, "soft middle"))
    return join(*parts)


def up(scale: Scale, unit: Unit, left: float, right: float, label: str) -> Markup:
    """Gridlines for a scale from the bottom up, their figures at the left, and what is measured above them."""
    parts: list[Child] = []
    for value in scale.marks:
        y = scale(value)
        parts += [line(left, y, right, y, "grid"), words(left - 8, y + 4, unit.mark(value), "soft end")]
    parts.append(words(0, scale.end - 14, label, "soft"))
    return join(*parts)


def keys(*marks: tuple[str, str]) -> Markup:
    """What the marks mean: each a kind of mark and its meaning."""
    return tag("div", *(tag("span", _sample(kind), meaning) for kind, meaning in marks), class_="keys")


def _sample(kind: str) -> Markup:
    shapes: dict[str, Markup] = {
        "before-dot": tag("circle", cx=12, cy=7, r=4.5, class_="before-dot"),
        "after-dot": tag("circle", cx=12, cy=7, r=4.5, class_="after-dot"),
        "after-bar": tag("rect", x=2, y=2, width=20, height=10, class_="after-bar"),
        "shut": tag("rect", x=2, y=2, width=20, height=10, class_="shut"),
        "proving": words(6, 12, PROVING.strip()),
        "bound": line(0, 7, 24, 7, "bound"),
        "before-line": line(0, 7, 24, 7, "before-line"),
        "after-line": line(0, 7, 24, 7, "after-line"),
        **{f"{when}-range": _range(when) for when in ("before", "after")},
    }
    return tag("svg", shapes[kind], width=24, height=14, viewBox="0 0 24 14", aria_hidden="true")


def _range(when: str) -> Markup:
    box = tag("rect", x=5, y=2, width=14, height=10, class_=f"{when}-range")
    return join(line(0, 7, 24, 7, "whisker"), box, line(12, 1, 12, 13, f"{when}-median"))
