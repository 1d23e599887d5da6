"""What the contract suite runs on: the shipped fake, as several versions of Kafka, and real brokers, marked ``kafka``.

A ``Subject`` is four brokers, ids 1 to 4, read and moved through the ports, and what others do there.
The real ones have their controller apart; it is 4 that dies in these tests.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from bellwether.adapters.kafka.config_reader import KafkaConfigs
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.kafka.unclean_elections import KafkaUnclean
from bellwether.core.model.cluster import Partition
from bellwether.kafka_connection import Connection
from bellwether.ports.kafka import ClusterReader, ConfigReader, LeaderMover, UncleanElections
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import MemoryConfigs, MemoryMover, MemoryReader, MemoryRoute
from realparts import kafka_jars
from testkit.kafka.kafka_site import PATIENT
from testkit.simulation.memory_site import MemoryUnclean
from testkit.values.security_settings import PLAINTEXT
from waiting import limit, until


class Subject(Protocol):
    """What the suite asks of either cluster, as well as the ports."""

    version: tuple[int, int]
    """Of Kafka. 4.1: eligible leaders (KIP-966) are on, another replication factor is refused (KIP-860). 4.3: what a
    reassignment adds must be in sync before it completes, not all that stays."""

    @property
    def reader(self) -> ClusterReader:
        """Reads it."""

    @property
    def mover(self) -> LeaderMover:
        """Moves its leaders."""

    @property
    def configs(self) -> ConfigReader:
        """Reads its settings."""

    @property
    def unclean(self) -> UncleanElections:
        """Elects at the price of records."""

    def configure(self, topic: str, name: str, value: str) -> None:
        """Another client changes a topic's setting."""

    def create(self, *orders: Sequence[int], min_isr: int = 1, topic: str | None = None) -> str:
        """A topic with a partition for each order, in sync wherever its brokers live; returns its name."""

    def delete(self, topic: str) -> None:
        """Delete a topic and wait until it is gone."""

    def reassign(self, topic: str, target: Sequence[int]) -> None:
        """Another tool's reassignment of partition 0."""

    def kill(self, broker: int) -> None:
        """The broker's process dies, and the controller has noticed."""

    def revive(self, broker: int) -> None:
        """The broker is back and in sync."""

    def eventually(self, holds: Callable[[], bool]) -> None:
        """Wait until metadata shows something; fails when it does not in time."""


def partition(subject: Subject, topic: str, index: int = 0) -> Partition:
    """One partition, read afresh."""
    return next(p for p in subject.reader.partitions([topic]) if p.index == index)


class MemorySubject:
    def __init__(self, version: tuple[int, int]) -> None:
        self.version = version
        self.cluster = MemoryCluster(4, version=version)
        route = MemoryRoute(self.cluster)
        self.reader = MemoryReader(self.cluster, route)
        self.mover = MemoryMover(self.cluster, route=route)
        self.configs = MemoryConfigs(self.cluster, route)
        self.unclean = MemoryUnclean(self.cluster, route)
        self._names = (f"contract-{n}" for n in itertools.count())

    def create(self, *orders: Sequence[int], min_isr: int = 1, topic: str | None = None) -> str:
        name = topic or next(self._names)
        self.cluster.create_topic(name, assignment=orders, min_isr=min_isr)
        return name

    def configure(self, topic: str, name: str, value: str) -> None:
        self.cluster.settings[topic][name] = value

    def delete(self, topic: str) -> None:
        self.cluster.delete_topic(topic)

    def reassign(self, topic: str, target: Sequence[int]) -> None:
        self.cluster.foreign_reassign(self.cluster.partition(topic).name, target)
        if self.cluster.brokers[4].alive:
            self.cluster.finish_reassignments()

    def kill(self, broker: int) -> None:
        self.cluster.kill(broker)

    def revive(self, broker: int) -> None:
        self.cluster.revive(broker)

    def eventually(self, holds: Callable[[], bool]) -> None:
        self.cluster.finish_reassignments()
        assert holds()


