"""Unclean leader election of one partition, by a person's explicit command (``ports.kafka.UncleanElections``).

In: the name of a partition whose loss a person has accepted. Out: Kafka's result. The controller elects the first live
replica of the order, and only while there is no leader. Separate from the mover, which every reconcile has, so that
only this command can use it.
"""

from __future__ import annotations

from functools import partial

from kafka.protocol.admin.topics import ElectionType

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.leader_mover import elect
from bellwether.core.model.cluster import TopicPartition
from bellwether.ports.kafka import Outcome


class KafkaUnclean:
    """Sends one request, once, within the limits of its ``BrokerPool``."""

    def __init__(self, nodes: BrokerPool) -> None:
        self._nodes = nodes

    def elect(self, name: TopicPartition) -> Outcome:
        """ElectLeaders, unclean, of exactly this partition. Raises Transient, or Terminal when a person must act."""
        return self._nodes.send_once(partial(elect, ElectionType.UNCLEAN, [name]))[name]
