"""Who was right: demotions against what really ailed the cluster.

A demotion is false (spurious) when clients of that broker lost nothing at all. A fault is missed when its broker
is not demoted while it lasts. Pure: months and demotions in, a ``Score`` out; scores add up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bellwether.core.reasons import Reason
from bellwether.core.settings.harm import Objectives
from monthsim import regret
from monthsim.cap_waits import cap_waits, counted, outside
from monthsim.episodes import DISK_FAULTS, EXTERNAL_FAULTS, FAULTS, Episode, Kind, Month
from monthsim.reconciles import Demotion

SLACK_SECONDS = 30.0
"""So long after its end a fault still excuses a demotion: news of the end takes its time."""
ALREADY_SECONDS = 90.0
_CAUSE_SECONDS = 60.0
UNFELT = frozenset({Kind.VANTAGE_OUTAGE, Kind.PATH_OUTAGE, Kind.LOSS_BURST, Kind.SILENT_PROBER})
"""Noise that only a prober suffers."""
STORAGE = str(Reason.STORAGE_SLOW)
"""The reason of every demotion that was made for a disk, whoever made it."""


@dataclass(slots=True)
class Tally:
    """One kind of fault: how many, how many were found, after how many seconds."""

    injected: int = 0
    found: int = 0
    held: int = 0
    delays: list[float] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Take another's counts on."""
        self.injected += other.injected
        self.found += other.found
        self.held += other.held
        self.delays += other.delays


@dataclass(frozen=True, slots=True)
class FalseDemotion:
    """A demotion that nothing real explains, with what it can be replayed by."""

    broker: int
    time: float
    reason: str
    message: str
    causes: str
    seed: tuple[int, ...]


@dataclass(slots=True)
class Score:
    """What one rule set was worth."""

    broker_months: int = 0
    false: list[FalseDemotion] = field(default_factory=list)
    faults: dict[Kind, Tally] = field(default_factory=dict)
    lost_seconds: float = 0.0
    """What clients lost, moves included."""
    least_seconds: float = 0.0
    """What they would have lost with a clairvoyant."""

    def add(self, other: Score) -> None:
        """Take another month's on."""
        self.broker_months += other.broker_months
        self.false += other.false
        self.lost_seconds += other.lost_seconds
        self.least_seconds += other.least_seconds
        for kind, tally in other.faults.items():
            self.faults.setdefault(kind, Tally()).add(tally)

    @property
    def causes(self) -> dict[str, int]:
        """How many false demotions each kind of noise caused."""
        return dict(Counter(f.causes for f in self.false).most_common())


def score(
    month: Month, demotions: Sequence[Demotion], held: Sequence[Demotion] = (), slack_seconds: float = SLACK_SECONDS
) -> Score:
    """One rule set's demotions in one month."""
    faults = [e for e in month.episodes if e.kind in FAULTS]
    harmful = [e for e in month.episodes if _harmful(e, month)]
    found = Score(broker_months=month.brokers)
    lost = {broker: regret.harm(month, broker) for broker in range(month.brokers)}
    for broker, waits in cap_waits(lost).items():
        left = outside(lost[broker], waits)
        times = counted([d.time for d in demotions if d.broker == broker], left, waits)
        found.lost_seconds += regret.suffered(left, times)
        found.least_seconds += regret.clairvoyant(left)
    for one in demotions:
        if not any(one.broker in f.brokers and f.start <= one.time <= f.end + slack_seconds for f in harmful):
            causes = _causes(month, one)
            found.false.append(FalseDemotion(one.broker, one.time, one.reason, one.message, causes, month.seed))
    for fault in faults:
        for broker in fault.brokers:
            tally = found.faults.setdefault(fault.kind, Tally())
            tally.injected += 1
            delay = _delay(fault, broker, demotions)
            if delay is None:
                tally.held += any(h.broker == broker and fault.start <= h.time <= fault.end for h in held)
                continue
            tally.found += 1
            if delay >= 0:
                tally.delays.append(delay)
    return found


def _harmful(episode: Episode, month: Month) -> bool:
    """Whether clients lose anything by an episode; most of what is noise for a prober is harm for them, too."""
    if episode.kind is Kind.TRAFFIC_WAVE:
        worst = max(
            month.usual_seconds[b] * level for e in episode.disks for b, level in zip(e.brokers, e.levels, strict=True)
        )
        return worst * math.exp(2 * month.world.disk_sigma) > Objectives().produce_milliseconds / 1000
    return episode.kind not in UNFELT


def _delay(fault: Episode, broker: int, demotions: Sequence[Demotion]) -> float | None:
    """Seconds to the first demotion for the right kind of evidence; below zero when it was demoted already."""
    times = [float(d.time) for d in demotions if d.broker == broker and _fits(fault, d)]
    if any(fault.start - ALREADY_SECONDS <= t < fault.start for t in times):
        return -1.0
    return min((t - fault.start for t in times if fault.start <= t <= fault.end), default=None)


def _fits(fault: Episode, one: Demotion) -> bool:
    """Whether a demotion is for what ails: one that noise has brought about meanwhile finds nothing."""
    if fault.kind in DISK_FAULTS:
        return one.reason == STORAGE
    return fault.kind not in EXTERNAL_FAULTS or one.reason != STORAGE


def _causes(month: Month, one: Demotion) -> str:
    near = {
        e.kind
        for e in month.episodes
        if e.kind not in FAULTS
        and one.broker in e.brokers
        and e.start <= one.time <= e.end + _CAUSE_SECONDS
        and (e.kind is not Kind.TRAFFIC_WAVE or one.reason not in ("ExternallyUnreachable", "NotFencedInTime"))
    }
    return " and ".join(sorted(near)) or "nothing"
