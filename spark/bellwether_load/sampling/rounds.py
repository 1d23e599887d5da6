"""One sampling round: read metadata, query every leader, and write the answers to rows.

In: where partitions are, how to ask brokers and, where wanted, how much consumers read. Out: ``SamplingRound``. Called
by ``sampler`` each period, and by ``bellwether sample --once``. Brokers are queried in parallel, each with its own
timeout: one that does not answer leaves only its own partitions unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol

from bellwether.core.model.broker_identity import Hosts, KnownHosts
from bellwether.core.model.cluster import Cluster, PartitionKey, TopicPartition
from bellwether.kafka_connection import join_address
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient, WrongCluster
from bellwether.ports.kafka import EndsReader, Sizes
from bellwether_load.sampling.topic_consumption import Consumption, spread
from bellwether_load.store.samples.sample_files import Rows

# What is left of the period is for writing.
_ASKING_SHARE = 0.8
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


class Maps(Protocol):
    """Where partitions are. Raises Transient or Terminal."""

    def read(self) -> Cluster:
        """One snapshot of all brokers and partitions."""
        ...


class Readers(Protocol):
    """How much consumers read, or how many requests there are. Raises Transient or Terminal."""

    def begin(self, timeout_seconds: float, hosts: Hosts) -> Callable[[], Consumption]:
        """Ask; the result waits for the answer, bytes/s or requests/s by topic or by (topic, broker)."""
        ...


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a round; ``readers`` is None if consumption is not sampled, ``requests`` if these are not."""

    maps: Maps
    ends: EndsReader
    sizes: SizesReader
    readers: Readers | None = None
    requests: Readers | None = None


@dataclass(frozen=True, slots=True)
class SamplingRound:
    """What came of one round; ``troubles``, by broker, ``metadata``, ``consumers`` or ``requests``, kept it from being
    whole."""

    rows: Rows
    answers: Mapping[int, BrokerAnswer] = field(default_factory=dict)
    troubles: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


