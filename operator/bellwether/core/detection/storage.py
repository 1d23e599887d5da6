"""Storage latency: weigh the harm of a broker's slow disk against the cost of a move. Called by ``verdicts``.

The prober on the broker's disk has counted the appends and the reads that missed their objective. The objective is
absolute; the other brokers' disks decide whose fault it is: a slowdown of all disks is not one broker's, and moving
leaders from one slow disk to another does not help. Writes are compared with writes, reads with reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from bellwether.core.detection.findings import (
    EvidenceItem,
    Finding,
    SecondsByBroker,
    SignalIndex,
    below_cost,
    evidence_item,
    lost_seconds,
    ongoing,
    passing,
    shared_cause,
)
from bellwether.core.detection.harm_weighing import weigh
from bellwether.core.detection.health_states import Evidence
from bellwether.core.model.history.harm_history import HarmCause
from bellwether.core.reasons import Reason
from bellwether.core.settings.harm import SHARED_RATIO, SLOW_SYNC_SECONDS, STALLED_SECONDS
from bellwether.core.signals import Reading, Signal, SignalType

STALLED_SEVERITY = 4
SLOW_SEVERITY = 3
FAR_SLOWER = 10


class _Requests(NamedTuple):
    """One kind of requests to the disk. ``said`` is how a slow disk is described, ``objective`` in milliseconds."""

    type: SignalType
    plural: str
    said: str
    reason: Reason
    objective: int
    harm: SecondsByBroker


def storage_latency(broker: int, index: SignalIndex) -> Finding:
    """Judge a broker's log directories by writes; the one that cost clients the most counts."""
    patience = index.detection.storage_latency.stale_after_seconds
    said = index.about(broker, SignalType.STORAGE_LATENCY)
    objective = index.detection.objectives.produce_milliseconds
    slow, type_ = "its log directory is slow", SignalType.STORAGE_LATENCY
    writes = _Requests(type_, "writes", slow, Reason.STORAGE_SLOW, objective, index.writes)
    found = _judged(broker, said, patience, writes, index)
    if found is not None:
        return _slow_syncs(broker, index, found) if found.evidence is Evidence.GOOD else found
    text = "the signal of its storage probe is stale" if said else "no storage probe has reported on it"
    change = "a fresh signal: check the storage probe next to it"
    return Finding(Evidence.MISSING, Reason.NO_EVIDENCE, text, facts=_facts(said, patience), change=change)


def slow_syncs(broker: int, index: SignalIndex) -> bool:
    """Whether syncs of a broker's log directory are slow, and not those of its peers as well."""
    seconds, peers = index.syncs.seconds.get(broker, 0.0), index.syncs.of_peers(broker) or 0.0
    return seconds >= max(SLOW_SYNC_SECONDS, SHARED_RATIO * peers)


def _slow_syncs(broker: int, index: SignalIndex, found: Finding) -> Finding:
    """A disk that is slow to sync alone harms no client while its leaders stay, so nothing moves, there or back.

    Kafka appends without a sync, but the first append in a new leader epoch syncs a checkpoint on every member of the
    ISR, in the thread that appends (``LeaderEpochFileCache.assign``).
    """
    if not slow_syncs(broker, index):
        return found
    text = (
        f"its log directory takes {milliseconds(index.syncs.seconds[broker])} for a sync, at least twice as long as its"
        " peers'; no client waits for a sync, until leaders move: with acks=all each moved leader waits for one"
    )
    change = f"syncs that take less than {milliseconds(SLOW_SYNC_SECONDS)}"
    signal = SignalType.STORAGE_LATENCY
    return Finding(Evidence.DOUBTFUL, Reason.SYNCS_SLOW, text, facts=found.facts, change=change, signal=signal)


def stalled_without_metadata_log(said: Iterable[Signal]) -> tuple[str, ...]:
    """Directories to which an append does not end; empty if the metadata log lies in one of them, or may do so.

    A broker whose metadata log hangs sends no heartbeats and is fenced; one whose metadata log goes on is not.
    """
    failing = (s for s in said if (s.type, s.reading) == (SignalType.STORAGE_LATENCY, Reading.FAILING))
    stalled = [s for s in failing if (s.latency_seconds or 0.0) >= STALLED_SECONDS]
    if any(s.metadata_log is not False for s in stalled):
        return ()
    return tuple(sorted({s.directory for s in stalled}))


