"""Charts: a bar in a row of a table; what its marks mean is above the table."""

from __future__ import annotations

from bellwether_load.page.markup import Markup, tag


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


_MEANINGS = {"bound": "bound: no plan has a lower maximum", "shut": "closed: must not lead, and does not count"}


def keys(*kinds: str) -> Markup:
    """What marks mean."""
    names = (kind.split("-")[0] for kind in kinds)
    marks = (tag("span", _sample(kind), _MEANINGS.get(name, name)) for kind, name in zip(kinds, names, strict=True))
    return tag("div", *marks, class_="keys")


def _sample(kind: str) -> Markup:
    if kind in ("after-bar", "shut"):
        shape = tag("rect", x=2, y=2, width=20, height=10, class_=kind)
    else:
        shape = tag("line", x1=12, y1=0, x2=12, y2=14, class_=kind)
    return tag("svg", shape, width=24, height=14, viewBox="0 0 24 14", aria_hidden="true")
