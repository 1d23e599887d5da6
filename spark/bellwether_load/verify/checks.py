"""Checks of a plan: each with the plan's value, the verified value, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

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
    """Collects errors by check: the first few as text, and their number."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._more: dict[str, int] = {}

    def add(self, check: str, *faults: str) -> None:
        """Add faults of a check."""
        texts = self._texts.setdefault(check, [])
        for fault in faults:
            if len(texts) < EXAMPLES:
                texts.append(fault)
            else:
                self._more[check] = self._more.get(check, 0) + 1

    def of(self, check: str) -> tuple[str, ...]:
        """The faults of a check, the last of them a count of those not listed."""
        more = (f"and {self._more[check]} more of this kind",) if check in self._more else ()
        return (*self._texts.get(check, ()), *more)

    def any(self, check: str) -> bool:
        """Whether a check has a fault."""
        return bool(self._texts.get(check))

    def check(self, name: str, said: str = "", found: str = "") -> Check:
        """A check with its faults."""
        return Check(name, self.of(name), said, found)


def close(said: float, exact: Fraction) -> bool:
    """Whether a figure is the exact one, rounded to a double."""
    return abs(Fraction(said) - exact) <= ERROR * abs(exact)
