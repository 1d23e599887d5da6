"""Replica reassignments by other tools: found in metadata, in throttles and in the names of topics.

Kafka names nobody. A reassignment that is not ours is somebody's; Cruise Control keeps topics of its own; it and
Kafka's own tool mark the topics whose moves they throttle (KIP-73). Pure: ``observing`` asks for the marks, while
replicas move. What is said names no topic: a rebalance of a thousand of them would be news every second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.model.strimzi import Blocker
from bellwether.core.model.undo_record import EntryState, UndoEntry, UndoRecord
from bellwether.core.reasons import Reason

THROTTLE_CONFIGS = ("follower.replication.throttled.replicas", "leader.replication.throttled.replicas")
"""Settings of a topic that name its throttled replicas; empty where nobody throttles."""

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
"""What Cruise Control calls its topics by default, and under Strimzi."""

MAX_TOPICS_QUERIED = 50
"""How many of the topics that move are asked about."""


@dataclass(frozen=True, slots=True)
class ExternalReassignments:
    """Reassignments in flight that are not ours, and by what it is known whether they are many."""

    cruise_control: bool = False
    throttled: bool = False

    @property
    def external_operation(self) -> Blocker | None:
        """Why whatever can wait does: they move in bulk. A single move by hand holds its own partition alone."""
        signs = ["Cruise Control's topics are there"] * self.cruise_control
        signs += ["its replicas are throttled"] * self.throttled
        if not signs:
            return None
        text = (
            f"somebody else reassigns partitions; recognised as a rebalance, as {' and '.join(signs)}; goes on once no"
            " replica moves"
        )
        return Blocker(Reason.OTHERS_REBALANCING, text)


def foreign_reassignments(cluster: Cluster, record: UndoRecord) -> tuple[Partition, ...]:
    """The partitions that somebody else reassigns now."""
    return tuple(
        p for p in cluster.partitions if p.reassigning and not caused_by_our_reorder(record.entries.get(p.key), p)
    )


def caused_by_our_reorder(entry: UndoEntry | None, partition: Partition) -> bool:
    """Whether the reassignment in flight is what became of our reorder.

    It leads to the very order that we set out to write and never saw: the replicas had changed under it, and its answer
    was lost, or came late, or whoever sent it was killed before it looked.
    """
    if entry is None or entry.state not in (EntryState.INTENDED, EntryState.RESTORING):
        return False
    return partition.reassigning and partition.target == entry.written


def topics_to_query(moving: tuple[Partition, ...]) -> tuple[str, ...]:
    """Whose settings to ask for: the topics that move, at most so many."""
    return tuple(sorted({p.topic for p in moving}))[:MAX_TOPICS_QUERIED]


def recognise_external_reassignments(
    moving: tuple[Partition, ...], cluster: Cluster, settings: Mapping[str, Mapping[str, str]]
) -> ExternalReassignments | None:
    """Who moves; None where nobody does. ``settings`` are the topics' marks, as far as they could be read."""
    if not moving:
        return None
    throttled = any(found.get(mark) for found in settings.values() for mark in THROTTLE_CONFIGS)
    return ExternalReassignments(any(p.topic in CRUISE_CONTROL_TOPICS for p in cluster.partitions), throttled)
