"""Recover the undo record: compare it with Kafka after a killed, frozen or contested run.

Pure: record and cluster in, the corrected record out, with a note for everything that a person should know. Called
first in every reconcile, so that resuming after a kill is the same as an ordinary reconcile (invariant 6).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bellwether.core.execution.reassignments import caused_by_our_reorder
from bellwether.core.model.cluster import Cluster, Partition, PartitionKey
from bellwether.core.model.refusals import CONTEST_LONGEST_SECONDS
from bellwether.core.model.undo_record import RESTORE_TIMEOUT, EntryState, UndoEntry, UndoRecord
from bellwether.core.reasons import Reason
from bellwether.core.settings.placement import Placement


@dataclass(frozen=True, slots=True)
class RecoveryNote:
    """Something that happened to a baseline and that a person may want to know."""

    topic: str
    partition: int
    reason: Reason
    message: str


@dataclass(frozen=True)
class RecoveredRecord:
    """The corrected record, and notes."""

    record: UndoRecord
    notes: tuple[RecoveryNote, ...] = ()
    strays: tuple[Partition, ...] = ()
    """Partitions whose replicas our own request has set moving, and whose sender could not cancel it."""
    steady_on: Cluster | None = field(default=None, compare=False, repr=False)
    """The cluster that the record was compared with, if no entry could ever need a correction there."""

    def repeats(self, record: UndoRecord, cluster: Cluster) -> bool:
        """Whether recovering this record on this cluster finds nothing, as it did before."""
        return self.steady_on is cluster and self.record.entries is record.entries


def recover(
    record: UndoRecord,
    cluster: Cluster,
    now: datetime,
    grace_seconds: float,
    placement: Placement | None = None,
    drained: Collection[int | None] = (),
) -> RecoveredRecord:
    """Reconcile the record with the cluster.

    ``grace_seconds`` is how long one broker's metadata may be behind: tombstones, and the baselines of partitions
    missing from metadata, are kept that long, and as long as a reorder of the partition is outstanding (invariant 7).
    ``placement`` says which topics prefer racks: a foreign order of such a topic is a contest, as it is for a demoted
    broker's partitions. ``drained`` are the brokers that hold no request of ours any more (``arrivals``).
    """
    changes: dict[PartitionKey, UndoEntry | None] = {}
    notes: list[RecoveryNote] = []
    strays: list[Partition] = []
    grace = timedelta(seconds=grace_seconds)
    steady = True
    for key, entry in record.entries.items():
        partition = cluster.by_key.get(key)
        if partition is not None and _is_steady(entry, partition):
            continue
        steady = False
        still = _still_outstanding(entry, drained)
        if partition is None:
            after, note = _missing(key, still, now, grace)
        else:
            after, note = _reconcile(still, partition, record, cluster, now, grace, placement)
            if caused_by_our_reorder(entry, partition):
                strays.append(partition)
        if after is not entry and after != entry:
            changes[key] = after
        if note is not None:
            notes.append(note)
    recovered = record.with_entries(changes)
    return RecoveredRecord(recovered, tuple(notes), tuple(strays), cluster if steady else None)


def _is_steady(entry: UndoEntry, partition: Partition) -> bool:
    """Whether the order that we wrote is in place and nothing is outstanding or about to end."""
    return (
        entry.state is EntryState.DISPLACED
        and partition.replicas == entry.written
        and not entry.outstanding
        and entry.finished_at is None
        and entry.topic == partition.topic
        and not (partition.adding or partition.removing)
        and set(partition.replicas) == set(entry.baseline)
    )


OverwrittenOrders = Mapping[PartitionKey, UndoEntry]
"""The entries as recovery found them, by partition, where other tools set the order while the policy does not act.

