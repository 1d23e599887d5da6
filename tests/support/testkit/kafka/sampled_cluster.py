"""A cluster that is asked where its logs end and how large they are, in memory: who answers, and what, is the test's.

In: partitions and their ends. Out: ``Sources`` for rounds. For what real brokers cannot be brought to say at will.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from bellwether.core.model.broker_identity import Hosts
from bellwether.core.model.cluster import Broker, Cluster, Partition, TopicPartition
from bellwether.ports.errors import BellwetherError
from bellwether.ports.kafka import BrokerLogEnds, Sizes
from bellwether.simulation.memory_world import ManualClock
from bellwether_load.sampling.rounds import Sources
from bellwether_load.sampling.topic_consumption import Consumption


def partition(topic: str, index: int, leader: int | None, epoch: int = 4) -> Partition:
    """A partition with three replicas."""
    return Partition(topic, f"{topic:_<22}", index, (1, 2, 3), (1, 2, 3), leader, epoch)


@dataclass
class Site:
    """Three brokers at ``h:1``, ``h:2`` and ``h:3``; each holds every log, and tells of those that it leads."""

    partitions: tuple[Partition, ...] = ()
    cluster_id: str = "c"
    clock: ManualClock = field(default_factory=ManualClock)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    sizes: dict[TopicPartition, int] = field(default_factory=dict)
    epochs: dict[TopicPartition, int] = field(default_factory=dict)
    """In which epoch a partition really is led, where that is not what the map says."""
    silent: set[int] = field(default_factory=set)
    unsized: dict[int, str] = field(default_factory=dict)
    broken: dict[int, Exception] = field(default_factory=dict)
    unmapped: BellwetherError | None = None
    answer_takes: float = 0.0
    topics: Consumption | BellwetherError | None = None
    asked: list[tuple[str, float, float]] = field(default_factory=list)
    questions: list[Mapping[TopicPartition, int]] = field(default_factory=list)

    def sources(self) -> Sources:
        """Whom a round asks."""
        return Sources(self, _Ends(self), _Sizes(self), self if self.topics is not None else None)

    def read(self) -> Cluster:
        """The map."""
        if self.unmapped is not None:
            raise self.unmapped
        brokers = {number: Broker(number, host="h", port=number) for number in (1, 2, 3)}
        return Cluster(self.cluster_id, brokers, self.partitions)

    def begin(self, timeout_seconds: float, hosts: Hosts) -> Callable[[], Consumption]:  # noqa: ARG002 - the port's
        """What consumers read."""

        def collect() -> Consumption:
            if isinstance(self.topics, BellwetherError):
                raise self.topics
            return self.topics or {}

        return collect

    def led(self, name: TopicPartition, epoch: int) -> bool:
        """Whether the partition is led in that epoch; it is all the same who is asked, as every copy answers."""
        return self.epochs.get(name, epoch) == epoch


@dataclass
class _Ends:
    site: Site

    def ask(
        self, address: str, replicas: Mapping[TopicPartition, int], timeout_seconds: float, longest_seconds: float
    ) -> BrokerLogEnds:
        site, number = self.site, int(address.removeprefix("h:"))
        site.asked.append((address, timeout_seconds, longest_seconds))
        site.questions.append(replicas)
        site.clock.advance(site.answer_takes)
        if number in site.broken:
            raise site.broken[number]
        if number in site.silent:
            site.clock.advance(timeout_seconds)
            return BrokerLogEnds(problem=f"{address}: connected, but no answer in time (Request)")
        led = [name for name, epoch in replicas.items() if site.led(name, epoch)]
        return BrokerLogEnds({n: site.ends[n] for n in led if n in site.ends}, moved=len(replicas) - len(led))


@dataclass
class _Sizes:
    site: Site

    def ask(
        self,
        address: str,
        partitions: Collection[TopicPartition],
        timeout_seconds: float,  # noqa: ARG002 - the port's
        longest_seconds: float,  # noqa: ARG002
    ) -> Sizes:
        site, number = self.site, int(address.removeprefix("h:"))
        if number in site.unsized:
            return Sizes(problem=site.unsized[number])
        return Sizes({name: site.sizes[name] for name in partitions if name in site.sizes})