def read_latency(broker: int, index: SignalIndex, *, asked: bool) -> Finding | None:
    """Judge a broker's log directories by reads; None if none were reported. Reads that cannot be measured, as without
    an old segment, are no evidence, and raise no doubt.

    ``asked``: slow reads demoted the broker, so they must be known to be fast again.
    """
    patience = index.detection.read_latency.stale_after_seconds
    said = index.about(broker, SignalType.READ_LATENCY)
    if not said and not asked:
        return None
    objective = index.detection.objectives.fetch_milliseconds
    slow, type_ = "its log directory is slow to read", SignalType.READ_LATENCY
    reads = _Requests(type_, "reads", slow, Reason.READS_SLOW, objective, index.reads)
    found = _judged(broker, said, patience, reads, index)
    if found is not None:
        return found
    if asked:
        change = "a fresh signal with measured reads: check the storage probe next to it"
        text = "no fresh signal shows that reads from its log directory are fast again"
        return Finding(Evidence.MISSING, Reason.NO_EVIDENCE, text, facts=_facts(said, patience), change=change)
    return passing(_facts(said, patience))


def _judged(
    broker: int, said: Sequence[Signal], patience: int, requests: _Requests, index: SignalIndex
) -> Finding | None:
    """The finding by fresh signals; None without one."""
    words = index.heard(broker, requests.type)
    facts = _facts(said, patience)
    slow = [s for s in words if s.reading is Reading.FAILING]
    if slow:
        found = _slow(broker, slow, requests, index, facts)
        return _only_some(broker, found, slow, requests, index) if found.evidence is Evidence.BAD else found
    if not words:
        return None
    change = (
        f"{requests.plural} taking longer than {requests.objective} ms until probes have lost as much as a move costs,"
        " while its peers' are faster"
    )
    return passing(facts, change)


def _slow(
    broker: int, slow: Sequence[Signal], requests: _Requests, index: SignalIndex, facts: tuple[EvidenceItem, ...]
) -> Finding:
    worst = max(slow, key=lambda s: (lost_seconds(s), inf if s.latency_seconds is None else s.latency_seconds))
    weighed = weigh(lost_seconds(worst), broker, index, HarmCause.STORAGE, ongoing=any(map(ongoing, slow)))
    peers = requests.harm.of_peers(broker)
    said = f"{requests.said}: {worst.message}" if worst.message else requests.said
    if not weighed.worth_moving:
        if not weighed.noticeable and broker not in index.snapshot.record.demoted:
            return passing(facts, f"probes losing {weighed.limit_seconds:.1f} s: {weighed}")
        change = f"{weighed.change}, five seconds of fast {requests.plural} Healthy"
        return below_cost(f"{said}; {weighed}", facts, change, requests.type)
    if peers is None:
        missing = f"no other broker's storage probe reports {requests.plural}"
        text = f"{said}; {missing}, so a shared cause cannot be excluded"
        change = "a storage probe next to each of its peers"
        return shared_cause(text, facts, change, requests.type)
    if weighed.shared_with(peers):
        text = f"{said}; so are its peers' (less than {SHARED_RATIO:g} times as fast): probably a shared cause"
        change = "its probes losing much more than those of its peers"
        return shared_cause(text, facts, change, requests.type)
    objective = requests.objective / 1000
    far = worst.latency_seconds is None or worst.latency_seconds >= FAR_SLOWER * objective
    change = f"five seconds of {requests.plural} within the objective, or its peers becoming as slow"
    severity = STALLED_SEVERITY if far else SLOW_SEVERITY
    return Finding(Evidence.BAD, requests.reason, f"{said}; {weighed}", severity, facts, change)


def _only_some(broker: int, found: Finding, slow: Sequence[Signal], requests: _Requests, index: SignalIndex) -> Finding:
    """The finding for the bad directories of a broker of which others are not bad; else ``found``.

    A broker that is demoted as a whole stays so until all of its directories are well.
    """
    known, demoted = index.log_dirs(broker), broker in index.snapshot.record.demoted
    if demoted or len(known) < 2:
        return found
    by_directory = {path: [s for s in slow if s.directory == path] for path in sorted(known)}
    judged = {path: _slow(broker, said, requests, index, ()) for path, said in by_directory.items() if said}
    bad = tuple(path for path, one in judged.items() if one.evidence is Evidence.BAD)
    if len(bad) == len(known):
        return found
    text = f"{len(bad)} of its {len(known)} log directories ({', '.join(bad)}): {judged[bad[0]].message}"
    change = f"five seconds of fast {requests.plural} in it, or the other directories failing, too"
    doubtful, reason = Evidence.DOUBTFUL, Reason.LOG_DIR_SLOW
    return Finding(doubtful, reason, text, found.severity, found.facts, change, requests.type, bad)


def _facts(said: Sequence[Signal], patience: int) -> tuple[EvidenceItem, ...]:
    usual = [f"usual here {milliseconds(s.usual_seconds)}" if s.usual_seconds is not None else "" for s in said]
    return tuple(evidence_item(s, patience, compared=text) for s, text in zip(said, usual, strict=True))


def milliseconds(seconds: float) -> str:
    """A latency for messages, with two significant digits below 100 ms."""
    return f"{seconds * 1000:.2g} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"
