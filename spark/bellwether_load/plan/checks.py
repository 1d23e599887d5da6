"""Checks of a plan: each with the plan's value, the verified value, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

ERROR = Fraction(1, 10**9)
"""Relative error that is allowed to figures that were rounded to a double."""
EXAMPLES = 5
"""Maximum number of errors of one kind that are listed; the others are counted."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold. ``faults`` is empty when it does. Figures are as they are to be shown."""

    name: str
    faults: tuple[str, ...] = ()
    said: str = ""
    found: str = ""

    @property
    def passed(self) -> bool:
        """Whether it holds."""
        return not self.faults


class Faults:
    """Collects errors by check: the first few as text, and their number. ``checks``: what was checked, in order."""

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self._texts: dict[str, list[str]] = {}
        self._count: dict[str, int] = {}

    def add(self, check: str, *faults: str, count: int | None = None) -> None:
        """Add faults of a check. ``count``: how many there are, if not all are given."""
        self._texts.setdefault(check, []).extend(faults)
        self._count[check] = self._count.get(check, 0) + (len(faults) if count is None else count)

    def rows(self, check: str, wrong: Any, say: Callable[[int], str]) -> None:
        """Add a fault for each row of a mask; ``say`` gives its text."""
        rows = np.flatnonzero(wrong)
        self.add(check, *(say(int(row)) for row in rows[:EXAMPLES]), count=len(rows))

    def figure(self, check: str, what: str, said: float, exact: Fraction) -> None:
        """Compare a figure, named by ``what``, with the exact one."""
        if not close(said, exact):
            self.add(check, f"{what}{said!r}, the files give {float(exact)!r}")

    def any(self, check: str = "") -> bool:
        """Whether a check has a fault; without a name, whether any has."""
        return bool(self._count.get(check)) if check else any(self._count.values())

    def of(self, name: str) -> tuple[str, ...]:
        """The faults of a check, the last of them a count of those not listed."""
        texts = self._texts.get(name, [])[:EXAMPLES]
        more = self._count.get(name, 0) - len(texts)
        return (*texts, *([f"and {more} more of this kind"] if more else []))

    def check(self, name: str, said: str = "", found: str = "") -> None:
        """Check something, once all of its faults are known."""
        self.checks.append(Check(name, self.of(name), said, found))


def close(said: float, exact: Fraction) -> bool:
    """Whether a figure is the exact one, rounded to a double."""
    return abs(Fraction(said) - exact) <= ERROR * abs(exact)


def highest(loads: Any, sizes: Any) -> Fraction:
    """The largest quotient of two arrays of whole numbers, exactly; 0 of none."""
    relative = np.divide(loads, sizes).astype(np.float64)
    near = relative >= relative.max(initial=0) * (1 - 1e-12)
    pairs = set(zip(np.asarray(loads)[near].tolist(), np.asarray(sizes)[near].tolist(), strict=True))
    return max((Fraction(*pair) for pair in pairs), default=Fraction(0))
