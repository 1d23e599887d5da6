"""What one kind of evidence says of one broker: a finding with its reason, its facts, and what would change it.

Made by ``reachability``, ``storage`` and ``thresholds``; ``verdicts`` takes the worst. Texts hold no ages and no figure
that changes without a signal having changed, so the same news makes the same bytes (law 8).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from statistics import median
from typing import NamedTuple

from bellwether.core.detection.health_states import Evidence
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection
from bellwether.core.signals import Reading, Signal, SignalType

_NOTHING: Mapping[int, Sequence[Signal]] = {}
_NOBODY: Mapping[int, datetime] = {}
WORST_FIRST = tuple(Evidence)
_RANK = {evidence: rank for rank, evidence in enumerate(WORST_FIRST)}


class EvidenceItem(NamedTuple):
    """One source's word as it was judged. ``passed_over`` is why it did not count, empty when it did."""

    type: str
    source: str
    reading: Reading
    since: datetime | None
    message: str = ""
    ignored_because: str = ""


class Finding(NamedTuple):
    """What one kind of evidence says; ``change`` is what would have to happen for it to say something else."""

    evidence: Evidence
    reason: Reason
    message: str
    severity: int = 0
    facts: tuple[EvidenceItem, ...] = ()
    change: str = ""


_WELL = (Evidence.GOOD, Reason.SIGNALS_PASSING, "every signal passes", 0)


def passing(facts: tuple[EvidenceItem, ...] = (), change: str = "") -> Finding:
    """Nothing is wrong."""
    return Finding(*_WELL, facts, change)


def worst(findings: Iterable[Finding]) -> Finding:
    """The worst finding, the more severe of two alike. ValueError when there is none."""
    return min(findings, key=lambda f: (_RANK[f.evidence], -f.severity))


