"""What one kind of evidence says of one broker: a finding with its reason, its facts, and what would change it.

Made by ``reachability``, ``storage`` and ``watched``; ``verdicts`` takes the worst. Texts hold no ages and no figure
that changes without a signal having changed, so the same news makes the same bytes (law 8).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from bellwether.core.detection import Detection
from bellwether.core.reasons import Reason
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.core.snapshots import Snapshot
from bellwether.core.transitions import Evidence

WORST_FIRST = tuple(Evidence)


class Fact(NamedTuple):
    """One source's word as it was judged. ``passed_over`` is why it did not count, empty when it did."""

    type: str
    source: str
    reading: Reading
    since: datetime | None
    message: str = ""
    passed_over: str = ""


class Finding(NamedTuple):
    """What one kind of evidence says; ``change`` is what would have to happen for it to say something else."""

    evidence: Evidence
    reason: Reason
    message: str
    severity: int = 0
    facts: tuple[Fact, ...] = ()
    change: str = ""


def passing(facts: tuple[Fact, ...] = (), change: str = "") -> Finding:
    """Nothing is wrong."""
    return Finding(Evidence.GOOD, Reason.SIGNALS_PASSING, "every signal passes", facts=facts, change=change)


def worst(findings: Iterable[Finding]) -> Finding:
    """The worst finding, the more severe of two alike. ValueError when there is none."""
    return min(findings, key=lambda f: (WORST_FIRST.index(f.evidence), -f.severity))


@dataclass(frozen=True)
class Scene:
    """The signals of one turn, sorted once for all brokers."""

    snapshot: Snapshot
    detection: Detection
    by_broker: Mapping[int, Mapping[str, tuple[Signal, ...]]] = field(default_factory=dict)

    @staticmethod
    def of(snapshot: Snapshot, detection: Detection) -> Scene:
        """The scene of a turn."""
        sorted_: dict[int, dict[str, list[Signal]]] = {}
        for signal in snapshot.signals:
            sorted_.setdefault(signal.broker, {}).setdefault(str(signal.type), []).append(signal)
        return Scene(snapshot, detection, {b: {t: tuple(s) for t, s in k.items()} for b, k in sorted_.items()})

    def about(self, broker: int, type_: str) -> tuple[Signal, ...]:
        """The signals of one kind on one broker."""
        return self.by_broker.get(broker, {}).get(str(type_), ())

    @cached_property
    def vantages(self) -> tuple[str, ...]:
        """The vantages that make up the quorum: those configured, else whoever has reported."""
        configured = self.detection.reachability.vantages
        known = {s.source for s in self.snapshot.signals if s.type == SignalType.EXTERNAL_REACHABILITY}
        return tuple(sorted(configured or known))

    @cached_property
    def blind(self) -> frozenset[str]:
        """Vantages that see every live broker fail: they have failed themselves (law 5)."""
        live = self.snapshot.cluster.live
        seen: dict[str, list[Reading]] = {}
        for signal in self.snapshot.signals:
            if signal.type == SignalType.EXTERNAL_REACHABILITY and signal.broker in live:
                seen.setdefault(signal.source, []).append(signal.reading)
        return frozenset(s for s, said in seen.items() if len(said) > 1 and set(said) == {Reading.FAILING})

    @cached_property
    def storage_latencies(self) -> Mapping[int, float]:
        """The slowest fresh log directory of each live broker, in seconds."""
        patience = self.detection.storage.stale_after_seconds
        return {
            broker: max(latencies)
            for broker in self.snapshot.cluster.live
            if (
                latencies := [
                    s.latency_seconds
                    for s in self.about(broker, SignalType.STORAGE_LATENCY)
                    if fresh(s, patience) and s.latency_seconds is not None
                ]
            )
        }

    @cached_property
    def _sorted_latencies(self) -> list[float]:
        return sorted(self.storage_latencies.values())

    def latency_of_peers(self, broker: int) -> float | None:
        """The median of the other brokers' latencies, in seconds; ``None`` where there is nobody to compare with."""
        everybody, own = self._sorted_latencies, self.storage_latencies.get(broker)
        peers = len(everybody) - (own is not None)
        if peers <= 0:
            return None
        # One list is sorted for all brokers: a broker's own place in it is stepped over.
        place = bisect_left(everybody, own) if own is not None else len(everybody)
        low, high = (everybody[i + (i >= place)] for i in ((peers - 1) // 2, peers // 2))
        return (low + high) / 2

    @cached_property
    def heard_from_outside(self) -> Mapping[int, bool]:
        """Whether each live broker's own socket table shows somebody from outside, as far as it is known."""
        patience = self.detection.self_reachability.stale_after_seconds
        said = {
            broker: [s for s in self.about(broker, SignalType.SELF_REACHABILITY) if fresh(s, patience)]
            for broker in self.snapshot.cluster.live
        }
        return {b: any(s.reading is Reading.PASSING for s in words) for b, words in said.items() if words}

    @cached_property
    def leading(self) -> Mapping[int, int]:
        """How many partitions each broker leads."""
        return self.snapshot.cluster.leaders()


def fresh(signal: Signal, stale_after_seconds: float) -> bool:
    """Whether a signal is evidence: its source was heard of recently enough, and it says something."""
    heard = signal.age_seconds is not None and signal.age_seconds <= stale_after_seconds
    return heard and signal.reading is not Reading.UNKNOWN


def fact(signal: Signal, stale_after_seconds: float, passed_over: str = "") -> Fact:
    """A signal as a fact, with why it does not count where it does not."""
    if not passed_over and signal.age_seconds is None:
        passed_over = "its prober has not been heard of since this process began to listen"
    elif not passed_over and not fresh(signal, stale_after_seconds):
        text = f"its prober has been silent for more than {stale_after_seconds} s"
        passed_over = "it says Unknown" if signal.reading is Reading.UNKNOWN else text
    return Fact(str(signal.type), signal.source, signal.reading, signal.since, signal.message, passed_over)
