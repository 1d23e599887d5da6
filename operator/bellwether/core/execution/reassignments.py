"""Replica reassignments by other tools: detected from metadata, replication throttles and topic names.

Kafka does not report who started a reassignment. One that is not ours is another tool's; Cruise Control has its own
topics, and both it and Kafka's tool set throttles on the topics that they move (KIP-73). Pure: the reconcile reads the
throttles while replicas move. Messages name no topic, because they would change every second during a large rebalance.
"""

from __future__ import annotations

from collections.abc import Mapping

from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.model.refusals import Refusal
from bellwether.core.model.undo_record import UndoEntry, UndoRecord
from bellwether.core.reasons import Reason

THROTTLE_CONFIGS = ("follower.replication.throttled.replicas", "leader.replication.throttled.replicas")
"""Topic settings that name throttled replicas; empty without a throttle."""

CRUISE_CONTROL_TOPICS = frozenset(
    {
        "__CruiseControlMetrics",
        "__KafkaCruiseControlPartitionMetricSamples",
        "__KafkaCruiseControlModelTrainingSamples",
        "strimzi.cruisecontrol.metrics",
        "strimzi.cruisecontrol.partitionmetricsamples",
        "strimzi.cruisecontrol.modeltrainingsamples",
    }
)
"""Cruise Control's topics, by default and under Strimzi."""

MAX_TOPICS_QUERIED = 50
"""How many of the moving topics are queried for throttles."""


def foreign_reassignments(cluster: Cluster, record: UndoRecord) -> tuple[Partition, ...]:
    """The partitions that another tool is reassigning now."""
    return tuple(p for p in cluster.reassigning if not caused_by_our_reorder(record.entries.get(p.key), p))


def caused_by_our_reorder(entry: UndoEntry | None, partition: Partition) -> bool:
    """Whether the reassignment in flight was caused by our reorder.

    Its target is an order that we sent and never saw applied, or a reorder that is outstanding: the replicas had
    changed before it arrived, and the answer was lost or late, or the sender was killed before reading it.
    """
    if entry is None or not partition.reassigning:
        return False
    return entry.may_arrive(partition.target) or (entry.pending and partition.target == entry.written)


def topics_to_query(moving: tuple[Partition, ...]) -> tuple[str, ...]:
    """Topics whose throttles are queried: those that move, up to the limit."""
    return tuple(sorted({p.topic for p in moving}))[:MAX_TOPICS_QUERIED]


def bulk_reassignment(
    moving: tuple[Partition, ...], cluster: Cluster, settings: Mapping[str, Mapping[str, str]]
) -> Refusal | None:
    """Why deferrable work waits: another tool moves replicas in bulk. A single manual move blocks only its own
    partition. ``settings`` are the topics' throttles, as far as they could be read.
    """
    signs = []
    if moving and not CRUISE_CONTROL_TOPICS.isdisjoint(cluster.topics):
        signs.append("Cruise Control's topics exist")
    if moving and any(found.get(mark) for found in settings.values() for mark in THROTTLE_CONFIGS):
        signs.append("replication is throttled")
    if not signs:
        return None
    text = f"another tool reassigns partitions in bulk ({' and '.join(signs)})"
    return Refusal(Reason.EXTERNAL_OPERATION, f"{text}; continues when no replica is being moved")
