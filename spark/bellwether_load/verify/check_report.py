"""Report of a verification: one line per check, with the plan's value, the verified value and any error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bellwether_load.verify.bound_proof import BoundProof

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

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "check": self.name,
            "passed": self.passed,
            "said": self.said,
            "found": self.found,
            "faults": list(self.faults),
        }


@dataclass(frozen=True)
class Report:
    """All checks of one plan, and what was proved in figures. ``notes`` are worth knowing and refuse nothing.

    ``proof``: what decides the bound; None if the plan proves none. ``unmeasured``: by topic, the number of partitions
    whose consumption is not measured.
    """

    digest: str
    checks: tuple[Check, ...]
    figures: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    proof: BoundProof | None = None
    unmeasured: Mapping[str, int] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether everything that the plan claims is so."""
        return all(check.passed for check in self.checks)

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that is wrong, check by check."""
        return tuple(f"{check.name}: {fault}" for check in self.checks for fault in check.faults)

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "digest": self.digest,
            "passed": self.passed,
            "checks": [check.document() for check in self.checks],
            "figures": self.figures,
            "notes": list(self.notes),
        }


class Faults:
    """Collects errors by check: the first few as text, and their number."""

    def __init__(self) -> None:
        self._words: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}

    def add(self, check: str, fault: str) -> None:
        """One more fault of a check."""
        words = self._words.setdefault(check, [])
        self._counts[check] = self._counts.get(check, 0) + 1
        if len(words) < EXAMPLES:
            words.append(fault)

    def extend(self, check: str, faults: Iterable[str]) -> None:
        """More faults of a check."""
        for fault in faults:
            self.add(check, fault)

    def of(self, check: str) -> tuple[str, ...]:
        """The faults of a check, the last of them a count of those not listed."""
        words = self._words.get(check, [])
        more = self._counts.get(check, 0) - len(words)
        return (*words, f"and {more} more of this kind") if more else tuple(words)

    def any(self, *checks: str) -> bool:
        """Whether one of these checks has a fault."""
        return any(self._words.get(check) for check in checks)
