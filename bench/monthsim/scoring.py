"""Who was right: demotions and holds against what really ailed the cluster.

A demotion or a hold is false (spurious) when no client of any kind lost anything by that broker. A fault is missed when
its broker is neither demoted nor held while it lasts. Pure: months and demotions in, a ``Score`` out; scores add up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
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
UNFELT = frozenset({Kind.VANTAGE_OUTAGE, Kind.PATH_OUTAGE, Kind.LOSS_BURST, Kind.SILENT_PROBER, Kind.SLOW_SYNCS})
"""Noise that only a prober suffers, or no client until leaders move."""
STORAGE = str(Reason.STORAGE_SLOW)
"""The reason of every demotion that was made for a disk, by any rule."""


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
class Balance:
    """Seconds that clients lost, moves included, and the least that they could have lost."""

    lost: float = 0.0
    least: float = 0.0

    def add(self, other: Balance) -> None:
        """Take another month's on."""
        self.lost += other.lost
        self.least += other.least

    @property
    def regret(self) -> float | None:
        """What was lost as a multiple of the least."""
        return round(self.lost / self.least, 3) if self.least else None


@dataclass(slots=True)
class Score:
    """What one rule set was worth."""

    broker_months: int = 0
    false: list[FalseDemotion] = field(default_factory=list)
    faults: dict[Kind, Tally] = field(default_factory=dict)
    with_agent: Balance = field(default_factory=Balance)
    """Against a clairvoyant that may demote a broker or hold it."""
    without_agent: Balance = field(default_factory=Balance)
    """Against one that may demote it."""

    def add(self, other: Score) -> None:
        """Take another month's on."""
        self.broker_months += other.broker_months
        self.false += other.false
        self.with_agent.add(other.with_agent)
        self.without_agent.add(other.without_agent)
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
    found.with_agent = _balance(month, demotions, lost)
    found.without_agent = _balance(month, demotions, {b: regret.without_agent(all_) for b, all_ in lost.items()})
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


def _balance(month: Month, demotions: Sequence[Demotion], lost: Mapping[int, list[regret.Stretch]]) -> Balance:
    """What clients lost, and the least."""
    found = Balance()
    for broker, waits in cap_waits(lost).items():
        left, cost = outside(lost[broker], waits), regret.price(month, broker)
        cures = counted([(d.time, d.cure) for d in demotions if d.broker == broker], left, waits)
        found.add(Balance(regret.suffered(left, cures, cost), regret.clairvoyant(left, cost)))
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
    return fault.kind not in EXTERNAL_FAULTS | {Kind.FREEZING} or one.reason != STORAGE


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