@dataclass(frozen=True)
class SignalIndex:
    """The signals of one turn, sorted once for all brokers."""

    snapshot: Snapshot
    detection: Detection
    by_broker: Mapping[int, Sequence[Signal]] = field(default_factory=dict)
    by_type: Mapping[str, Mapping[int, Sequence[Signal]]] = field(default_factory=dict)

    @staticmethod
    def of(snapshot: Snapshot, detection: Detection, resumed: Mapping[int, datetime] = _NOBODY) -> SignalIndex:
        """The scene of a turn. ``resumed``: when the maintenance of brokers ended that are still given time.

        What is said of a broker in maintenance counts neither for it nor against its peers; what has failed ever since
        before its end is no evidence yet.
        """
        by_broker: defaultdict[int, list[Signal]] = defaultdict(list)
        by_type: defaultdict[str, defaultdict[int, list[Signal]]] = defaultdict(lambda: defaultdict(list))
        for said in snapshot.signals:
            if said.broker in snapshot.maintenance:
                continue
            signal, end = said, resumed.get(said.broker)
            if end is not None and said.reading is Reading.FAILING and said.since <= end:
                signal = replace(said, reading=Reading.UNKNOWN)
            by_broker[signal.broker].append(signal)
            by_type[signal.type][signal.broker].append(signal)
        return SignalIndex(snapshot, detection, dict(by_broker), {t: dict(said) for t, said in by_type.items()})

    def about(self, broker: int, type_: str) -> Sequence[Signal]:
        """The signals of one kind on one broker."""
        return self.by_type.get(type_, _NOTHING).get(broker, ())

    @cached_property
    def vantages(self) -> tuple[str, ...]:
        """The vantages that make up the quorum: those configured, else whoever has reported."""
        if self.detection.reachability.vantages:
            return tuple(sorted(self.detection.reachability.vantages))
        return tuple(sorted({s.source for said in self._of_type(SignalType.EXTERNAL_REACHABILITY) for s in said[1]}))

    @cached_property
    def blind(self) -> frozenset[str]:
        """Vantages that see every live broker fail: they have failed themselves (law 5)."""
        asked, reached = Counter[str](), set[str]()
        for broker, said in self._of_type(SignalType.EXTERNAL_REACHABILITY):
            if broker in self.snapshot.cluster.live:
                asked.update(s.source for s in said)
                reached.update(s.source for s in said if s.reading is not Reading.FAILING)
        return frozenset(source for source, times in asked.items() if times > 1 and source not in reached)

    @cached_property
    def storage_latencies(self) -> Mapping[int, float]:
        """The slowest fresh log directory of each live broker, in seconds."""
        patience, live = self.detection.storage.stale_after_seconds, self.snapshot.cluster.live
        return {
            broker: max(latencies)
            for broker, said in self._of_type(SignalType.STORAGE_LATENCY)
            if broker in live
            and (latencies := [s.latency_seconds for s in said if s.latency_seconds is not None and fresh(s, patience)])
        }

    @cached_property
    def _sorted_latencies(self) -> list[float]:
        return sorted(self.storage_latencies.values())

    def latency_of_peers(self, broker: int) -> float | None:
        """The median of the other brokers' latencies, in seconds; ``None`` where there is nobody to compare with."""
        everybody, own = self._sorted_latencies, self.storage_latencies.get(broker)
        if own is None:
            return median(everybody) if everybody else None
        peers = len(everybody) - 1
        if not peers:
            return None
        # One list is sorted for all brokers: a broker's own place in it is stepped over.
        low, high = (peers - 1) // 2, peers // 2
        return (everybody[low + (everybody[low] >= own)] + everybody[high + (everybody[high] >= own)]) / 2

    @cached_property
    def external_clients_seen(self) -> Mapping[int, bool]:
        """Whether each live broker's own socket table shows somebody from outside, as far as it is known."""
        patience, live = self.detection.self_reachability.stale_after_seconds, self.snapshot.cluster.live
        words = {
            broker: [s.reading for s in said if fresh(s, patience)]
            for broker, said in self._of_type(SignalType.SELF_REACHABILITY)
            if broker in live
        }
        return {broker: Reading.PASSING in said for broker, said in words.items() if said}

    @cached_property
    def brokers_with_clients(self) -> int:
        """How many brokers somebody from outside talks to, by their own socket tables."""
        return sum(self.external_clients_seen.values())

    def _of_type(self, type_: str) -> Iterable[tuple[int, Sequence[Signal]]]:
        return self.by_type.get(type_, _NOTHING).items()

    @cached_property
    def leaving(self) -> frozenset[int]:
        """Brokers that are in no ISR beside another replica, though they hold replicas.

        The controller takes a broker that shuts down in an orderly way out of every ISR first (KIP-841).
        """
        together, apart = set[int](), set[int]()
        for partition in self.snapshot.cluster.partitions:
            if len(partition.isr) > 1:
                together.update(partition.isr)
            if len(partition.isr) < len(partition.replicas):
                apart.update(r for r in partition.replicas if r not in partition.isr)
        return frozenset(apart - together)

    @cached_property
    def leading(self) -> Mapping[int, int]:
        """How many partitions each broker leads."""
        return self.snapshot.cluster.leaders()


def fresh(signal: Signal, stale_after_seconds: float) -> bool:
    """Whether a signal is evidence: its source was heard of recently enough, and it says something."""
    age = signal.age_seconds
    return age is not None and age <= stale_after_seconds and signal.reading is not Reading.UNKNOWN


def evidence_item(
    signal: Signal, stale_after_seconds: float, passed_over: str = "", *, compared: str = ""
) -> EvidenceItem:
    """A signal as a fact, with what it was compared with, and with why it does not count where it does not."""
    if not passed_over and not fresh(signal, stale_after_seconds):
        if signal.age_seconds is None:
            passed_over = "its prober has not been heard of since this process began to listen"
        elif signal.reading is Reading.UNKNOWN:
            passed_over = "it says Unknown"
        else:
            passed_over = f"its prober has been silent for more than {stale_after_seconds} s"
    message = f"{signal.message}; {compared}" if signal.message and compared else signal.message or compared
    return EvidenceItem(str(signal.type), signal.source, signal.reading, signal.since, message, passed_over)
