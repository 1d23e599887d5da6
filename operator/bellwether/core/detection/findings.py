"""Findings: the result of judging one kind of evidence for one broker, with its reason and evidence items.

Created by ``reachability``, ``storage`` and ``thresholds``; ``verdicts`` takes the worst. Texts contain no ages and no
figure that changes without a new signal, so the same input gives the same bytes (invariant 8).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from statistics import median
from typing import NamedTuple

from bellwether.core.detection.health_states import Evidence
from bellwether.core.model.history.harm_history import HarmCause, LimitFactor
from bellwether.core.model.history.move_cost import MoveCost
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection
from bellwether.core.settings.harm import LARGEST_LOST_SECONDS, SLOW_SYNC_SECONDS
from bellwether.core.signals import Reading, Signal, SignalType, UnreachableCause

NOT_REPORTED = "its prober has not reported"
"""Part of why an evidence item is ignored, if its source is missing."""

_NOTHING: Mapping[int, Sequence[Signal]] = {}
_NOBODY: Mapping[int, datetime] = {}
_OF_DISKS = (SignalType.STORAGE_LATENCY, SignalType.READ_LATENCY)
WORST_FIRST = tuple(Evidence)
_RANK = {evidence: rank for rank, evidence in enumerate(WORST_FIRST)}


class EvidenceItem(NamedTuple):
    """One source's signal as it was judged. ``ignored_because`` says why it did not count, empty if it did."""

    type: str
    source: str
    reading: Reading
    since: datetime | None
    message: str = ""
    ignored_because: str = ""


class Finding(NamedTuple):
    """Result for one kind of evidence; ``change`` says what would change it."""

    evidence: Evidence
    reason: Reason
    message: str
    severity: int = 0
    facts: tuple[EvidenceItem, ...] = ()
    change: str = ""
    signal: str = ""
    """Type of the signal that fails: of one that is judged by its threshold alone, or of harm that does not demote."""
    log_dirs: tuple[str, ...] = ()
    """Log directories that are bad while others of the broker are not."""
    cause: UnreachableCause | None = None
    """What most failing vantages say that their requests break at."""
    links: frozenset[int] = frozenset()
    """Brokers that the broker does not reach, nor they it."""


_WELL = (Evidence.GOOD, Reason.SIGNALS_PASSING, "every signal passes", 0)


def passing(facts: tuple[EvidenceItem, ...] = (), change: str = "") -> Finding:
    """A finding without a fault."""
    return Finding(*_WELL, facts, change)


def below_cost(
    message: str,
    facts: tuple[EvidenceItem, ...],
    change: str,
    signal: str,
    cause: UnreachableCause | None = None,
) -> Finding:
    """The finding that probes lose requests, so far less than moving the broker's leaders costs."""
    return Finding(
        Evidence.DOUBTFUL, Reason.HARM_BELOW_COST, message, facts=facts, change=change, signal=signal, cause=cause
    )


def shared_cause(message: str, facts: tuple[EvidenceItem, ...], change: str, signal: str) -> Finding:
    """The finding that probes lose requests, and that the cause may be shared with the broker's peers."""
    return Finding(Evidence.DOUBTFUL, Reason.SYSTEMIC_CAUSE, message, facts=facts, change=change, signal=signal)


def worst(findings: Iterable[Finding]) -> Finding:
    """The worst finding; of equal ones the most severe. Raises ValueError when there is none."""
    return min(findings, key=lambda f: (_RANK[f.evidence], -f.severity))


