"""Demote log directories: a broker with one bad directory of several (JBOD) goes on leading what lies in the others.

In: the context, and the brokers that stay demoted as a whole. Out: the demoted directories, the replicas in them, and
what is held. Called by ``decisions``. Unknown moves nothing: a directory is not demoted before its broker has said
what lies in it, and while that is unknown a demoted one keeps exactly the partitions that were moved because of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bellwether.core.demotion.cap import cap_reached, demoted_by_signals, shared_symptom
from bellwether.core.demotion.cure_choice import choose_cures
from bellwether.core.demotion.dwell import dwell_left
from bellwether.core.detection.context import Context
from bellwether.core.detection.findings import fresh
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.flap_damping import stabilization
from bellwether.core.model.log_dirs import DemotedLogDir, LogDir, partitions_in
from bellwether.core.model.refusals import BrokerHold
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import DemotedBroker, EntryState
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection
from bellwether.core.settings.policy import PromotionMode
from bellwether.core.signals import OverrideState, Reading, Signal, SignalType


@dataclass(frozen=True)
class LogDirDecisions:
    """Demoted directories, and what follows. ``dwelling`` has seconds left by broker."""

    demoted: Mapping[LogDir, DemotedLogDir] = field(default_factory=dict)
    partitions: Mapping[LogDir, frozenset[PartitionKey]] = field(default_factory=dict)
    """What lies in each of them; while that is unknown, what was moved because of it."""
    replicas: Mapping[PartitionKey, frozenset[int]] = field(default_factory=dict)
    """The same by partition: brokers whose replica lies in a demoted directory."""
    held: tuple[BrokerHold, ...] = ()
    dwelling: Mapping[int, float] = field(default_factory=dict)
    to_hold: tuple[int, ...] = ()
    """Brokers of which one directory is slow, and that are held as a whole instead."""

    @staticmethod
    def of(demoted: Mapping[LogDir, DemotedLogDir], snapshot: Snapshot) -> LogDirDecisions:
        """Decisions to keep exactly these directories demoted."""
        partitions = {log_dir: _partitions(log_dir, snapshot) for log_dir in demoted}
        brokers: defaultdict[PartitionKey, set[int]] = defaultdict(set)
        for log_dir, keys in partitions.items():
            for key in keys:
                brokers[key].add(log_dir.broker)
        return LogDirDecisions(demoted, partitions, {key: frozenset(here) for key, here in brokers.items()})


def decide_log_dirs(kept: Mapping[int, DemotedBroker], context: Context) -> LogDirDecisions:
    """Decide which directories are demoted from now on. ``kept`` are the brokers that are demoted as a whole."""
    snapshot = context.snapshot
    demoted, held = _still_demoted(kept, context)
    partly = [v for v in context.verdicts.values() if v.reason is Reason.LOG_DIR_SLOW]
    slow = [v for v in partly if _eligible(v.broker, kept, snapshot)]
    new = [v for v in slow if any(LogDir(v.broker, path) not in demoted for path in v.log_dirs)]
    admitted, refused = _admitted(new, kept, {one.broker for one in demoted}, context)
    dwelling = {v.broker: left for v in admitted if (left := dwell_left(v, context))}
    cures = choose_cures([v for v in admitted if v.broker not in dwelling], kept, context)
    for verdict in cures.demoted:
        for path in verdict.log_dirs:
            log_dir = LogDir(verdict.broker, path)
            if log_dir in demoted:
                continue
            if (problem := _unknown(log_dir, snapshot)) is not None:
                refused.append(BrokerHold(verdict.broker, Reason.NO_EVIDENCE, problem))
                continue
            demoted[log_dir] = DemotedLogDir(
                log_dir, verdict.reason, verdict.message, snapshot.now, verdict.signal or SignalType.STORAGE_LATENCY
            )
    demoted = dict(sorted(demoted.items()))
    held += [*refused, *cures.held]
    found = LogDirDecisions.of(demoted, snapshot)
    return replace(found, held=tuple(held), dwelling=dwelling, to_hold=cures.to_hold)


def known_slow(context: Context) -> dict[LogDir, DemotedLogDir]:
    """The demoted directories that are slow still: those that the deletion of a policy leaves as they are."""
    slow = {LogDir(v.broker, path) for v in context.verdicts.values() for path in v.log_dirs}
    return {one: was for one, was in context.snapshot.record.log_dirs.items() if one in slow}


def in_slow_log_dirs(context: Context) -> dict[int, frozenset[PartitionKey]]:
    """Partitions with a replica in a slow directory, demoted or not, by broker; without those that are unknown."""
    return {
        v.broker: frozenset(key for path in v.log_dirs for key in _partitions(LogDir(v.broker, path), context.snapshot))
        for v in context.verdicts.values()
        if v.log_dirs
    }


def _eligible(broker: int, kept: Collection[int], snapshot: Snapshot) -> bool:
    """Whether signals decide about a broker's directories: not where it is demoted, drained or overridden."""
    return broker not in kept and not snapshot.overridden(broker) and not snapshot.is_quarantined(broker)


