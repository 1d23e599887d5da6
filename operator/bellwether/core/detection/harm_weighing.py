"""Weigh harm against the cost of a move: the ski-rental rule that decides when a failing signal demotes.

In: the seconds that clients of a broker lost, and what moving its leaders away and back costs. Out: whether moving is
worth it, with the figures as text. Called by ``reachability``, ``canary`` and ``storage``; the argument is in
docs/internals/harm.md. ``own_harm`` gives what ``history.harm_history`` learns the limit from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bellwether.core.detection.findings import Finding, SignalIndex, quorum
from bellwether.core.model.history.harm_history import AS_THE_COST, HarmCause, LimitFactor
from bellwether.core.model.history.move_cost import MoveCost
from bellwether.core.reasons import Reason
from bellwether.core.settings.harm import DISPUTED_RATIO, NOTICEABLE_SHARE, REPORT_RATIO, SHARED_RATIO
from bellwether.core.signals import Reading, Signal, SignalType

_NOT_ITS_OWN = frozenset(
    {
        Reason.SYSTEMIC_CAUSE,
        Reason.VANTAGE_CONFLICT,
        Reason.RESTARTING,
        Reason.UNREACHABLE,
        Reason.FREEZING,
        Reason.NOT_FENCED_IN_TIME,
        Reason.BROKER_DOWN,
        Reason.IN_MAINTENANCE,
    }
)
"""Reasons of findings by which probes lose requests through no listener or disk of this broker alone."""

_STOPPED = frozenset({Reason.RESTARTING, Reason.UNREACHABLE, Reason.BROKER_DOWN})
"""What is found of a broker that a quarantine order stops, and of one that it has just let go."""


@dataclass(frozen=True, slots=True)
class Weighing:
    """Seconds lost, and the cost of a move times the tolerance. ``ongoing``: whether the last requests were lost.

    ``learned`` is the limit as a multiple of that, by past disturbances of that ``cause``. ``disputed``: a vantage
    still reaches the broker. ``earlier_seconds`` is what of the seconds lost is left of earlier failures.
    """

    lost_seconds: float
    cost: MoveCost
    tolerance: int = 1
    ongoing: bool = True
    cause: HarmCause = HarmCause.STORAGE
    learned: LimitFactor = AS_THE_COST
    disputed: bool = False
    earlier_seconds: float = 0.0

    @property
    def limit_seconds(self) -> float:
        """Seconds lost at which moving is worth it.

        A source reports growing harm in steps of REPORT_RATIO, so what it reported may be so much more by now.
        """
        return self._limit * (DISPUTED_RATIO if self.disputed else 1) / REPORT_RATIO

    @property
    def _limit(self) -> float:
        return self.cost.seconds * self.tolerance * self.learned.factor

    @property
    def worth_moving(self) -> bool:
        """Whether probes lost as much as a move costs, and still lose: a move cures only harm that goes on."""
        return self.ongoing and self.lost_seconds >= self.limit_seconds

    @property
    def noticeable(self) -> bool:
        """Whether the harm is close enough to the cost to make the broker Suspect."""
        return self.lost_seconds >= self.cost.seconds * self.tolerance * NOTICEABLE_SHARE

    @property
    def change(self) -> str:
        """What would make the broker Sick while moving is not worth it."""
        if self.lost_seconds >= self.limit_seconds:
            return "one more lost request makes it Sick"
        return f"probes losing {self.limit_seconds:.1f} s make it Sick"

    def __str__(self) -> str:
        times = f", tolerated {self.tolerance} times (spec.detection.tolerance)" if self.tolerance > 1 else ""
        learned = self.learned.words(self.cause, self._limit)
        disputed = f", counted {DISPUTED_RATIO} times while vantages disagree" if self.disputed else ""
        return f"moving its leaders away and back costs {self.cost}{times}{f'; {learned}' if learned else ''}{disputed}"

    def shared_with(self, peers_lost_seconds: float) -> bool:
        """Whether the peers' clients lose about as much: the cause is shared, and moving would save too little."""
        excess = self.lost_seconds - peers_lost_seconds
        return excess < self.limit_seconds or self.lost_seconds < SHARED_RATIO * peers_lost_seconds


def weigh(
    lost: float, broker: int, index: SignalIndex, cause: HarmCause, *, ongoing: bool = True, disputed: bool = False
) -> Weighing:
    """Weigh the seconds that clients of a broker lost. Of a demoted one it does not matter whether they lose more."""
    ongoing = ongoing or broker in index.snapshot.record.demoted
    tolerance, learned = index.detection.tolerance, index.limit_factors[cause]
    # A broker with slow writes is held in a controlled shutdown, or is demoted while it keeps up as a follower.
    cost = index.move_cost_with_syncs(broker) if cause is HarmCause.REACHABILITY else index.move_cost(broker)
    return Weighing(lost, cost, tolerance, ongoing, cause, learned, disputed)


def own_harm(
    broker: int, index: SignalIndex, findings: Iterable[Finding]
) -> tuple[tuple[HarmCause, float | None], ...]:
    """Seconds that clients of a broker have lost in the episode that goes on, by cause; 0 where none does.

    None where the broker's own listener or disk is not the cause. A cause of which nothing is known is missing. What
    only the canary sees counts as a disk's while the broker can be reached: it is the same for clients.
    """
    others = {f.reason for f in findings} & _NOT_ITS_OWN
    # Stopped by our own order: the prober on its disk goes on, and says how long the fault lasts.
    stopped_by_us = broker in index.snapshot.quarantine_orders and others <= _STOPPED
    if others and not stopped_by_us:
        return tuple((cause, None) for cause in HarmCause)
    found: list[tuple[HarmCause, float | None]] = [(HarmCause.REACHABILITY, None)] if others else []
    heard = index.heard(broker, SignalType.EXTERNAL_REACHABILITY)
    views = index.listeners.values() or (index,)
    agreed = [_agreed_so_far(one.heard(broker, SignalType.EXTERNAL_REACHABILITY), len(one.vantages)) for one in views]
    unreached = max((lost for lost in agreed if lost is not None), default=None)
    if unreached is not None and not others:
        stopped = any(s.control is Reading.FAILING for s in heard)
        found.append((HarmCause.REACHABILITY, None if stopped and unreached else unreached))
    disks = [_lost_so_far(s) for s in index.disks_heard(broker)]
    felt = None if unreached else _agreed_so_far(index.heard(broker, SignalType.CANARY), len(index.canary_vantages))
    if disks or felt is not None:
        found.append((HarmCause.STORAGE, max([*disks, felt or 0.0])))
    return tuple(found)


def _agreed_so_far(heard: Sequence[Signal], vantages: int) -> float | None:
    """What a quorum agrees on; None without a quorum."""
    need = quorum(vantages)
    return sorted(map(_lost_so_far, heard), reverse=True)[need - 1] if len(heard) >= need > 0 else None


def _lost_so_far(signal: Signal) -> float:
    """Also of a signal that passes again: its harm fades only then, and until then the episode is not over."""
    return signal.harm.lost_seconds if signal.harm is not None else 0.0
