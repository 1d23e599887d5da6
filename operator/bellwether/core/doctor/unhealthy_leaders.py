"""Partitions that Kafka serves and clients do not get, or get slowly: those that an unhealthy broker leads.

In: a ``Cluster``, and the brokers that a policy judges unhealthy. Out: ``UnhealthyLeader``s. Pure; used by ``bellwether
doctor``. Metadata alone cannot show it: such a broker is alive, and in every ISR.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bellwether.core.doctor.remediation import Remediation
from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.reasons import Reason

_UNREACHABLE = "no reads, no writes"
CLIENT_IMPACT: Mapping[str, str] = {
    Reason.EXTERNALLY_UNREACHABLE: f"{_UNREACHABLE} through the external listener",
    Reason.NOT_FENCED_IN_TIME: _UNREACHABLE,
    Reason.UNREACHABLE: _UNREACHABLE,
    Reason.STORAGE_SLOW: "writes fail or are slow",
    Reason.READS_SLOW: "reads fail or are slow",
}
"""What clients lose, by the reason of the leader's verdict."""

ANY_IMPACT = "requests fail or are slow"
"""What clients lose for every other reason."""


@dataclass(frozen=True, slots=True)
class UnhealthyBroker:
    """A broker that a policy judges Sick or Down.

    ``state`` and ``reason`` are those of the verdict, ``message`` its evidence; ``kept`` is why the policy does not
    demote the broker, empty if it does.
    """

    broker: int
    state: str
    reason: str
    message: str
    kept: str = ""
    remediations: tuple[Remediation, ...] = ()

    @property
    def clients(self) -> str:
        """What clients lose while it leads."""
        return f"{CLIENT_IMPACT.get(self.reason, ANY_IMPACT)}: {self.message}"


@dataclass(frozen=True)
class UnhealthyLeader:
    """An unhealthy broker and the partitions that it leads: at least one."""

    broker: UnhealthyBroker
    partitions: tuple[Partition, ...]

    @cached_property
    def topics(self) -> Mapping[str, int]:
        """How many of these partitions each topic has; the most first, then by name."""
        counted = Counter(p.topic for p in self.partitions)
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def unhealthy_leaders(cluster: Cluster, unhealthy: Sequence[UnhealthyBroker]) -> tuple[UnhealthyLeader, ...]:
    """Those of the unhealthy brokers that lead a partition; the most partitions first, then by id."""
    led: dict[int, list[Partition]] = {broker.broker: [] for broker in unhealthy}
    for partition in cluster.partitions:
        if partition.leader in led:
            led[partition.leader].append(partition)
    found = [UnhealthyLeader(broker, tuple(led[broker.broker])) for broker in unhealthy if led[broker.broker]]
    return tuple(sorted(found, key=lambda leader: (-len(leader.partitions), leader.broker.broker)))
