"""Demote log directories: a broker with one bad directory of several (JBOD) goes on leading what lies in the others.

In: the context, and the brokers that stay demoted as a whole. Out: the demoted directories, the replicas in them, and
what is held. Called by ``decisions``. Unknown moves nothing: a directory is not demoted before its broker has said
what lies in it, and while that is unknown a demoted one keeps exactly the partitions that were moved because of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from bellwether.core.demotion.cap import demoted_by_signals, shared_symptom
from bellwether.core.demotion.cure_choice import choose_cures
from bellwether.core.demotion.parts import admit_parts, by_partition, return_blocker
from bellwether.core.detection.context import Context
from bellwether.core.detection.findings import fresh
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.history.flap_damping import stabilization
from bellwether.core.model.history.known_good import NOT_YET_GOOD, Good, KnownGood, KnownGoods
from bellwether.core.model.log_dirs import DemotedLogDir, LogDir, partitions_in
from bellwether.core.model.refusals import BrokerHold
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import DemotedBroker, EntryState
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection
from bellwether.core.signals import Reading, Signal, SignalType


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
    known_good: KnownGoods = field(default_factory=dict, compare=False)
    """How long each of them is known to be good."""
    to_hold: tuple[int, ...] = ()
    """Brokers of which one directory is slow, and that are held as a whole instead."""

    @staticmethod
    def of(demoted: Mapping[LogDir, DemotedLogDir], snapshot: Snapshot) -> LogDirDecisions:
        """Decisions to keep exactly these directories demoted."""
        partitions = {log_dir: _partitions(log_dir, snapshot) for log_dir in demoted}
        by_broker = ((keys, {log_dir.broker}) for log_dir, keys in partitions.items())
        return LogDirDecisions(demoted, partitions, by_partition(by_broker))


def decide_log_dirs(kept: Mapping[int, DemotedBroker], context: Context) -> LogDirDecisions:
    """Decide which directories are demoted from now on. ``kept`` are the brokers that are demoted as a whole."""
    snapshot = context.snapshot
    demoted, known_good, held = _still_demoted(kept, context)
    # Where the broker is demoted, drained, held or overridden, signals do not decide about its directories.
    partly = [v for v in context.verdicts.values() if v.reason is Reason.LOG_DIR_SLOW and v.broker not in kept]
    slow = [v for v in partly if not (snapshot.overridden(v.broker) or snapshot.is_quarantined(v.broker))]
    new = [v for v in slow if any(LogDir(v.broker, path) not in demoted for path in v.log_dirs)]
    affected = demoted_by_signals(kept, snapshot) | {one.broker for one in demoted}
    admitted = admit_parts(
        sorted(new, key=lambda v: (v.broker not in affected, v.since, v.broker)),
        lambda v: (v.broker,),
        affected,
        context,
        shared=shared_symptom(kept, context) if new else None,
        how="demoted by signals, or log directories of theirs",
    )
    refused = [BrokerHold(v.broker, why.reason, why.message) for v, why in admitted.refused]
    cures = choose_cures(admitted.parts, kept, context)
    for verdict in cures.demoted:
        for path in verdict.log_dirs:
            log_dir = LogDir(verdict.broker, path)
            if log_dir in demoted:
                continue
            if (problem := _unknown(log_dir, snapshot)) is not None:
                refused.append(BrokerHold(verdict.broker, Reason.NO_EVIDENCE, problem))
                continue
            demoted[log_dir] = DemotedLogDir(
                *log_dir, verdict.reason, verdict.message, snapshot.now, verdict.signal or SignalType.STORAGE_LATENCY
            )
    demoted = dict(sorted(demoted.items()))
    held += [*refused, *cures.held]
    found = LogDirDecisions.of(demoted, snapshot)
    return replace(found, held=tuple(held), dwelling=admitted.dwelling, known_good=known_good, to_hold=cures.to_hold)


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


def _still_demoted(
    kept: Collection[int], context: Context
) -> tuple[dict[LogDir, DemotedLogDir], KnownGoods, list[BrokerHold]]:
    snapshot = context.snapshot
    demoted, known_good, held = {}, dict[Good, KnownGood](), []
    for log_dir, was in sorted(snapshot.record.log_dirs.items()):
        broker = log_dir.broker
        if broker in kept or broker not in context.verdicts or snapshot.promoted_by_override(broker):
            continue  # the broker as a whole is demoted, is gone, or an override lets it lead
        wait = stabilization(snapshot.flaps.get(broker), context.policy)
        good, passing = _seen_good(was, snapshot.signals, context.policy.detection)
        known = snapshot.known_good.get(log_dir, NOT_YET_GOOD).after(good, snapshot.now, wait, passing)
        blocker = return_blocker(context)
        if good and known.seconds >= wait and blocker is None:
            continue
        demoted[log_dir], known_good[log_dir] = was, known
        if good and known.seconds >= wait and blocker is not None:
            text = f"log directory {log_dir.path} is fast again; {blocker.message}"
            held.append(BrokerHold(broker, blocker.reason, text))
    return demoted, known_good, held


def _seen_good(
    was: DemotedLogDir, signals: Iterable[Signal], detection: Detection
) -> tuple[bool | None, dict[tuple[str, str], datetime | None]]:
    """Whether every signal of the directory passes; None where the one that demoted it is missing or stale. And since
    when each passes.
    """
    kinds = (SignalType.STORAGE_LATENCY, SignalType.READ_LATENCY)
    patience = {type_: detection.settings_of(type_).stale_after_seconds for type_ in kinds}
    said = [s for s in signals if (s.broker, s.directory) == was.log_dir and s.type in patience]
    passing = [s for s in said if s.reading is Reading.PASSING]
    asked = any(s.type == was.signal and fresh(s, patience[SignalType(s.type)]) for s in passing)
    good = False if any(s.reading is Reading.FAILING for s in said) else True if asked else None
    return good, {(s.type, s.source): s.since for s in passing}


def _unknown(log_dir: LogDir, snapshot: Snapshot) -> str | None:
    """Why it is not known what lies in a directory; None if it is."""
    placement, slow = snapshot.log_dirs.get(log_dir.broker), f"log directory {log_dir.path} is slow and not demoted"
    if placement is None:
        why = "the broker has not answered DescribeLogDirs, so it is unknown which partitions lie in it"
        return f"{slow}: {why}; check the ACL Describe on Cluster"
    if partitions_in(log_dir.path, placement) is None:
        why = f"the broker has no directory of that path, it has {', '.join(sorted(placement))}"
        return f"{slow}: {why}; correct --log-dir of its storage probe"
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
