"""One fault and what became of it, as times. Filled in by ``scenario``, added up by ``report``."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class FaultKind(StrEnum):
    """What is broken."""

    REACHABILITY = "external listener cut"
    STORAGE = "slow disk"


class Window(StrEnum):
    """The stretches of a fault that latencies are told apart by."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"
    RETURNING = "returning"
    RESTORED = "restored"


@dataclass
class Fault:
    """One fault from its quiet beginning to the quiet after it; monotonic times, ``None`` while not reached.

    ``led`` are the partitions that the broker led when the fault began, ``moved`` how many of them left it.
    ``in_isr`` counts the partitions that had the demoted broker among their in-sync replicas just before the mending.
    """

    kind: FaultKind
    broker: int
    quiet_from: float
    began: float | None = None
    zero_leaders: float | None = None
    knows_at: float | None = None
    mended: float | None = None
    in_place: float | None = None
    ended: float | None = None
    led: frozenset[tuple[str, int]] = field(default_factory=frozenset)
    moved: int = 0
    in_isr: int = 0

    @property
    def seconds_to_zero_leaders(self) -> float | None:
        """From the fault to the first poll that showed the broker leading nothing."""
        return _between(self.began, self.zero_leaders)

    @property
    def seconds_until_it_knows(self) -> float | None:
        """From the fault until the sick broker's own metadata showed that it leads nothing; ``None`` if never seen."""
        return _between(self.began, self.knows_at)

    @property
    def seconds_to_in_place(self) -> float | None:
        """From the mending to the first poll that showed every order and every leader of the start."""
        return _between(self.mended, self.in_place)

    def windows(self) -> dict[Window, tuple[float, float]]:
        """The stretches that were reached; what each is called is told in the README beside this file."""
        bounds = {
            Window.BEFORE: (self.quiet_from, self.began),
            Window.DURING: (self.began, self.zero_leaders),
            Window.AFTER: (self.zero_leaders, self.mended),
            Window.RETURNING: (self.mended, self.in_place),
            Window.RESTORED: (self.in_place, self.ended),
        }
        return {w: (start, end) for w, (start, end) in bounds.items() if start is not None and end is not None}


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else round(end - start, 2)
