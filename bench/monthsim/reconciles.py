"""The operator's loop over one stretch: news in, the core's own judgement and decision, demotions out.

Turns happen when the loop of ``controllers.policy_controller`` would take one: at news, at appointments (a dwell or a
stabilization that ends), and at the polls of metadata while anyone ails. Polls that could not differ from the turn
before are skipped. The undo record is reduced to who is demoted. A broker that is ordered into a held controlled
shutdown is held at once, and until its disk has been fast for a minute: its agent's answers, the limit of a hold, and
what ends one early are left out.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from bellwether.core.demotion.decisions import Decisions, decide
from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict, judge
from bellwether.core.model.cluster import Broker, Cluster, Partition
from bellwether.core.model.fault_tolerance import FaultTolerance, Quorum
from bellwether.core.model.history.flap_damping import FlapCounter, count_flaps, kept_from_leading
from bellwether.core.model.history.harm_history import HarmHistory
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.quarantine.hold_decision import decide_quarantines
from bellwether.core.reasons import Reason
from bellwether.core.reporting.requeue import requeue_after
from bellwether.core.settings.policy import Policy, QuarantineMode
from bellwether.core.signals import QUARANTINE_AGENT, Reading, Signal, SignalType
from monthsim.assumptions import LEADERS, RACKS, REPLICAS, VANTAGES
from monthsim.disks import MonthOfDisks
from monthsim.episodes import Absence, Month
from monthsim.paths import News, at
from monthsim.regret import WELL_SECONDS
from monthsim.relief import Cure

BUSY_SECONDS = 5.0
IDLE_SECONDS = 60.0
TURN_SECONDS = 0.2
_HEARTBEAT_AGE = 1.0
_AILING = frozenset({HealthState.SICK, HealthState.SUSPECT, HealthState.DOWN})
_VOTERS = frozenset({101, 102, 103})
_CALM = frozenset({HealthState.HEALTHY, HealthState.SUSPECT, HealthState.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Demotion:
    """A broker that a rule set demoted or held, and when."""

    time: float
    broker: int
    reason: str = ""
    message: str = ""
    cure: Cure = Cure.DEMOTION


@dataclass(slots=True)
class Outcome:
    """What a rule set did in a stretch."""

    demotions: list[Demotion] = field(default_factory=list)
    downs: list[Demotion] = field(default_factory=list)
    held: list[Demotion] = field(default_factory=list)


class Site:
    """A cluster's metadata, by who is fenced."""

    def __init__(self, brokers: int) -> None:
        self._brokers = brokers
        self._known: dict[frozenset[int], Cluster] = {}

    def cluster(self, fenced: frozenset[int]) -> Cluster:
        """Metadata while those are fenced."""
        if fenced not in self._known:
            self._known[fenced] = self._make(fenced)
        return self._known[fenced]

    def _make(self, fenced: frozenset[int]) -> Cluster:
        brokers = {b: Broker(b, f"rack-{b % RACKS}", fenced=b in fenced) for b in range(self._brokers)}
        partitions = []
        for number in range(self._brokers * LEADERS):
            replicas = tuple((number + k) % self._brokers for k in range(REPLICAS))
            isr = tuple(r for r in replicas if r not in fenced)
            partitions.append(Partition("t", "t", number, replicas, isr, isr[0] if isr else None))
        return Cluster("simulated", brokers, tuple(partitions))