class KafkaSubject:
    def __init__(self, kafka: Any) -> None:
        self.version = kafka_jars.NUMBERS
        self._kafka = kafka
        nodes = BrokerPool(Connection(tuple(kafka.bootstrap.split(",")), PLAINTEXT), PATIENT)
        self.reader = KafkaReader(nodes)
        self.mover = KafkaMover(nodes)
        self.configs = KafkaConfigs(nodes)
        self.unclean = KafkaUnclean(nodes)
        self._names = (f"contract-{time.monotonic_ns()}-{n}" for n in itertools.count())

    def create(self, *orders: Sequence[int], min_isr: int = 1, topic: str | None = None) -> str:
        from confluent_kafka.admin import NewTopic

        name = topic or next(self._names)
        wanted = NewTopic(
            name,
            num_partitions=len(orders),
            replica_assignment=[list(o) for o in orders],
            config={"min.insync.replicas": str(min_isr)},
        )
        self._insist(lambda admin: admin.create_topics([wanted])[name].result(limit(20)))

        def in_sync() -> bool:
            cluster = self.reader.read()  # each time: the broker that is asked may yet have to hear who has died
            found = {p.index: set(p.isr) for p in cluster.partitions if p.topic == name and p.leader is not None}
            return found == {i: cluster.live.intersection(o) for i, o in enumerate(orders)}

        self.eventually(in_sync)
        return name

    def configure(self, topic: str, name: str, value: str) -> None:
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        wanted = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        self._insist(lambda admin: [a.result(limit(20)) for a in admin.incremental_alter_configs([wanted]).values()])

    def delete(self, topic: str) -> None:
        self._insist(lambda admin: admin.delete_topics([topic])[topic].result(limit(20)), done="UNKNOWN_TOPIC_OR_PART")
        self.eventually(lambda: not self.reader.partitions([topic]))

    def _insist(self, act: Callable[[Any], object], done: str = "TOPIC_ALREADY_EXISTS") -> None:
        """Act with a client of its own each time: one that takes a dead broker for the controller keeps to it."""
        from confluent_kafka import KafkaException

        from realparts.kafka_topics import admin

        for remaining in (2, 1, 0):
            try:
                act(admin(self._kafka.bootstrap))
                return
            except KafkaException as error:
                if error.args[0].name() == done and remaining < 2:
                    return  # the try before was carried out, and not answered
                if not remaining:
                    raise

    def reassign(self, topic: str, target: Sequence[int]) -> None:
        from kafka import TopicPartition
        from kafka.admin import KafkaAdminClient

        client = KafkaAdminClient(bootstrap_servers=self._kafka.bootstrap.split(","))
        try:
            answers = client.alter_partition_reassignments({TopicPartition(topic, 0): list(target)})
        finally:
            client.close()
        assert set(answers.values()) == {None}

        def under_way() -> bool:
            now = partition(self, topic)
            if set(target) <= self.reader.read().live:
                return now.replicas == tuple(target)
            return now.reassigning

        self.eventually(under_way)

    def kill(self, broker: int) -> None:
        self._kafka.broker(broker).kill()
        self.eventually(lambda: broker not in self.reader.read().live)

    def revive(self, broker: int) -> None:
        self._kafka.broker(broker).restart()
        self.eventually(lambda: broker in self.reader.read().live)

    def clear(self) -> None:
        """End what is in flight, and delete every topic that a subject has made, this one or another."""
        from realparts.kafka_topics import delete_topics

        found = self.reader.read().partitions
        self.mover.cancel([p.name for p in found if p.reassigning])
        delete_topics(self._kafka.bootstrap, {p.topic for p in found if p.topic.startswith("contract-")})

    def eventually(self, holds: Callable[[], bool]) -> None:
        until(holds, 60, every=0.1, ignoring=(StopIteration,))  # the broker that is asked may yet have to hear of it
