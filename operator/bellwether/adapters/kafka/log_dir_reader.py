"""Read which replicas lie in which log directory of a broker: DescribeLogDirs, KIP-113 (``ports.kafka.LogDirReader``).

In: a broker. Out: its partitions by directory, or None without an answer. Needs Describe on Cluster; before Kafka 3.2 a
broker that refuses it names no directory, and no error.
"""

from __future__ import annotations

import structlog
from kafka.protocol.admin.cluster import DescribeLogDirsRequest, DescribeLogDirsResponse

from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.connection.connection_errors import CLUSTER_AUTHORIZATION_FAILED, NONE, from_code
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.core.model.cluster import TopicPartition
from bellwether.core.model.log_dirs import Placement
from bellwether.ports.errors import BellwetherError

ANSWER_SECONDS = 3.0
"""How long a reconcile waits for the broker, whose disk may be the one that hangs."""

_WANTED_VERSION = 4

log = structlog.get_logger(__name__)


class KafkaLogDirs:
    """Log directories of one cluster's brokers, found by the addresses that the reader of the same pool has learnt."""

    def __init__(self, nodes: BrokerPool) -> None:
        self._nodes = nodes

    def log_dirs(self, broker: int) -> Placement | None:
        """The broker's partitions by directory; None without an answer. Never raises."""
        try:
            return self._nodes.read_from(broker, _describe, Deadline(ANSWER_SECONDS))
        except BellwetherError as error:
            log.warning("log_dirs_not_read", broker=broker, error=str(error))
            return None


def _describe(dialogue: BrokerConnection, deadline: Deadline) -> Placement:
    version = dialogue.require(DescribeLogDirsRequest, _WANTED_VERSION)
    answer = dialogue.ask(DescribeLogDirsRequest(version=version, topics=None), DescribeLogDirsResponse, deadline)
    code = answer.error_code if version >= 3 else NONE
    if code == NONE and not answer.results:
        code = CLUSTER_AUTHORIZATION_FAILED
    if code != NONE:
        raise from_code(code, "", dialogue.address, "DescribeLogDirs", "Describe on Cluster")
    return {
        directory.log_dir: frozenset(
            TopicPartition(topic.name, found.partition_index)
            for topic in directory.topics
            for found in topic.partitions
            if not found.is_future_key  # a copy on its way to another directory is not in use yet
        )
        for directory in answer.results
    }