Such an order is another tool's intent, but nothing follows from it yet: it is remembered in memory until the policy
acts again, and forgotten when our own order is back, as after a demotion by hand that was undone.
"""


def with_overwritten(record: UndoRecord, overwritten: OverwrittenOrders, cluster: Cluster) -> UndoRecord:
    """The record to recover from: with the orders of other tools, except where our own order is back."""
    kept = {}
    for key, entry in overwritten.items():
        seen, stored = cluster.by_key.get(key), record.entries.get(key)
        if stored is not None and (seen is None or seen.replicas != stored.written):
            kept[key] = entry
    return record.with_entries(kept)


def set_aside(stored: UndoRecord, recovered: UndoRecord) -> tuple[UndoRecord, OverwrittenOrders]:
    """The record to keep, and the orders of other tools that are remembered in memory.

    Everything else that recovery found is kept: also an order of another tool once the replica set has changed, because
    the former baseline is of no use then.
    """
    aside = {}
    for key, entry in recovered.entries.items():
        old = stored.entries.get(key)
        if old is None or old is entry or set(old.baseline) != set(entry.baseline):
            continue
        if (old.baseline, old.written) != (entry.baseline, entry.written):
            aside[key] = entry
    return recovered.with_entries({key: stored.entries[key] for key in aside}), aside


def topics_to_reread(record: UndoRecord, cluster: Cluster) -> frozenset[str]:
    """Topics to read once more, by name, before conclusions are drawn from their partitions.

    A foreign order or a missing topic may come from one broker's stale metadata; and Kafka silently omits topics that
    we may not describe from a request for all topics.
    """
    return frozenset(
        entry.topic
        for key, entry in record.entries.items()
        if (seen := cluster.by_key.get(key)) is None or (seen.replicas != entry.written and not seen.reassigning)
    )


def project_baseline(baseline: tuple[int, ...], placed: tuple[int, ...]) -> tuple[int, ...]:
    """Baseline for a changed replica set: survivors keep their relative order, new replicas their place
    (invariant 9).
    """
    survivors = iter([r for r in baseline if r in placed])
    return tuple(next(survivors) if r in baseline else r for r in placed)


def _still_outstanding(entry: UndoEntry, drained: Collection[int | None]) -> UndoEntry:
    if not drained or not entry.outstanding:
        return entry
    return replace(entry, outstanding=tuple(sent for sent in entry.outstanding if sent.broker not in drained))


def _missing(
    key: PartitionKey, entry: UndoEntry, now: datetime, grace: timedelta
) -> tuple[UndoEntry | None, RecoveryNote | None]:
    """A partition missing from metadata: kept for a while, as one broker's metadata may be stale, then dropped.

    Not while a reorder is outstanding: requests name topics by name, so that one may still meet a topic made again.
    """
    if entry.finished_at is None:
        return replace(entry, finished_at=now), None
    if now - entry.finished_at < grace or entry.outstanding:
        return entry, None
    text = f"topic id {key.topic_id} does not exist any more; its baseline {_order(entry.baseline)} is dropped"
    return None, RecoveryNote(entry.topic, key.partition, Reason.CHANGED_SINCE_PLAN, text)


def _reconcile(
    entry: UndoEntry,
    partition: Partition,
    record: UndoRecord,
    cluster: Cluster,
    now: datetime,
    grace: timedelta,
    placement: Placement | None,
) -> tuple[UndoEntry | None, RecoveryNote | None]:
    if entry.topic != partition.topic:
        entry = replace(entry, topic=partition.topic)
    if entry.finished_at is not None and entry.state is not EntryState.RESTORED:
        entry = replace(entry, finished_at=None)  # it is in metadata again
    if partition.reassigning:
        return entry, None
    observed = partition.replicas
    if set(observed) != set(entry.baseline):
        return _projected(entry, partition)
    if observed == entry.written:
        if entry.state is EntryState.RESTORED:
            return _tombstone(entry, partition, cluster, now, grace), None
        return (entry.in_place(now) if entry.pending else entry), None
    if entry.pending and observed in (entry.baseline, entry.replaced):
        return entry, None
    if entry.may_arrive(observed) or entry.may_be_left_by_cancel(observed):
        return _late(entry, observed), None
    if entry.cancel_may_arrive:
        text = (
            f"a late cancellation of this operator may have ended another tool's reassignment and left the order"
            f" {_order(observed)}: start that again if so; if the order returns, it becomes the baseline"
        )
        note = RecoveryNote(partition.topic, partition.index, Reason.CHANGED_SINCE_PLAN, text)
        return _late(entry.without_cancels(), observed), note
    if observed == entry.baseline:
        # The old order was put back: like a foreign order, but the baseline stays.
        note = _contest_note(partition, "restored the old order")
        return replace(_contested(entry, now), written=observed), note
    return _foreign(entry, partition, record, now, placement)


def _late(entry: UndoEntry, observed: tuple[int, ...]) -> UndoEntry:
    """A reorder of ours arrived after another one: ours, not another tool's, and undone like a displacement.

    It stays outstanding: a broker that lost its connection to the controller forwards the request again, so that one
    reorder may take effect twice, before and after the broker was frozen.
    """
    state = EntryState.RESTORING if entry.written == entry.baseline else EntryState.INTENDED
    return replace(entry, replaced=observed, state=state, finished_at=None)


def _projected(entry: UndoEntry, partition: Partition) -> tuple[UndoEntry | None, RecoveryNote | None]:
    baseline, ours = project_baseline(entry.baseline, partition.replicas), entry.may_arrive(partition.replicas)
    text = (
        f"its replicas changed from {_order(sorted(entry.baseline))} to {_order(sorted(partition.replicas))}; "
        f"the baseline becomes {_order(baseline)}"
    )
    if ours:
        text = f"{text}; a late request of this operator may have done it: move the replicas again if so"
    note = RecoveryNote(partition.topic, partition.index, Reason.CHANGED_SINCE_PLAN, text)
    if entry.state is EntryState.RESTORED:
        return _dropped(entry, baseline), note if ours else None
    after = replace(entry, baseline=baseline, written=partition.replicas, replaced=None, state=EntryState.DISPLACED)
    return after, note


def _foreign(
    entry: UndoEntry, partition: Partition, record: UndoRecord, now: datetime, placement: Placement | None
) -> tuple[UndoEntry | None, RecoveryNote | None]:
    """An order that we did not write is intended by another tool: it becomes the baseline (invariant 9)."""
    note = _contest_note(partition, f"set the order {_order(partition.replicas)}, which becomes the baseline")
    kept = record.demoted.keys() | record.returning.keys() | {one.broker for one in record.log_dirs}
    kept |= {end for link in record.links for end in link}
    placed = placement is not None and placement.of(partition.topic) is not None
    if entry.state is EntryState.RESTORED or (kept.isdisjoint(partition.replicas) and not placed):
        return _dropped(replace(entry, finished_at=now), partition.replicas), note
    after = _contested(entry, now)
    return replace(after, baseline=partition.replicas, written=partition.replicas), note


def _dropped(entry: UndoEntry, order: tuple[int, ...]) -> UndoEntry | None:
    """Nothing of the entry is needed any more, except a tombstone while one of our reorders may still arrive."""
    if not entry.outstanding:
        return None
    kept = replace(entry, baseline=order, written=order, replaced=None, state=EntryState.RESTORED)
    return replace(kept, contests=0, contested_at=None)


def _contested(entry: UndoEntry, now: datetime) -> UndoEntry:
    quiet = timedelta(seconds=CONTEST_LONGEST_SECONDS)
    recent = entry.contested_at is not None and now - entry.contested_at < quiet
    contests = entry.contests + 1 if recent else 1
    return replace(entry, state=EntryState.DISPLACED, replaced=None, contests=contests, contested_at=now)


def _tombstone(
    entry: UndoEntry, partition: Partition, cluster: Cluster, now: datetime, grace: timedelta
) -> UndoEntry | None:
    if entry.outstanding or (entry.finished_at is not None and now - entry.finished_at < grace):
        return entry
    first = entry.baseline[0]
    overdue = entry.finished_at is not None and now - entry.finished_at > RESTORE_TIMEOUT
    awaited = partition.leader != first and first in cluster.live and not overdue
    return entry if awaited else None  # elected once its preferred leader is in the ISR


def _contest_note(partition: Partition, did: str) -> RecoveryNote:
    return RecoveryNote(partition.topic, partition.index, Reason.ORDER_OVERWRITTEN, f"another tool {did}")


def _order(replicas: tuple[int, ...] | list[int]) -> str:
    return "[" + ",".join(str(r) for r in replicas) + "]"
