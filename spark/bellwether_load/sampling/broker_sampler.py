"""Asks every broker of a cluster about the partitions that it leads: where they end, and how large they are.

In: cluster metadata, and readers of one broker. Out: each broker's answer. The brokers are queried in parallel, each
with its own timeout: a broker that does not answer leaves only its own partitions unknown. Called by ``rounds``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from bellwether.core.model.cluster import Cluster, TopicPartition
from bellwether.kafka_connection import join_address
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.ports.kafka import EndsReader, Sizes

# More of them would only wait for each other: decoding answers is this process' own work.
_ASKED_AT_ONCE = 32
# A broker that answers each question, but slowly, is left after so many times its timeout.
_TIMEOUTS = 4


class SizesReader(Protocol):
    """Reads one broker. Raises Transient, Terminal or ValueError for failures that are no evidence about it."""

    def ask(
        self, address: str, partitions: Collection[TopicPartition], timeout_seconds: float, longest_seconds: float
    ) -> Sizes:
        """How large its logs are."""
        ...


@dataclass(frozen=True, slots=True)
class BrokerAnswer:
    """One broker's answer about the ``asked`` partitions that it leads; ``problem``: why some are missing."""

    asked: int = 0
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    moved: int = 0
    problem: str = ""


class Asking:
    """Asks brokers round after round. For one thread; ``close`` it at the end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._questions: dict[int, dict[TopicPartition, int]] = {}
        self._silent: frozenset[int] = frozenset()
        self._pool = ThreadPoolExecutor(_ASKED_AT_ONCE, thread_name_prefix="asking")

    def ask(
        self, cluster: Cluster, ends: EndsReader, sizes: SizesReader, timeout_seconds: float, until: float
    ) -> dict[int, BrokerAnswer]:
        """The answers of all brokers that lead anything, received by ``until`` on the monotonic clock."""
        self._questions = _questions(cluster, self._questions)

        def ask(number: int) -> BrokerAnswer:
            left = until - self._clock.monotonic()
            if left <= 0:
                return BrokerAnswer(
                    len(self._questions[number]), problem="was not queried: the time of the round was over"
                )
            return self._one(
                cluster, number, ends, sizes, min(timeout_seconds, left), min(left, self._most(timeout_seconds))
            )

        # Brokers that did not answer before come last, so that waiting for them delays no other.
        order = sorted(self._questions, key=lambda number: (number in self._silent, number))
        answers = dict(zip(order, self._pool.map(ask, order), strict=True))
        self._silent = frozenset(number for number, one in answers.items() if one.problem)
        return answers

    def close(self) -> None:
        """Send no further requests."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    @staticmethod
    def _most(timeout_seconds: float) -> float:
        return _TIMEOUTS * timeout_seconds

    def _one(
        self, cluster: Cluster, number: int, ends: EndsReader, sizes: SizesReader, timeout: float, longest: float
    ) -> BrokerAnswer:
        questions = self._questions[number]
        broker = cluster.brokers.get(number)
        if broker is None or not broker.host or broker.port <= 0:
            return BrokerAnswer(len(questions), problem="is not registered")
        address, began = join_address(broker.host, broker.port), self._clock.monotonic()
        try:
            where = ends.ask(address, questions, timeout, longest)
            if where.problem and not where.ends:
                return BrokerAnswer(len(questions), moved=where.moved, problem=where.problem)
            left = longest - (self._clock.monotonic() - began)
            large = sizes.ask(address, questions, min(timeout, left), left)
        except (Transient, Terminal, ValueError) as error:
            return BrokerAnswer(len(questions), problem=str(error))
        return BrokerAnswer(len(questions), where.ends, large.sizes, where.moved, where.problem or large.problem)


def _questions(
    cluster: Cluster, before: Mapping[int, dict[TopicPartition, int]]
) -> dict[int, dict[TopicPartition, int]]:
    """The partitions that each broker leads, with the epoch that it must lead in.

    What is asked of a broker as before is the same mapping as before, which is not encoded again.
    """
    found: dict[int, dict[TopicPartition, int]] = {}
    for partition in cluster.partitions:
        if partition.leader is not None:
            found.setdefault(partition.leader, {})[partition.name] = partition.leader_epoch
    return {number: before[number] if before.get(number) == asked else asked for number, asked in found.items()}
