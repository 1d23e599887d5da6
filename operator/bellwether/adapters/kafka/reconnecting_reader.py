"""Cluster reader that reconnects when the Secrets behind its connection have changed.

Called by ``bellwether record``, which may run for days. The operator follows Secrets itself, between reconciles.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from bellwether.adapters.kafka.connection.broker_pool import MANUAL_LIMITS, BrokerPool
from bellwether.adapters.kafka.fault_tolerance_reader import KafkaFaultTolerance
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import Cluster, Partition, TopicPartition
from bellwether.core.model.fault_tolerance import FaultTolerance
from bellwether.kafka_connection import Connection
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient

LOOK_SECONDS = 30.0


class RenewedReader:
    """``ports.kafka.ClusterReader`` over the current result of ``make``, checked periodically and after rejections."""

    def __init__(self, make: Callable[[], Connection], clock: Clock) -> None:
        """Raises what ``make`` raises."""
        self._make = make
        self._clock = clock
        self._avoided: Collection[int] = ()
        self._made = make()
        self._connect()
        self._look_at = clock.monotonic() + LOOK_SECONDS

    def read(self) -> Cluster:
        """One snapshot. Raises Transient or Terminal, also when the credentials cannot be read any more."""
        problem = self._renew() if self._clock.monotonic() >= self._look_at else None
        try:
            return self._reader.read()
        except Terminal as error:
            self._look_at = self._clock.monotonic()  # after a rejection the Secrets are read before the next attempt
            raise problem or error from None

    def partitions(self, topics: Collection[str]) -> tuple[Partition, ...]:
        """Fresh partitions of these topics."""
        return self._reader.partitions(topics)

    def avoid(self, brokers: Collection[int]) -> None:
        """From now on ask these brokers only when no other answers."""
        self._avoided = brokers
        self._reader.avoid(brokers)

    def margins(
        self, topics: Collection[str], peers: Collection[int], followed: Mapping[int, Mapping[TopicPartition, int]]
    ) -> FaultTolerance:
        """``ports.kafka.FaultToleranceReader``, by the addresses that the last read has learnt."""
        return self._margins.margins(topics, peers, followed)

    def _connect(self) -> None:
        nodes = BrokerPool(self._made, MANUAL_LIMITS)
        self._reader, self._margins = KafkaReader(nodes), KafkaFaultTolerance(nodes)

    def _renew(self) -> Terminal | None:
        """Reconnect if something has changed; returns what is wrong with the current credentials."""
        self._look_at = self._clock.monotonic() + LOOK_SECONDS
        try:
            made = self._make()
        except Transient:
            return None
        except Terminal as error:
            return error
        if made != self._made:
            self._made = made
            self._connect()
            self._reader.avoid(self._avoided)
        return None