def quorum(vantages: int) -> int:
    """A majority of the configured vantages, and at least two where two exist."""
    return max(vantages // 2 + 1, min(2, vantages))


@dataclass(frozen=True)
class SecondsByBroker:
    """One figure of each live broker, in seconds: what its probes lost, or what its disk takes."""

    seconds: Mapping[int, float]

    def of_peers(self, broker: int) -> float | None:
        """Median of the other brokers' figures; ``None`` without a peer to compare with."""
        all_brokers, own = self._sorted, self.seconds.get(broker)
        if own is None:
            return median(all_brokers) if all_brokers else None
        peers = len(all_brokers) - 1
        if not peers:
            return None
        # One sorted list serves all brokers: a broker's own position in it is skipped.
        low, high = (peers - 1) // 2, peers // 2
        return (all_brokers[low + (all_brokers[low] >= own)] + all_brokers[high + (all_brokers[high] >= own)]) / 2

    @cached_property
    def _sorted(self) -> list[float]:
        return sorted(self.seconds.values())


@dataclass(frozen=True)
class SignalIndex:
    """Signals of one reconcile by broker and by type, with what is derived from them for all brokers."""

    snapshot: Snapshot
    detection: Detection
    by_broker: Mapping[int, Sequence[Signal]] = field(default_factory=dict)
    by_type: Mapping[str, Mapping[int, Sequence[Signal]]] = field(default_factory=dict)
    excused: frozenset[tuple[int, str, str]] = frozenset()
    """Broker, type and source of the failing signals that count as Unknown for the broker, as it was in maintenance."""

    @staticmethod
    def of(snapshot: Snapshot, detection: Detection, resumed: Mapping[int, datetime] = _NOBODY) -> SignalIndex:
        """Index a snapshot's signals. ``resumed``: end of maintenance of the brokers that are still in their grace
        period.

        Signals about a drained broker are ignored, also for comparison with peers. A signal that has failed since
        before the end of maintenance counts as Unknown.
        """
        by_broker: defaultdict[int, list[Signal]] = defaultdict(list)
        by_type: defaultdict[str, defaultdict[int, list[Signal]]] = defaultdict(lambda: defaultdict(list))
        excused = set()
        for said in snapshot.signals:
            if said.broker in snapshot.drained:
                continue
            signal, end = said, resumed.get(said.broker)
            if end is not None and said.reading is Reading.FAILING and said.since <= end:
                signal = replace(said, reading=Reading.UNKNOWN)
                excused.add((said.broker, said.type, said.source))
            by_broker[signal.broker].append(signal)
            by_type[signal.type][signal.broker].append(signal)
        types = {t: dict(said) for t, said in by_type.items()}
        return SignalIndex(snapshot, detection, dict(by_broker), types, frozenset(excused))

    def about(self, broker: int, type_: str) -> Sequence[Signal]:
        """The signals of one type for one broker."""
        return self.by_type.get(type_, _NOTHING).get(broker, ())

    @cached_property
    def vantages(self) -> tuple[str, ...]:
        """Vantages that form the quorum: the configured ones, otherwise every vantage that has reported."""
        return self._vantages(SignalType.EXTERNAL_REACHABILITY)

    @cached_property
    def blind(self) -> frozenset[str]:
        """Vantages from which every live broker fails: the vantage itself has failed (invariant 5)."""
        return self._blind(SignalType.EXTERNAL_REACHABILITY)

    @cached_property
    def listeners(self) -> Mapping[str, SignalIndex]:
        """This index as each listener alone has it, for those of several that some signal says fail."""
        said = self.by_type.get(SignalType.EXTERNAL_REACHABILITY, _NOTHING)
        failing = {n for ones in said.values() for s in ones if s.listeners for n in s.failing_listeners}
        seen = {n: {b: [s.at_listener(n) for s in ones] for b, ones in said.items()} for n in sorted(failing)}
        return {
            name: replace(self, by_type={**self.by_type, SignalType.EXTERNAL_REACHABILITY: of})
            for name, of in seen.items()
        }

    @cached_property
    def blind_paths(self) -> frozenset[tuple[str, str]]:
        """Listener and vantage, where every live broker fails there; without a name where one listener is watched."""
        views = self.listeners or {"": self}
        return frozenset((name, vantage) for name, index in views.items() for vantage in index.blind)

    def reaches_no_broker(self, signal: Signal) -> bool:
        """Whether every live broker fails from the signal's vantage, at each listener that fails."""
        views = [self.listeners[n] for n in signal.failing_listeners if n in self.listeners] or [self]
        return all(signal.source in index.blind for index in views)

    @cached_property
    def _counted(self) -> Mapping[str, frozenset[str]]:
        """The vantages that count, by the types that vantages measure."""
        return {
            SignalType.EXTERNAL_REACHABILITY: frozenset(self.vantages) - self.blind,
            SignalType.CANARY: frozenset(self.canary_vantages) - self.canary_blind,
        }

    def heard(self, broker: int, type_: str) -> list[Signal]:
        """Fresh signals of one type about a broker; where vantages measure it, of those that count."""
        patience, counted = self.detection.settings_of(type_).stale_after_seconds, self._counted.get(type_)
        said = self.about(broker, type_)
        return [s for s in said if (counted is None or s.source in counted) and fresh(s, patience)]

    def disks_heard(self, broker: int) -> list[Signal]:
        """Fresh signals of a broker's log directories, of writes and of reads."""
        return [s for type_ in _OF_DISKS for s in self.heard(broker, type_)]

    def log_dirs(self, broker: int) -> frozenset[str]:
        """The broker's log directories as its storage probes name them, stale ones included; empty unless all do."""
        named = frozenset(s.directory for type_ in _OF_DISKS for s in self.about(broker, type_))
        return named if "" not in named else frozenset()

    @cached_property
    def canary_vantages(self) -> tuple[str, ...]:
        """Vantages of the canary: the configured ones, otherwise every vantage whose canary has reported."""
        return self._vantages(SignalType.CANARY)

    @cached_property
    def canary_blind(self) -> frozenset[str]:
        """Vantages whose canary fails for every live broker."""
        return self._blind(SignalType.CANARY)

    @cached_property
    def canary_harm(self) -> SecondsByBroker:
        """What a quorum of vantages agrees that clients of each live broker lost by the canary."""
        need = quorum(len(self.canary_vantages))
        heard = {broker: self.heard(broker, SignalType.CANARY) for broker in self.snapshot.cluster.live}
        return SecondsByBroker({b: agreed(words, need) for b, words in heard.items() if len(words) >= need > 0})

    def _vantages(self, type_: str) -> tuple[str, ...]:
        seen = {s.source for _, said in self._of_type(type_) for s in said}
        return tuple(sorted(self.detection.external_reachability.vantages or seen))

    def _blind(self, type_: str) -> frozenset[str]:
        """Sources from which two live brokers or more fail, and none passes; Unknown is neither."""
        failing, reached = Counter[str](), set[str]()
        for broker, said in self._of_type(type_):
            if broker in self.snapshot.cluster.live:
                excused = {s.source for s in said if (broker, type_, s.source) in self.excused}
                failing.update(s.source for s in said if s.reading is Reading.FAILING or s.source in excused)
                reached.update(s.source for s in said if s.reading is Reading.PASSING)
        return frozenset(source for source, times in failing.items() if times > 1 and source not in reached)

    def move_cost(self, broker: int) -> MoveCost:
        """What moving the broker's leaders away and back costs its clients."""
        cost = self.snapshot.move_cost
        return cost.with_coordinators() if broker in self.snapshot.cluster.coordinators else cost

    def move_cost_with_syncs(self, broker: int) -> MoveCost:
        """The same, and what acks=all loses on everything that the broker follows: the first append in the new epoch of
        each moved leader syncs a checkpoint there, one after the other. Fast syncs are part of what moves cost before.
        """
        cost, sync = self.move_cost(broker), self.syncs.seconds.get(broker, 0.0)
        if sync < SLOW_SYNC_SECONDS:
            return cost
        return cost.with_syncs(self.snapshot.cluster.leader_counts[broker], sync)

    @cached_property
    def limit_factors(self) -> Mapping[HarmCause, LimitFactor]:
        """The limit of harm as a multiple of the cost, by cause, as past disturbances in this cluster recommend."""
        price = self.snapshot.move_cost.seconds * self.detection.tolerance
        return {cause: self.snapshot.harm_history.limit_factor(cause, price) for cause in HarmCause}

    @cached_property
    def writes(self) -> SecondsByBroker:
        """What writes to the disks cost, by broker."""
        return self._worst(SignalType.STORAGE_LATENCY, _lost_by_disk)

    @cached_property
    def syncs(self) -> SecondsByBroker:
        """What a sync takes, by broker; not harm, as no client waits for one."""
        return self._worst(SignalType.STORAGE_LATENCY, lambda signal: signal.value)

    @cached_property
    def reads(self) -> SecondsByBroker:
        """What reads from the disks cost, by broker."""
        return self._worst(SignalType.READ_LATENCY, _lost_by_disk)

    def _worst(self, type_: str, figure: Callable[[Signal], float | None]) -> SecondsByBroker:
        """The largest figure of the fresh log directories of each live broker; none where no directory has one."""
        live = self.snapshot.cluster.live
        return SecondsByBroker(
            {
                broker: max(figures)
                for broker, _ in self._of_type(type_)
                if broker in live
                and (figures := [one for s in self.heard(broker, type_) if (one := figure(s)) is not None])
            }
        )

    @cached_property
    def external_clients_seen(self) -> Mapping[int, bool]:
        """Whether each live broker's own socket table shows external clients, where that is known."""
        kind, live = SignalType.SELF_REACHABILITY, self.snapshot.cluster.live
        words = {b: [s.reading for s in self.heard(b, kind)] for b, _ in self._of_type(kind) if b in live}
        return {broker: Reading.PASSING in said for broker, said in words.items() if said}

    @cached_property
    def brokers_with_clients(self) -> int:
        """Number of brokers with external clients, by their own socket tables."""
        return sum(self.external_clients_seen.values())

    def _of_type(self, type_: str) -> Iterable[tuple[int, Sequence[Signal]]]:
        return self.by_type.get(type_, _NOTHING).items()


def lost_seconds(signal: Signal) -> float:
    """Harm of a failing signal. One without figures counts as the largest: its source has applied thresholds."""
    return signal.harm.lost_seconds if signal.harm is not None else LARGEST_LOST_SECONDS


def _lost_by_disk(signal: Signal) -> float:
    return lost_seconds(signal) if signal.reading is Reading.FAILING else 0.0


def agreed(words: Iterable[Signal], need: int) -> float:
    """What the vantage lost that lost least of those that a quorum needs, in seconds; 0 without a quorum that fails."""
    lost = sorted((lost_seconds(s) for s in words if s.reading is Reading.FAILING), reverse=True)
    return lost[need - 1] if len(lost) >= need > 0 else 0.0


def ongoing(signal: Signal) -> bool:
    """Whether the last request of a failing signal was lost; True for one without figures."""
    return signal.harm is None or signal.harm.ongoing


def fresh(signal: Signal, stale_after_seconds: float) -> bool:
    """Whether a signal is evidence: its source was renewed recently enough, and its reading is not Unknown."""
    return signal.reading is not Reading.UNKNOWN and recent(signal, stale_after_seconds)


def recent(signal: Signal, stale_after_seconds: float) -> bool:
    """Whether a signal's source was renewed recently enough, whatever it reports."""
    return signal.age_seconds is not None and signal.age_seconds <= stale_after_seconds


def vantage_items(
    said: Iterable[Signal], stale_after_seconds: float, counted: Collection[str], failed: Callable[[Signal], bool]
) -> tuple[EvidenceItem, ...]:
    """Signals of vantages as evidence items: only vantages that are ``counted`` and have not ``failed`` count."""
    items = []
    for signal in said:
        why = "every broker fails from this vantage, so the vantage itself has failed" if failed(signal) else ""
        why = why if signal.source in counted else "the policy does not name this vantage"
        items.append(evidence_item(signal, stale_after_seconds, why))
    return tuple(items)


def evidence_item(
    signal: Signal, stale_after_seconds: float, ignored_because: str = "", *, compared: str = ""
) -> EvidenceItem:
    """A signal as an evidence item, with what it was compared with and, if ignored, why."""
    if not ignored_because and not fresh(signal, stale_after_seconds):
        if signal.age_seconds is None:
            ignored_because = f"{NOT_REPORTED} since this process started"
        elif signal.reading is Reading.UNKNOWN:
            ignored_because = "it reports Unknown"
        else:
            ignored_because = f"stale: {NOT_REPORTED} for more than {stale_after_seconds} s"
    message = f"{signal.message}; {compared}" if signal.message and compared else signal.message or compared
    return EvidenceItem(str(signal.type), signal.source, signal.reading, signal.since, message, ignored_because)