def _still_demoted(kept: Collection[int], context: Context) -> tuple[dict[LogDir, DemotedLogDir], list[BrokerHold]]:
    snapshot, promotion = context.snapshot, context.policy.promotion
    demoted, held = {}, []
    busy = context.deferral
    for log_dir, was in sorted(snapshot.record.log_dirs.items()):
        override = snapshot.override_of(log_dir.broker)
        promoted = override is not None and override.state is OverrideState.PROMOTED
        if log_dir.broker in kept or log_dir.broker not in context.verdicts or promoted:
            continue  # the broker as a whole is demoted, is gone, or an override lets it lead
        demoted[log_dir] = was
        wait = stabilization(snapshot.flaps.get(log_dir.broker), context.policy)
        since = _passing_since(was, snapshot.signals, context.policy.detection)
        if since is None or snapshot.now - since < timedelta(seconds=wait):
            continue
        if promotion.mode is PromotionMode.MANUAL:
            text = f"log directory {log_dir.path} is fast again; set spec.override.state to Promoted to restore leaders"
            held.append(BrokerHold(log_dir.broker, Reason.PROMOTION_MANUAL, text))
        elif busy is not None:
            text = f"log directory {log_dir.path} is fast again; {busy.message}"
            held.append(BrokerHold(log_dir.broker, busy.reason, text))
        else:
            del demoted[log_dir]
    return demoted, held


def _passing_since(was: DemotedLogDir, signals: Iterable[Signal], detection: Detection) -> datetime | None:
    """Since when every signal of the directory passes; None while one fails, or the one that demoted it is stale."""
    patience = {
        SignalType.STORAGE_LATENCY: detection.storage.stale_after_seconds,
        SignalType.READ_LATENCY: detection.read_latency.stale_after_seconds,
    }
    said = [s for s in signals if (s.broker, s.directory) == was.log_dir and s.type in patience]
    if any(s.reading is Reading.FAILING for s in said):
        return None
    passing = [s for s in said if s.reading is Reading.PASSING and fresh(s, patience[SignalType(s.type)])]
    return max(s.since for s in passing) if any(s.type == was.signal for s in passing) else None


def _admitted(
    slow: list[Verdict], kept: Mapping[int, DemotedBroker], with_demoted: set[int], context: Context
) -> tuple[list[Verdict], list[BrokerHold]]:
    """Invariant 4. Brokers with a demoted directory need room in the cap next to the demoted brokers. They use up
    none of it themselves: a broker that is sick as a whole does not wait for directories.
    """
    if not slow:
        return [], []
    if (text := shared_symptom(kept, context)) is not None:
        return [], [BrokerHold(v.broker, Reason.SYSTEMIC_CAUSE, text) for v in slow]
    snapshot = context.snapshot
    affected = demoted_by_signals(kept, snapshot) | with_demoted
    cap = context.policy.demotion.cap(len(snapshot.cluster.named))
    admitted, held = [], []
    for verdict in sorted(slow, key=lambda v: (v.broker not in affected, v.since, v.broker)):
        if verdict.broker in affected or len(affected) < cap:
            affected.add(verdict.broker)
            admitted.append(verdict)
        else:
            text = cap_reached(affected, "demoted by signals, or log directories of theirs", context)
            held.append(BrokerHold(verdict.broker, Reason.CAP_REACHED, text))
    return admitted, held


def _unknown(log_dir: LogDir, snapshot: Snapshot) -> str | None:
    """Why it is not known what lies in a directory; None if it is."""
    placement = snapshot.log_dirs.get(log_dir.broker)
    if placement is None:
        return (
            f"log directory {log_dir.path} is slow and not demoted: the broker has not answered DescribeLogDirs, so it"
            " is unknown which partitions lie in it; check the ACL Describe on Cluster"
        )
    if partitions_in(log_dir.path, placement) is None:
        return (
            f"log directory {log_dir.path} is slow and not demoted: the broker has no directory of that path, it has"
            f" {', '.join(sorted(placement))}; correct --log-dir of its storage probe"
        )
    return None


def _partitions(log_dir: LogDir, snapshot: Snapshot) -> frozenset[PartitionKey]:
    placement = snapshot.log_dirs.get(log_dir.broker)
    names = partitions_in(log_dir.path, placement) if placement is not None else None
    if names is None:
        return frozenset(_moved_because_of(log_dir.broker, snapshot))
    return frozenset(p.key for p in snapshot.cluster.held_by(log_dir.broker) if p.name in names)


def _moved_because_of(broker: int, snapshot: Snapshot) -> Iterable[PartitionKey]:
    """Partitions whose order was written with the broker further back than in their own order."""
    for key, entry in snapshot.record.entries.items():
        known = broker in entry.baseline and broker in entry.written
        moved = known and entry.written.index(broker) > entry.baseline.index(broker)
        if moved and entry.state is not EntryState.RESTORED:
            yield key
