"""Read the cluster in a thread while the rest of a command is imported: both take about as long, and clients wait.

Called by ``manual_demotion``. Imports only what a read needs.
"""

from __future__ import annotations

from collections.abc import Collection
from threading import Thread

from bellwether.adapters.kafka.connection.broker_pool import MANUAL_LIMITS, BrokerPool
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import Cluster
from bellwether.kafka_connection import Connection


class EarlyReader:
    """``ports.kafka.ClusterReader`` whose first read begins at once. ``nodes`` are for requests to the same brokers."""

    def __init__(self, connection: Connection, avoided: Collection[int]) -> None:
        self.nodes = BrokerPool(connection, MANUAL_LIMITS)
        self.nodes.avoid(avoided)
        self._reader = KafkaReader(self.nodes)
        self.partitions, self.avoid = self._reader.partitions, self._reader.avoid
        self._found: Cluster | BaseException
        self._unused = True
        self._thread = Thread(target=self._begin, name="early-read", daemon=True)
        self._thread.start()

    def first(self) -> Cluster:
        """What the first read found. Raises as ``read``."""
        self._thread.join()
        if isinstance(self._found, BaseException):
            raise self._found
        return self._found

    def read(self) -> Cluster:
        """The first snapshot once, then fresh ones. Raises Transient or Terminal."""
        unused, self._unused = self._unused, False
        return self.first() if unused else self._reader.read()

    def _begin(self) -> None:
        try:
            self._found = self._reader.read()
        except BaseException as error:
            self._found = error
