"""Read from one broker by DescribeLogDirs (KIP-113) replica sizes, for the sampler, or which partitions it holds, for
the operator (``ports.kafka.LogDirReader``).

In: an address, and partitions that the broker holds. Out: bytes of their log segments, or why not. A copy on its way to
another directory of the same broker is left out: it takes the place of the present one later. Needs Describe on
Cluster; before Kafka 3.2 a broker that refuses it names no directory, and no error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby

from kafka.protocol.admin.cluster import DescribeLogDirsRequest, DescribeLogDirsResponse

from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.connection.connection_errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    NONE,
    BrokerConnectionError,
    error_name,
    from_code,
)
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.core.model.cluster import TopicPartition
from bellwether.core.model.log_dirs import Placement
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import BellwetherError
from bellwether.ports.kafka import Sizes

# A broker looks through all of its logs for each request, so there must not be many; an answer stays below a megabyte.
MOST_PARTITIONS = 10_000
_WANTED_VERSION = 4

ANSWER_SECONDS = 3.0
"""How long a reconcile waits for the broker, whose disk may be the one that hangs."""


class LogDirs:
    """Asks brokers, each time on a fresh connection to exactly the address given. Safe to share between threads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def ask(
        self, address: str, partitions: Collection[TopicPartition], timeout_seconds: float, longest_seconds: float
    ) -> Sizes:
        """The sizes of the broker's copies of these partitions; one that it does not hold is absent.

        A broker that stops answering costs ``timeout_seconds``, a slow one ``longest_seconds``. What was received until
        then counts. Raises Terminal or Transient for failures that are no evidence about the broker (unusable local
        certificate files, no free file descriptor), ValueError for an address that is not host:port.
        """
        sizes: dict[TopicPartition, int] = {}
        problem = ""
        over = Deadline(longest_seconds)
        try:
            deadline = over.within(timeout_seconds)
            with BrokerConnection.open(address, self._connection, deadline) as dialogue:
                version = dialogue.require(DescribeLogDirsRequest, _WANTED_VERSION)
                for request in _requests(partitions, version):
                    answer = dialogue.ask(request, DescribeLogDirsResponse, deadline)
                    problem = _take(answer, version, address, sizes) or problem
                    deadline = over.within(timeout_seconds)
        except BrokerConnectionError as broken:
            problem = str(broken)
        return Sizes(sizes, problem)


def _requests(partitions: Collection[TopicPartition], version: int) -> Iterator[DescribeLogDirsRequest]:
    wanted = sorted(partitions)
    topic = DescribeLogDirsRequest.DescribableLogDirTopic
    for start in range(0, len(wanted), MOST_PARTITIONS):
        yield DescribeLogDirsRequest(
            version=version,
            topics=[
                topic(topic=name, partitions=[one.partition for one in members])
                for name, members in groupby(wanted[start : start + MOST_PARTITIONS], lambda one: one.topic)
            ],
        )


def _take(answer: DescribeLogDirsResponse, version: int, address: str, sizes: dict[TopicPartition, int]) -> str:
    """Add an answer's sizes; returns why some are missing."""
    if version >= 3 and answer.error_code != NONE:
        return _refusal(address, answer.error_code)
    if not answer.results:
        return _refusal(address, CLUSTER_AUTHORIZATION_FAILED)
    problem = ""
    for directory in answer.results:
        if directory.error_code != NONE:
            problem = f"{address}: sizes in {directory.log_dir} are not available: {error_name(directory.error_code)}"
        for topic in directory.topics:
            for found in topic.partitions:
                if not found.is_future_key and found.partition_size >= 0:
                    sizes[TopicPartition(topic.name, found.partition_index)] = found.partition_size
    return problem


def _refusal(address: str, code: int) -> str:
    if code == CLUSTER_AUTHORIZATION_FAILED:
        return f"{address}: denies this user the sizes of logs: grant the ACL Describe on Cluster"
    return f"{address}: answered DescribeLogDirs with {error_name(code)}"


def describe_log_dirs(dialogue: BrokerConnection, deadline: Deadline) -> Placement:
    """The partitions of the broker that is asked, by directory. Raises Transient or Terminal."""
    version = dialogue.require(DescribeLogDirsRequest, _WANTED_VERSION)
    answer = dialogue.ask(DescribeLogDirsRequest(version=version, topics=None), DescribeLogDirsResponse, deadline)
    code = answer.error_code if version >= 3 else NONE
    if code == NONE and not answer.results:
        code = CLUSTER_AUTHORIZATION_FAILED
    if code != NONE:
        raise from_code(code, dialogue.address, "DescribeLogDirs", "Describe on Cluster")
    return {
        directory.log_dir: frozenset(
            TopicPartition(topic.name, found.partition_index)
            for topic in directory.topics
            for found in topic.partitions
            if not found.is_future_key  # a copy on its way to another directory is not in use yet
        )
        for directory in answer.results
    }


class KafkaLogDirs:
    """Log directories of one cluster's brokers, found by the addresses that the reader of the same pool has learnt."""

    def __init__(self, nodes: BrokerPool) -> None:
        self._nodes = nodes

    def log_dirs(self, broker: int) -> Placement | None:
        """The broker's partitions by directory; None without an answer. Never raises."""
        try:
            return self._nodes.read_from(broker, describe_log_dirs, Deadline(ANSWER_SECONDS))
        except BellwetherError as error:
            import structlog

            structlog.get_logger(__name__).warning("log_dirs_not_read", broker=broker, error=str(error))
            return None