class Operator:
    """Our rules: judge and decide, turn by turn.

    ``screened`` skips turns that could decide nothing, as most do: one vantage alone makes no broker Sick. A test
    holds both ways against each other.
    """

    def __init__(self, month: Month, policy: Policy, *, screened: bool = True) -> None:
        brokers = month.brokers
        self._site, self._disks = Site(brokers), MonthOfDisks(month)
        self._policy = policy
        self._screened = screened
        self._signals = {(s.broker, s.source): s for s in _all_well(brokers, month.usual_seconds)}
        self._failing: dict[int, set[str]] = {b: set() for b in range(brokers)}
        self._troubled: set[int] = set()
        self._calm = True
        self._flaps: Mapping[int, FlapCounter] = {}
        self._harm = HarmHistory()
        self._record = UndoRecord("simulated")
        self._orders: dict[int, QuarantineOrder] = {}
        self._agents = (
            tuple(_agent(b) for b in range(brokers)) if policy.quarantine.mode is QuarantineMode.ENABLED else ()
        )
        well = Snapshot(at(-900.0), self._site.cluster(frozenset()), self._record, tuple(self._signals.values()))
        self._verdicts: Mapping[int, Verdict] = judge(well, policy, {})

    def run(self, news: Sequence[News], fenced: Sequence[Absence], silent: Sequence[Absence]) -> Outcome:
        """Live through a month that begins with healthy brokers; ``news`` come as the operator hears them, in order."""
        found = Outcome()
        edges = sorted({edge for a in (*fenced, *self._disks.fenced) for edge in (a.start, a.end)} | self._disks.edges)
        patience = self._policy.detection.external_reachability.stale_after_seconds
        stale = sorted({a.start + patience + 0.01 for a in silent} | {a.end for a in silent})
        index, now, busy = 0, 0.0, False
        due: list[float] = []
        while True:
            coming = [news[index].time] if index < len(news) else []
            coming += stale[bisect_right(stale, now) :][:1]
            # Metadata has no watch: a change is seen at the next poll, or at whatever turn comes first.
            period = BUSY_SECONDS if busy else IDLE_SECONDS
            coming += [now + period * math.ceil((e - now) / period) for e in edges[bisect_right(edges, now) :][:1]]
            coming += [d for d in due if d > now]
            if not coming:
                return found
            now = max(now + TURN_SECONDS, min(coming))
            while index < len(news) and news[index].time <= now:
                self._hear(news[index].signal)
                index += 1
            quiet = self._calm and not self._troubled and not self._harm.under_way
            if self._screened and quiet and not _away(now, (*fenced, *self._disks.fenced)):
                busy, due = any(self._failing.values()), []
                continue
            decisions = self._reconcile(now, fenced, silent, found)
            busy = bool(self._record.demoted or self._orders) or any(
                v.state in _AILING for v in self._verdicts.values()
            )
            due = self._appointments(now, decisions)

    def _hear(self, signal: Signal) -> None:
        broker, failing = signal.broker, self._failing[signal.broker]
        self._signals[broker, signal.source] = replace(signal, age_seconds=_HEARTBEAT_AGE)
        harmed = signal.reading is Reading.FAILING or signal.harm is not None  # what fades still counts as an episode
        (failing.add if harmed else failing.discard)(signal.source)
        # A lone vantage is never a quorum; a lone storage prober is.
        troubled = len(failing) > 1 or any(not source.startswith("v") for source in failing)
        (self._troubled.add if troubled else self._troubled.discard)(broker)

    def _reconcile(self, now: float, fenced: Sequence[Absence], silent: Sequence[Absence], found: Outcome) -> Decisions:
        self._orders = {b: replace(o, renewed_at=at(now)) for b, o in self._orders.items() if not self._well(b, now)}
        stopped = self._disks.fences(now, [*self._record.demoted.values(), *self._orders.values()])
        snapshot = Snapshot(
            at(now),
            self._site.cluster(_away(now, fenced) | stopped | frozenset(self._orders)),
            self._record,
            (*self._aged(now, silent), *self._agents),
            flaps=self._flaps,
            quarantine_orders=self._orders,
            fault_tolerance=self._fault_tolerance(now),
            harm_history=self._harm,
        )
        before = self._verdicts
        self._verdicts = judge(snapshot, self._policy, before)
        context = Context(snapshot, self._verdicts, self._policy)
        decisions = decide(context)
        ordered = decide_quarantines(context, decisions.demoted, decisions.to_hold).orders
        orders = self._orders | {b: o for b, o in ordered.items() if b not in self._orders}
        found.demotions += [
            Demotion(now, b, str(Reason.STORAGE_SLOW), o.message, Cure.HELD)
            for b, o in orders.items()
            if b not in self._orders
        ]
        found.demotions += [
            Demotion(now, b, str(d.reason), d.message)
            for b, d in decisions.demoted.items()
            if b not in self._record.demoted
        ]
        found.held += [Demotion(now, h.broker, str(h.reason)) for h in decisions.held]
        found.downs += [
            Demotion(now, b, str(v.reason))
            for b, v in self._verdicts.items()
            if v.state is HealthState.DOWN and before[b].state is not HealthState.DOWN and b not in self._orders
        ]
        window, record = self._policy.promotion.flap_window_seconds, UndoRecord("simulated", demoted=decisions.demoted)
        were, are = kept_from_leading(self._record, self._orders), kept_from_leading(record, orders)
        self._flaps = count_flaps(self._flaps, were, are, at(now), window)
        self._harm = self._harm.after({broker: v.harm for broker, v in self._verdicts.items()})
        self._record, self._orders = record, orders
        self._calm = (
            not decisions.demoted
            and not orders
            and all(v.restarted is None and v.noticed is None and v.state in _CALM for v in self._verdicts.values())
        )
        return decisions

    def _well(self, broker: int, now: float) -> bool:
        """Whether a broker's disk has been fast for as long as a hold lasts beyond that."""
        disk = self._signals[broker, f"broker-{broker}"]
        return disk.reading is Reading.PASSING and (at(now) - disk.since).total_seconds() >= WELL_SECONDS

    def _fault_tolerance(self, now: float) -> FaultTolerance | None:
        """What is read while a disk is slow. The controllers run apart from the brokers."""
        kinds = (s for s in self._signals.values() if s.type == SignalType.STORAGE_LATENCY)
        slow = {s.broker for s in kinds if s.reading is Reading.FAILING}
        if not slow | self._orders.keys():
            return None
        keeping_up = frozenset(b for b in slow if self._disks.keeps_up(b, now))
        return FaultTolerance(
            {"t": 2}, Quorum(_VOTERS, _VOTERS, min(_VOTERS)), frozenset(), frozenset(slow - keeping_up), keeping_up
        )

    def _aged(self, now: float, silent: Sequence[Absence]) -> tuple[Signal, ...]:
        ages = {f"v{a.who}": now - a.start for a in silent if a.start <= now < a.end}
        if not ages:
            return tuple(self._signals.values())
        return tuple(
            replace(s, age_seconds=max(_HEARTBEAT_AGE, ages[s.source])) if s.source in ages else s
            for s in self._signals.values()
        )

    def _appointments(self, now: float, decisions: Decisions) -> list[float]:
        """When the next turn may differ though no news comes."""
        due = []
        time = at(now)
        for broker, verdict in self._verdicts.items():
            if broker in self._orders:
                disk = self._signals[broker, f"broker-{broker}"]
                if disk.reading is Reading.PASSING:
                    due.append(now + max(BUSY_SECONDS, WELL_SECONDS - (time - disk.since).total_seconds()))
                continue
            left, flaps = decisions.dwelling.get(broker), self._flaps.get(broker)
            wait = requeue_after(verdict, dwell_left=left, flaps=flaps, policy=self._policy)
            if wait is not None:
                due.append(now + wait)
            elif verdict.reason is Reason.UNREACHABLE:
                due.append(now + BUSY_SECONDS)
            elif verdict.reason is Reason.RESTARTING and verdict.restarted is not None:
                due.append(_poll_after(now, verdict.restarted, self._policy))
        return due


