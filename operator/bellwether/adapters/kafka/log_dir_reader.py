"""Read which replicas lie in which log directory of a broker: DescribeLogDirs, KIP-113 (``ports.kafka.LogDirReader``).

In: a broker. Out: its partitions by directory, or None without an answer. Needs Describe on Cluster; before Kafka 3.2 a
broker that refuses it names no directory, and no error.
"""

from __future__ import annotations

import structlog

from bellwether.adapters.kafka.brokers.log_dirs import describe_log_dirs
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.core.model.log_dirs import Placement
from bellwether.ports.errors import BellwetherError

ANSWER_SECONDS = 3.0
"""How long a reconcile waits for the broker, whose disk may be the one that hangs."""

log = structlog.get_logger(__name__)


class KafkaLogDirs:
    """Log directories of one cluster's brokers, found by the addresses that the reader of the same pool has learnt."""

    def __init__(self, nodes: BrokerPool) -> None:
        self._nodes = nodes

    def log_dirs(self, broker: int) -> Placement | None:
        """The broker's partitions by directory; None without an answer. Never raises."""
        try:
            return self._nodes.read_from(broker, describe_log_dirs, Deadline(ANSWER_SECONDS))
        except BellwetherError as error:
            log.warning("log_dirs_not_read", broker=broker, error=str(error))
            return None
