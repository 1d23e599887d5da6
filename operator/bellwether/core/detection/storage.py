"""Storage latency: compare a broker's disk with its limit, its own history and its peers. Called by ``verdicts``.

The prober on the broker's disk has counted slow writes against the limit and the disk's own history. Here
the disk is compared with the other brokers' disks: a slowdown of all disks is not one broker's fault, and moving
leaders from one slow disk to another does not help.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellwether.core.detection.findings import EvidenceItem, Finding, SignalIndex, evidence_item, fresh, passing
from bellwether.core.detection.health_states import Evidence
from bellwether.core.reasons import Reason
from bellwether.core.signals import Reading, Signal, SignalType

STALLED_SEVERITY = 4
SLOW_SEVERITY = 3
FAR_SLOWER = 10


def storage_latency(broker: int, index: SignalIndex) -> Finding:
    """Judge a broker's log directories; the slowest one counts."""
    settings = index.detection.storage
    said = index.about(broker, SignalType.STORAGE_LATENCY)
    words = [s for s in said if fresh(s, settings.stale_after_seconds)]
    usual = index.latency_of_peers(broker)
    facts = _facts(said, usual, settings.stale_after_seconds)
    slow = [s for s in words if s.reading is Reading.FAILING]
    if slow:
        return _slow(slow, usual, index, facts)
    if not words:
        text = "the signal of its storage probe is stale" if said else "no storage probe has reported on it"
        change = "a fresh signal: check the storage probe next to it"
        return Finding(Evidence.MISSING, Reason.NO_EVIDENCE, text, facts=facts, change=change)
    change = (
        f"{settings.failure_threshold} of its last {settings.window_samples} writes taking more than"
        f" {settings.threshold_milliseconds} ms, and {settings.peer_ratio} times as long as its peers'"
    )
    return passing(facts, change)


def _slow(slow: Sequence[Signal], usual: float | None, index: SignalIndex, facts: tuple[EvidenceItem, ...]) -> Finding:
    settings = index.detection.storage
    worst = max(slow, key=lambda s: s.latency_seconds if s.latency_seconds is not None else float("inf"))
    latency = worst.latency_seconds
    said = f"its log directory is slow: {worst.message}" if worst.message else "its log directory is slow"
    if latency is not None and usual is not None and latency < settings.peer_ratio * usual:
        text = f"{said}; so are its peers' (less than {settings.peer_ratio} times faster): probably a shared cause"
        change = f"its writes taking {settings.peer_ratio} times as long as the median of its peers'"
        return Finding(Evidence.DOUBTFUL, Reason.SYSTEMIC_CAUSE, text, facts=facts, change=change)
    far = latency is None or latency * 1000 >= FAR_SLOWER * settings.threshold_milliseconds
    change = f"{settings.success_threshold} fast writes in a row, or its peers becoming as slow"
    severity = STALLED_SEVERITY if far else SLOW_SEVERITY
    return Finding(Evidence.BAD, Reason.STORAGE_SLOW, said, severity, facts, change)


def _facts(said: Sequence[Signal], usual: float | None, patience: int) -> tuple[EvidenceItem, ...]:
    peers = f"median of its peers {milliseconds(usual)}" if usual is not None else ""
    facts = []
    for signal in said:
        own = f"usual here {milliseconds(signal.usual_seconds)}" if signal.usual_seconds is not None else ""
        facts.append(evidence_item(signal, patience, compared=f"{own}, {peers}" if own and peers else own or peers))
    return tuple(facts)


def milliseconds(seconds: float) -> str:
    """A latency for messages, with two significant digits below 100 ms."""
    return f"{seconds * 1000:.2g} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"