def _away(now: float, fenced: Sequence[Absence]) -> frozenset[int]:
    return frozenset(a.who for a in fenced if a.start <= now < a.end)


def _poll_after(now: float, restarted: datetime, policy: Policy) -> float:
    grace = policy.detection.external_reachability.startup_grace_seconds
    left = grace - (at(now) - restarted).total_seconds()
    return now + BUSY_SECONDS * max(1, math.ceil(left / BUSY_SECONDS))


def _agent(broker: int) -> Signal:
    return Signal(broker, QUARANTINE_AGENT, f"agent-{broker}", Reading.PASSING, at(-1000.0), _HEARTBEAT_AGE)


def _all_well(brokers: int, usual_seconds: Sequence[float]) -> list[Signal]:
    since, well, age = at(-1000.0), Reading.PASSING, _HEARTBEAT_AGE
    found = [
        Signal(broker, SignalType.EXTERNAL_REACHABILITY, f"v{vantage}", well, since, age, well, 0.03)
        for broker in range(brokers)
        for vantage in range(VANTAGES)
    ]
    found += [
        Signal(
            broker,
            SignalType.STORAGE_LATENCY,
            f"broker-{broker}",
            well,
            since,
            age,
            latency_seconds=usual,
            usual_seconds=usual,
        )
        for broker, usual in enumerate(usual_seconds)
    ]
    return found
