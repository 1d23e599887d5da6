"""Figures as people read them: bytes per second in a unit that suits a whole chart, shares, and the ticks of axes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_STEPS = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of bytes per second, powers of ten, and how many digits after the point its figures are given with."""

    size: float
    name: str
    digits: int = 2

    @classmethod
    def of(cls, largest: float) -> Unit:
        """The unit in which the largest of some figures is 1 or more, with three to four digits for it."""
        size, name = next(((size, name) for size, name in _STEPS if largest >= size), _STEPS[-1])
        return cls(size, name, 0 if largest < 1 else 2 if largest < 100 * size else 1)

    @classmethod
    def column(cls, values: Iterable[float]) -> Unit:
        """One unit for a column or a chart, in which small figures keep their digits: as small as the small figures
        need, those below a thousandth of the largest aside, unless the largest would get more than five digits."""
        given = sorted(v for v in values if v > 0) or [0.0]
        largest = given[-1]
        smallest = next(v for v in given if v * 1000 >= largest)
        steps = [step for step in reversed(_STEPS) if step[0] >= cls.of(smallest).size]
        size, name = next((step for step in steps if largest < 1e5 * step[0]), steps[-1])
        return cls(size, name, 0 if largest < 1 else 2 if smallest < 10 * size or largest < 100 * size else 1)

    def bare(self, value: float) -> str:
        """A figure without its unit."""
        return f"{value / self.size:,.{self.digits}f}"

    def said(self, value: float) -> str:
        """A figure with its unit."""
        return f"{self.bare(value)} {self.name}"

    def mark(self, value: float) -> str:
        """A round figure as an axis has it, without its unit."""
        return f"{value / self.size:,.10g}"


def percent(share: float | None, digits: int | None = None) -> str:
    """A share in percent: two digits after the point below one percent, one above; ``none`` where there is none."""
    if share is None:
        return "none"
    places = digits if digits is not None else 2 if abs(share) < 0.01 else 1
    return f"{share * 100:,.{places}f} %"


def change(before: float, after: float) -> str:
    """How much a figure changes, in percent of what it was."""
    if not before:
        return "no change" if not after else "new"
    share = after / before - 1
    return f"{share * 100:+,.1f} %".replace("-", "\N{MINUS SIGN}")


def ticks(largest: float, most: int = 6) -> list[float]:
    """Round values from 0 to just above the largest, at most so many."""
    if largest <= 0:
        return [0.0, 1.0]
    rough = largest / (most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * (1 - 1e-9))
    return [step * n for n in range(math.ceil(largest / step - 1e-9) + 1)]


def quantile(values: Iterable[float], share: float) -> float:
    """The value below which that share of the values lies (nearest rank). There must be one."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
