"""Optimisation problem of a rebalance: brokers and partitions, who may lead what, and the objective.

Built by ``problem_builder``. Values, and the JSON of ``problem.json``. The plan job and the verifier read header and
partitions from separate files: the header is small, the partitions may be millions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.settings.objective import WHOLE, Objective

NO_BROKER = -1
"""Leader of a partition without a leader."""
LARGEST_CAPACITY = 1_000_000
"""10,000 times that of an ordinary broker."""


@dataclass(frozen=True, slots=True)
class BrokerInput:
    """A broker that replica lists name. ``open``: it may lead; otherwise ``why`` is the reason.

    ``capacity`` is relative to the other brokers, ``WHOLE`` by default; from 1 to ``LARGEST_CAPACITY``. So is
    ``request_capacity``, that for requests.
    """

    id: int
    rack: str | None = None
    capacity: int = WHOLE
    open: bool = True
    why: str = ""
    request_capacity: int = WHOLE


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


@dataclass(frozen=True)
class Problem:
    """Header and partitions, for a cluster whose partitions fit into memory as values."""

    header: ProblemHeader
    partitions: tuple[PartitionInput, ...] = ()