class Rounds:
    """SamplingRound after round of one cluster. For one thread; ``close`` it at the end."""

    def __init__(self, sources: Sources, clock: Clock, *, timeout_seconds: float, period_seconds: float) -> None:
        """``timeout_seconds`` is how long a silent broker is waited for."""
        self.sources = sources
        self._clock = clock
        self._timeout = timeout_seconds
        self._period = period_seconds
        self._questions: dict[int, dict[TopicPartition, int]] = {}
        self._silent: frozenset[int] = frozenset()
        self._pool = ThreadPoolExecutor(_ASKED_AT_ONCE, thread_name_prefix="asking")
        self._cluster: Cluster | None = None
        self._before: dict[PartitionKey, int] = {}

    @property
    def cluster_id(self) -> str:
        """The cluster that is sampled; empty until the first round."""
        return self._cluster.cluster_id if self._cluster is not None else ""

    def close(self) -> None:
        """Send no further requests."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def take(self, at: datetime) -> SamplingRound:
        """The round of this moment. Raises Transient or Terminal while there is no map, WrongCluster for another one.

        Where the map cannot be read the last one is used: a partition that is led elsewhere by now is then unknown.
        """
        began = self._clock.monotonic()
        troubles: dict[str, str] = {}
        cluster = self._map(troubles)
        # Queried in parallel with the brokers, so that it does not delay them.
        hosts = KnownHosts().seen(cluster).hosts
        readers = {"consumers": self.sources.readers, "requests": self.sources.requests}
        collect = {what: one.begin(self._timeout, hosts) for what, one in readers.items() if one is not None}
        until = began + _ASKING_SHARE * self._period
        answers = self._answers(cluster, until)
        troubles |= {f"broker {number}": one.problem for number, one in sorted(answers.items()) if one.problem}
        topics = {what: _collected(what, one, troubles) for what, one in collect.items()}
        rows = self._rows(cluster, answers, topics, at)
        return SamplingRound(rows, answers, troubles, self._clock.monotonic() - began)

    def _answers(self, cluster: Cluster, until: float) -> dict[int, BrokerAnswer]:
        """The answers of all brokers that lead anything, received by ``until`` on the monotonic clock."""
        self._questions = _questions(cluster, self._questions)
        # Brokers that did not answer before come last, so that waiting for them delays no other.
        order = sorted(self._questions, key=lambda number: (number in self._silent, number))
        answers = dict(zip(order, self._pool.map(partial(self._ask, cluster, until), order), strict=True))
        self._silent = frozenset(number for number, one in answers.items() if one.problem)
        return answers

    def _ask(self, cluster: Cluster, until: float, number: int) -> BrokerAnswer:
        questions, began = self._questions[number], self._clock.monotonic()
        count, broker = len(questions), cluster.brokers.get(number)
        if until <= began:
            return BrokerAnswer(count, problem="was not queried: the time of the round was over")
        if broker is None or not broker.host or broker.port <= 0:
            return BrokerAnswer(count, problem="is not registered")
        timeout, longest = min(self._timeout, until - began), min(until - began, _TIMEOUTS * self._timeout)
        address = join_address(broker.host, broker.port)
        try:
            where = self.sources.ends.ask(address, questions, timeout, longest)
            if where.problem and not where.ends:
                return BrokerAnswer(count, moved=where.moved, problem=where.problem)
            left = longest - (self._clock.monotonic() - began)
            large = self.sources.sizes.ask(address, questions, min(timeout, left), left)
        except (Transient, Terminal, ValueError) as error:
            return BrokerAnswer(count, problem=str(error))
        return BrokerAnswer(count, where.ends, large.sizes, where.moved, where.problem or large.problem)

    def _map(self, troubles: dict[str, str]) -> Cluster:
        try:
            cluster = self.sources.maps.read()
        except (Transient, Terminal) as error:
            if self._cluster is None:
                raise
            troubles["metadata"] = str(error)
            return self._cluster
        if self._cluster is not None and cluster.cluster_id != self._cluster.cluster_id:
            raise WrongCluster(
                f"the connection leads to Kafka cluster {cluster.cluster_id}; so far it led to "
                f"{self._cluster.cluster_id}: check the bootstrap servers, and give each cluster a store of its own"
            )
        self._cluster = cluster
        return cluster

    def _rows(
        self, cluster: Cluster, answers: Mapping[int, BrokerAnswer], topics: Mapping[str, Consumption], at: datetime
    ) -> Rows:
        partitions = sorted(cluster.partitions, key=lambda p: (p.topic, p.index))
        nothing = BrokerAnswer()
        by = [answers.get(p.leader, nothing) if p.leader is not None else nothing for p in partitions]
        ends = [one.ends.get(p.name) for p, one in zip(partitions, by, strict=True)]
        consume = spread(topics.get("consumers", {}), partitions, ends, self._before)
        requests = spread(topics.get("requests", {}), partitions, ends, self._before, evenly=True)
        if topics:
            self._before = {p.key: end for p, end in zip(partitions, ends, strict=True) if end is not None}
        return Rows(
            cluster_id=cluster.cluster_id,
            at=at,
            topic=[p.topic for p in partitions],
            topic_id=[p.topic_id for p in partitions],
            partition=[p.index for p in partitions],
            leader=[-1 if p.leader is None else p.leader for p in partitions],
            leader_epoch=[p.leader_epoch for p in partitions],
            end_offset=ends,
            log_bytes=[one.sizes.get(p.name) for p, one in zip(partitions, by, strict=True)],
            consume=consume,
            requests=requests,
        )


def _collected(what: str, collect: Callable[[], Consumption], troubles: dict[str, str]) -> Consumption:
    try:
        return collect()
    except (Transient, Terminal) as error:
        troubles[what] = str(error)
        return {}


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
