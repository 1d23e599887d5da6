"""Asks every broker of a cluster about the partitions that it leads: where they end, and how large they are.

In: a map of the cluster, and how to ask one broker. Out: what each one told. The brokers are asked side by side, each
with a time limit of its own: a silent one leaves its own partitions unknown, and nobody else's. Called by ``rounds``.
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

# More of them would only wait for each other: decoding answers is this process' own work.
_ASKED_AT_ONCE = 32
# A broker that answers each question, but slowly, is left after so many times its timeout.
_TIMEOUTS = 4


class Ends(Protocol):
    """Where one broker's logs end; ``adapters.kafka.brokers.log_ends`` has the real one."""

    @property
    def ends(self) -> Mapping[TopicPartition, int]:
        """The end of each log that was told."""
        ...

    @property
    def moved(self) -> int:
        """How many partitions are led elsewhere by now."""
        ...

    @property
    def problem(self) -> str:
        """Why some, or all, were not told; empty when all were."""
        ...


class Sizes(Protocol):
    """How large one broker's logs are; ``adapters.kafka.brokers.log_dirs`` has the real one."""

    @property
    def sizes(self) -> Mapping[TopicPartition, int]:
        """Bytes of each log that was told."""
        ...

    @property
    def problem(self) -> str:
        """Why some, or all, were not told; empty when all were."""
        ...


class AsksEnds(Protocol):
    """Asks one broker. Raises Transient, Terminal or ValueError for what says nothing about the broker."""

    def ask(
        self, address: str, replicas: Mapping[TopicPartition, int], timeout_seconds: float, longest_seconds: float
    ) -> Ends:
        """Where its logs end; values are the leader epochs that it must lead in."""
        ...


class AsksSizes(Protocol):
    """Asks one broker. Raises Transient, Terminal or ValueError for what says nothing about the broker."""

    def ask(
        self, address: str, partitions: Collection[TopicPartition], timeout_seconds: float, longest_seconds: float
    ) -> Sizes:
        """How large its logs are."""
        ...


@dataclass(frozen=True, slots=True)
class Told:
    """What one broker told of the ``asked`` partitions that it leads; ``problem`` says why it did not tell all."""

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
        self, cluster: Cluster, ends: AsksEnds, sizes: AsksSizes, timeout_seconds: float, until: float
    ) -> dict[int, Told]:
        """What every broker told that leads anything, by ``until`` on the monotonic clock."""
        self._questions = _questions(cluster, self._questions)

        def ask(number: int) -> Told:
            left = until - self._clock.monotonic()
            if left <= 0:
                return Told(len(self._questions[number]), problem="was not asked: the round's time was over")
            return self._one(
                cluster, number, ends, sizes, min(timeout_seconds, left), min(left, self._most(timeout_seconds))
            )

        # Who was silent before comes last, so that waiting for him again keeps nobody else waiting.
        order = sorted(self._questions, key=lambda number: (number in self._silent, number))
        told = dict(zip(order, self._pool.map(ask, order), strict=True))
        self._silent = frozenset(number for number, one in told.items() if one.problem)
        return told

    def close(self) -> None:
        """Ask nobody any more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    @staticmethod
    def _most(timeout_seconds: float) -> float:
        return _TIMEOUTS * timeout_seconds

    def _one(
        self, cluster: Cluster, number: int, ends: AsksEnds, sizes: AsksSizes, timeout: float, longest: float
    ) -> Told:
        questions = self._questions[number]
        broker = cluster.brokers.get(number)
        if broker is None or not broker.host or broker.port <= 0:
            return Told(len(questions), problem="is not registered")
        address, began = join_address(broker.host, broker.port), self._clock.monotonic()
        try:
            where = ends.ask(address, questions, timeout, longest)
            if where.problem and not where.ends:
                return Told(len(questions), moved=where.moved, problem=where.problem)
            left = longest - (self._clock.monotonic() - began)
            large = sizes.ask(address, questions, min(timeout, left), left)
        except (Transient, Terminal, ValueError) as error:
            return Told(len(questions), problem=str(error))
        return Told(len(questions), where.ends, large.sizes, where.moved, where.problem or large.problem)


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
