"""What a rebalance is asked to solve: who may lead what, over which base, and what is to be made small.

In: what ``posing`` makes of a cluster. Out: values, and the JSON of ``problem.json``. Read by the plan job and by the
verifier, in a file each. A problem's terms are small; its partitions may be millions, so they stand apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from bellwether.core.clusters import PartitionKey
from bellwether.core.documents import LARGEST, Fields, Unreadable, moment

FORMAT = 1
WHOLE = 100
"""Weights are percent, and a broker's usual capacity is this: with both, a relative load is bytes/s."""

NOBODY = -1
"""The leader of a partition that has none."""


class Statistic(StrEnum):
    """Which figure of a partition's history counts as its load."""

    MEDIAN = "Median"
    P95 = "P95"
    PEAK = "Peak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What a byte costs whom, in percent, and what a plan must keep to.

    Leading a partition of rf replicas costs ``produce * P + replication * P * (rf - 1) + consume * C``, following it
    ``follow * P``; P and C are the bytes/s that come in from producers and go out to consumers. ``preferred_racks`` are
    in order of preference. ``max_moves`` caps the leaders that change; leaders that may not lead go in any case.
    """

    statistic: Statistic = Statistic.P95
    produce_weight: int = WHOLE
    replication_weight: int = WHOLE
    consume_weight: int = WHOLE
    follow_weight: int = WHOLE
    preferred_racks: tuple[str, ...] = ()
    max_moves: int | None = None

    def following(self, produced: int) -> int:
        """What following a partition costs, in hundredths of a byte/s; ``produced`` are P in bytes/s."""
        return self.follow_weight * produced

    def leading(self, produced: int, consumed: int, replicas: int) -> int:
        """What leading it costs more than following it, in hundredths of a byte/s: the load of a plan's moves."""
        led = self.produce_weight * produced + self.replication_weight * produced * (replicas - 1)
        return led + self.consume_weight * consumed - self.following(produced)

    def document(self) -> dict[str, Any]:
        """The objective as JSON has it."""
        return {
            "statistic": str(self.statistic),
            "produceWeight": self.produce_weight,
            "replicationWeight": self.replication_weight,
            "consumeWeight": self.consume_weight,
            "followWeight": self.follow_weight,
            "preferredRacks": list(self.preferred_racks),
            "maxMoves": self.max_moves,
        }

    @classmethod
    def read(cls, fields: Fields) -> Objective:
        """The objective of a document. Unreadable names the field."""
        made = cls(
            statistic=fields.word("statistic", Statistic),
            produce_weight=fields.whole("produceWeight"),
            replication_weight=fields.whole("replicationWeight"),
            consume_weight=fields.whole("consumeWeight"),
            follow_weight=fields.whole("followWeight"),
            preferred_racks=tuple(fields.items("preferredRacks")),
            max_moves=fields.whole_or_none("maxMoves"),
        )
        fields.done()
        if not all(isinstance(rack, str) for rack in made.preferred_racks):
            raise Unreadable("objective.preferredRacks: each must be the name of a rack")
        return made


@dataclass(frozen=True, slots=True)
class BrokerSlot:
    """A broker that replica lists name. ``open``: it may lead; else ``why`` says in a word why not.

    ``capacity`` is relative to that of the others, ``WHOLE`` by default; at least 1.
    """

    id: int
    rack: str | None = None
    capacity: int = WHOLE
    open: bool = True
    why: str = ""

    def document(self) -> dict[str, Any]:
        """The broker as JSON has it."""
        return {"id": self.id, "rack": self.rack, "capacity": self.capacity, "open": self.open, "why": self.why}

    @classmethod
    def read(cls, fields: Fields) -> BrokerSlot:
        """The broker of a document. Unreadable names the field."""
        made = cls(
            fields.whole("id"),
            fields.text_or_none("rack"),
            fields.whole("capacity", 1),
            fields.yes("open"),
            fields.text("why", empty=True),
        )
        fields.done()
        return made


class PartitionSlot(NamedTuple):
    """One partition: replicas in their order, who is in sync, who leads (``NOBODY``), and why it must stay, if so."""

    topic: str
    topic_id: str
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    held: str = ""

    @property
    def key(self) -> PartitionKey:
        """The partition's identity: topic id and index."""
        return PartitionKey(self.topic_id, self.partition)


@dataclass(frozen=True)
class Terms:
    """A problem without its partitions: what stands in ``problem.json``."""

    cluster_id: str
    policy: str
    made_at: datetime
    objective: Objective = field(default_factory=Objective)
    brokers: tuple[BrokerSlot, ...] = ()

    def document(self) -> dict[str, Any]:
        """The terms as JSON has them."""
        return {
            "format": FORMAT,
            "clusterId": self.cluster_id,
            "policy": self.policy,
            "madeAt": moment(self.made_at),
            "objective": self.objective.document(),
            "brokers": [b.document() for b in self.brokers],
        }

    @classmethod
    def read(cls, document: object) -> Terms:
        """The terms of a document. Unreadable names the field, or the broker that stands there twice."""
        fields = Fields(document)
        fields.only("format", FORMAT)
        brokers = [BrokerSlot.read(Fields(b, f"brokers[{i}]")) for i, b in enumerate(fields.items("brokers"))]
        made = cls(
            fields.text("clusterId"),
            fields.text("policy"),
            fields.moment("madeAt"),
            Objective.read(fields.inner("objective")),
            tuple(brokers),
        )
        fields.done()
        _refuse_twins([b.id for b in brokers])
        return made

    def refuse_amiss(self) -> None:
        """Unreadable when these values could not be read back: a capacity of 0, a broker twice, a negative weight."""
        Terms.read(self.document())


@dataclass(frozen=True)
class Problem:
    """Terms and partitions, for a cluster whose partitions fit into memory as values."""

    terms: Terms
    partitions: tuple[PartitionSlot, ...] = ()


def refuse_partition(slot: PartitionSlot, brokers: Collection[int]) -> None:
    """Unreadable when a partition makes no sense beside these brokers: names the partition."""
    for wrong, what in (
        (not slot.topic or not slot.topic_id, "has no topic or no topic id"),
        (not 0 <= slot.partition <= LARGEST, "is no index of a partition"),
        (not slot.replicas, "has no replicas"),
        (len(set(slot.replicas)) < len(slot.replicas), "names a replica twice"),
        (not set(slot.isr) <= set(slot.replicas), "has an ISR member that is no replica"),
        (slot.leader != NOBODY and slot.leader not in slot.replicas, f"is led by {slot.leader}, which is no replica"),
        (not set(slot.replicas) <= set(brokers), "has replicas on brokers that the problem does not list"),
    ):
        if wrong:
            raise Unreadable(f"{slot.topic}-{slot.partition} {what}: {slot}")


def _refuse_twins(ids: Iterable[int]) -> None:
    seen: set[int] = set()
    for one in ids:
        if one in seen:
            raise Unreadable(f"brokers: {one} stands there twice")
        seen.add(one)
