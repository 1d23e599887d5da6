"""Figures as people read them: bytes per second in one unit for a whole page, shares and times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

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

    def bare(self, value: float) -> str:
        """A figure without its unit; a small one keeps two digits that are not 0."""
        share = abs(value) / self.size
        small = 0 < share < 10**-self.digits * 10 and self.digits
        digits = min(6, 1 - math.floor(math.log10(share))) if small else self.digits
        return f"{value / self.size:,.{digits}f}"

    def said(self, value: float) -> str:
        """A figure with its unit."""
        return f"{self.bare(value)} {self.name}"


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


def moment(at: datetime) -> str:
    """A time as people read it, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
