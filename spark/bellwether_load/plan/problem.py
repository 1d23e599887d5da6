"""Optimisation problem of a rebalance: brokers and partitions, who may lead what, and the objective.

Built by ``problem_builder``. Values, and the JSON of ``problem.json``. The plan job and the verifier read header and
partitions from separate files: the header is small, the partitions may be millions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.settings.objective import WHOLE, Objective
from bellwether.core.strict_json import MAX_INT64, InvalidDocument, StrictObject, format_timestamp

FORMAT = 1

NO_BROKER = -1
"""Leader of a partition without a leader."""


@dataclass(frozen=True, slots=True)
class BrokerInput:
    """A broker that replica lists name. ``open``: it may lead; otherwise ``why`` is the reason.

    ``capacity`` is relative to the other brokers, ``WHOLE`` by default; at least 1.
    """

    id: int
    rack: str | None = None
    capacity: int = WHOLE
    open: bool = True
    why: str = ""

    def document(self) -> dict[str, Any]:
        """The broker as JSON."""
        return {"id": self.id, "rack": self.rack, "capacity": self.capacity, "open": self.open, "why": self.why}

    @classmethod
    def read(cls, fields: StrictObject) -> BrokerInput:
        """Read a broker from JSON. Raises InvalidDocument, which names the field."""
        made = cls(
            fields.integer("id"),
            fields.text_or_none("rack"),
            fields.integer("capacity", 1),
            fields.boolean("open"),
            fields.text("why", empty=True),
        )
        fields.finish()
        return made


class PartitionInput(NamedTuple):
    """One partition: ordered replicas, eligible ISR members, leader (or ``NO_BROKER``), and why it must stay, if so."""

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
class ProblemHeader:
    """A problem without its partitions: the content of ``problem.json``."""

    cluster_id: str
    policy: str
    made_at: datetime
    objective: Objective = field(default_factory=Objective)
    brokers: tuple[BrokerInput, ...] = ()

    def document(self) -> dict[str, Any]:
        """The header as JSON."""
        return {
            "format": FORMAT,
            "clusterId": self.cluster_id,
            "policy": self.policy,
            "madeAt": format_timestamp(self.made_at),
            "objective": self.objective.document(),
            "brokers": [b.document() for b in self.brokers],
        }

    @classmethod
    def read(cls, document: object) -> ProblemHeader:
        """Read a header from JSON. Raises InvalidDocument, which names the field, or the duplicate broker."""
        fields = StrictObject(document)
        fields.constant("format", FORMAT)
        brokers = [BrokerInput.read(StrictObject(b, f"brokers[{i}]")) for i, b in enumerate(fields.array("brokers"))]
        made = cls(
            fields.text("clusterId"),
            fields.text("policy"),
            fields.timestamp("madeAt"),
            Objective.read(fields.nested("objective")),
            tuple(brokers),
        )
        fields.finish()
        _refuse_duplicates([b.id for b in brokers])
        return made

    def validate(self) -> None:
        """Raises InvalidDocument for values that cannot be read back: capacity 0, a duplicate broker, a negative
        weight.
        """
        ProblemHeader.read(self.document())


@dataclass(frozen=True)
class Problem:
    """Header and partitions, for a cluster whose partitions fit into memory as values."""

    header: ProblemHeader
    partitions: tuple[PartitionInput, ...] = ()


def validate_partition(slot: PartitionInput, brokers: Collection[int]) -> None:
    """Raises InvalidDocument, which names the partition, if it is not consistent with these brokers."""
    for wrong, what in (
        (not slot.topic or not slot.topic_id, "has no topic or no topic id"),
        (not 0 <= slot.partition <= MAX_INT64, "is not a partition index"),
        (not slot.replicas, "has no replicas"),
        (len(set(slot.replicas)) < len(slot.replicas), "names a replica twice"),
        (not set(slot.isr) <= set(slot.replicas), "has an ISR member that is not a replica"),
        (
            slot.leader != NO_BROKER and slot.leader not in slot.replicas,
            f"is led by {slot.leader}, which is not a replica",
        ),
        (not set(slot.replicas) <= set(brokers), "has replicas on brokers that the problem does not list"),
    ):
        if wrong:
            raise InvalidDocument(f"{slot.topic}-{slot.partition} {what}: {slot}")


def _refuse_duplicates(ids: Iterable[int]) -> None:
    seen: set[int] = set()
    for one in ids:
        if one in seen:
            raise InvalidDocument(f"brokers: {one} is listed twice")
        seen.add(one)
