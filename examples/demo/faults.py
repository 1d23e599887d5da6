"""One fault and what became of it, as times. Filled in by ``scenario``, added up by ``report``."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class FaultKind(StrEnum):
    """What is broken."""

    REACHABILITY = "external listener cut"
    STORAGE = "slow disk"


class Window(StrEnum):
    """The stretches of a fault for which latencies are given separately."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"
    RETURNING = "returning"
    RESTORED = "restored"


@dataclass
class Fault:
    """One fault from its beginning to the time after its repair; monotonic times, ``None`` while not reached.

    ``quiet`` is the last stretch before it in which nothing was broken. ``acting`` is false for the control: the policy
    only observes, and the leaders stay. ``judged`` is when Bellwether's verdict ``Sick`` was read, with its ``reason``
    and ``message``. ``led`` are the partitions that the broker led when the fault began, ``moved`` how many of them
    left it. ``held`` is when its process was held, ``out_of_isr`` when it had left every ISR, ``released`` when it was
    let go to its end, ``started`` when it had ended and was started again.
    """

    kind: FaultKind
    broker: int
    quiet: tuple[float, float]
    acting: bool = True
    began: float | None = None
    judged: float | None = None
    reason: str = ""
    message: str = ""
    zero_leaders: float | None = None
    noticed_at: float | None = None
    held: float | None = None
    out_of_isr: float | None = None
    released: float | None = None
    started: float | None = None
    repaired: float | None = None
    in_place: float | None = None
    ended: float | None = None
    led: frozenset[tuple[str, int]] = field(default_factory=frozenset)
    moved: int = 0

    @property
    def name(self) -> str:
        """The fault in a few words, unlike that of any other fault of one repetition."""
        return f"{self.kind}, broker {self.broker}" + ("" if self.acting else ", without Bellwether")

    @property
    def quarantined(self) -> bool:
        """Whether quarantine holds the broker: demotion does not end what a slow disk costs."""
        return self.acting and self.kind is FaultKind.STORAGE

    @property
    def seconds_to_verdict(self) -> float | None:
        """From the fault to the first reading of the verdict ``Sick``."""
        return _between(self.began, self.judged)

    @property
    def seconds_broken(self) -> float | None:
        """From the fault to its repair."""
        return _between(self.began, self.repaired)

    @property
    def seconds_to_zero_leaders(self) -> float | None:
        """From the fault to the first poll that showed the broker leading nothing."""
        return _between(self.began, self.zero_leaders)

    @property
    def seconds_until_old_leader_notices(self) -> float | None:
        """From the fault until the sick broker's own metadata showed that it leads nothing; ``None`` if never seen."""
        return _between(self.began, self.noticed_at)

    @property
    def seconds_to_held(self) -> float | None:
        """From the fault until the broker's process was held."""
        return _between(self.began, self.held)

    @property
    def seconds_to_out_of_isr(self) -> float | None:
        """From the fault to the first poll that showed the held broker in no ISR."""
        return _between(self.began, self.out_of_isr)

    @property
    def seconds_to_released(self) -> float | None:
        """From the repair until the held process was let go."""
        return _between(self.repaired, self.released)

    @property
    def seconds_to_started(self) -> float | None:
        """From its release until the broker had ended and was started again."""
        return _between(self.released, self.started)

    @property
    def seconds_to_in_place(self) -> float | None:
        """From the repair to the first poll that showed every order and every leader of the start."""
        return _between(self.repaired, self.in_place)

    def windows(self, now: float | None = None) -> dict[Window, tuple[float, float]]:
        """The stretches that were reached; the README of this folder explains their names.

        Of the control, ``DURING`` lasts until the repair, as its leaders stay. A stretch that has no end yet is left
        out, or ends ``now``.
        """
        repaired = self.repaired if self.repaired is not None else now
        bounds = {
            Window.BEFORE: self.quiet,
            Window.DURING: (self.began, self.zero_leaders if self.acting else repaired),
            Window.AFTER: (self.zero_leaders, repaired),
            Window.RETURNING: (self.repaired, self.in_place),
            Window.RESTORED: (self.in_place, self.ended),
        }
        return {w: (start, end) for w, (start, end) in bounds.items() if start is not None and end is not None}


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else round(end - start, 2)
