"""Storage latency: weigh the harm of a broker's slow disk against the cost of a move. Called by ``verdicts``.

The prober on the broker's disk has counted the writes that missed the objective. The objective is absolute; the other
brokers' disks decide whose fault it is: a slowdown of all disks is not one broker's, and moving leaders from one slow
disk to another does not help.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from bellwether.core.detection.findings import (
    EvidenceItem,
    Finding,
    SignalIndex,
    below_cost,
    evidence_item,
    fresh,
    lost_seconds,
    ongoing,
    passing,
)
from bellwether.core.detection.harm_weighing import Weighing, weigh
from bellwether.core.detection.health_states import Evidence
from bellwether.core.reasons import Reason
from bellwether.core.settings.harm import SHARED_RATIO
from bellwether.core.signals import Reading, Signal, SignalType

STALLED_SEVERITY = 4
SLOW_SEVERITY = 3
FAR_SLOWER = 10


def storage_latency(broker: int, index: SignalIndex) -> Finding:
    """Judge a broker's log directories; the one that cost clients the most counts."""
    patience = index.detection.storage.stale_after_seconds
    said = index.about(broker, SignalType.STORAGE_LATENCY)
    words = [s for s in said if fresh(s, patience)]
    facts = _facts(said, patience)
    slow = [s for s in words if s.reading is Reading.FAILING]
    if slow:
        return _slow(broker, slow, index, facts)
    if not words:
        text = "the signal of its storage probe is stale" if said else "no storage probe has reported on it"
        change = "a fresh signal: check the storage probe next to it"
        return Finding(Evidence.MISSING, Reason.NO_EVIDENCE, text, facts=facts, change=change)
    change = (
        f"writes taking longer than {index.detection.objectives.produce_milliseconds} ms until clients have lost as"
        " much as a move costs, while its peers' are faster"
    )
    return passing(facts, change)


def _slow(broker: int, slow: Sequence[Signal], index: SignalIndex, facts: tuple[EvidenceItem, ...]) -> Finding:
    worst = max(slow, key=lambda s: (lost_seconds(s), inf if s.latency_seconds is None else s.latency_seconds))
    weighed = weigh(lost_seconds(worst), broker, index, ongoing=any(map(ongoing, slow)))
    peers = index.storage_harm_of_peers(broker)
    said = f"its log directory is slow: {worst.message}" if worst.message else "its log directory is slow"
    if not weighed.worth_moving:
        if not weighed.noticeable and broker not in index.snapshot.record.demoted:
            return passing(facts, f"clients losing {weighed.limit_seconds:.1f} s: {weighed}")
        change = f"{weighed.change}, five seconds of fast writes Healthy"
        return below_cost(f"{said}; {weighed}", facts, change, SignalType.STORAGE_LATENCY)
    if peers is None:
        text = f"{said}; no other broker's storage probe reports, so a shared cause cannot be excluded"
        change = "a storage probe next to each of its peers"
        return Finding(Evidence.DOUBTFUL, Reason.SYSTEMIC_CAUSE, text, facts=facts, change=change)
    if _shared(weighed, peers):
        text = f"{said}; so are its peers' (less than {SHARED_RATIO:g} times as fast): probably a shared cause"
        change = "its clients losing much more than those of its peers"
        return Finding(Evidence.DOUBTFUL, Reason.SYSTEMIC_CAUSE, text, facts=facts, change=change)
    limit = index.detection.objectives.produce_milliseconds / 1000
    far = worst.latency_seconds is None or worst.latency_seconds >= FAR_SLOWER * limit
    change = "five seconds of writes within the objective, or its peers becoming as slow"
    severity = STALLED_SEVERITY if far else SLOW_SEVERITY
    return Finding(Evidence.BAD, Reason.STORAGE_SLOW, f"{said}; {weighed}", severity, facts, change)


def _shared(weighed: Weighing, peers: float) -> bool:
    """Whether the peers' clients lose about as much: moving would save too little."""
    return weighed.lost_seconds - peers < weighed.limit_seconds or weighed.lost_seconds < SHARED_RATIO * peers


def _facts(said: Sequence[Signal], patience: int) -> tuple[EvidenceItem, ...]:
    return tuple(
        evidence_item(
            s, patience, compared=f"usual here {milliseconds(s.usual_seconds)}" if s.usual_seconds is not None else ""
        )
        for s in said
    )


def milliseconds(seconds: float) -> str:
    """A latency for messages, with two significant digits below 100 ms."""
    return f"{seconds * 1000:.2g} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"
