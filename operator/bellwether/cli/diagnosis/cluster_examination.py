"""Examine a cluster for ``bellwether doctor``: read metadata, contact every broker, diagnose every partition.

In: the ports, and a lookup of samples. Out: an ``Examination``. Metadata lists a broker as alive until its session
expires, so every broker is contacted as well. Log end offsets are read only for partitions without an eligible leader.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from bellwether.core.doctor.risks import (
    MIN_ISR,
    UNCLEAN,
    Diagnosis,
    LogEndSample,
    RiskInputs,
    RiskSummary,
    diagnose_cluster,
)
from bellwether.core.doctor.unhealthy_leaders import (
    FETCHERS,
    JudgedBrokers,
    QuarantineCheck,
    SlowBroker,
    SlowDiskForecast,
    UnhealthyBroker,
    slow_disk_forecast,
)
from bellwether.core.doctor.unwatched_listeners import ListenerCheck
from bellwether.core.model.cluster import Broker, Cluster, Partition, PartitionKey, TopicPartition
from bellwether.kafka_connection import Connection, join_address
from bellwether.ports.errors import BellwetherError, Terminal
from bellwether.ports.kafka import ClusterReader, ConfigReader, EndsReader

_ASKED_AT_ONCE = 32
TIMEOUT_SECONDS, LONGEST_SECONDS = 2.0, 8.0
MEASURED_SECONDS = 2.0
"""For how long appends are counted, by the growth of logs."""
MOST_MEASURED = 50_000
"""With more partitions appends are not counted."""

Samples = Callable[[str, Collection[PartitionKey]], Mapping[PartitionKey, LogEndSample]]
"""Last samples of some partitions of a cluster, given by its id."""


def no_samples(_cluster_id: str, _wanted: Collection[PartitionKey]) -> Mapping[PartitionKey, LogEndSample]:
    """``Samples`` without a store."""
    return {}


@dataclass(frozen=True)
class Examination:
    """Result. ``silent``: brokers that metadata lists as alive and that did not answer, with the error.

    ``unhealthy``: brokers that a policy judges Sick or Down and that lead partitions; None if no verdicts were read.
    ``slow``: brokers for which ``acks=all`` waits. ``slow_disk``: what one slow disk would do, where appends were seen.
    ``quarantine``: what it lacks, ``listeners``: which are not watched; both None without a policy. ``troubles``: what
    could not be read.
    """

    cluster: Cluster
    risk_summary: RiskSummary
    facts: RiskInputs
    silent: Mapping[int, str]
    unhealthy: tuple[UnhealthyBroker, ...] | None = None
    slow: tuple[SlowBroker, ...] = ()
    slow_disk: SlowDiskForecast | None = None
    quarantine: QuarantineCheck | None = None
    listeners: ListenerCheck | None = None
    troubles: tuple[str, ...] = ()

    def of(self, name: TopicPartition) -> Diagnosis:
        """Diagnosis of one partition. Raises Terminal if it does not exist."""
        for found in self.risk_summary.diagnoses:
            if found.partition.name == name:
                return found
        raise Terminal(f"Kafka cluster {self.cluster.cluster_id} has no partition {name}: check the name")


@dataclass(frozen=True)
class ExaminedCluster:
    """A cluster to examine; with a policy also its namespace and name, and the cluster id that it is pinned to, if any.

    ``judged``: what the policy says of its brokers; None without its verdicts. ``quarantine``: what that lacks.
    ``listeners``: names of those that it watches.
    """

    connection: Connection
    namespace: str = ""
    policy: str = ""
    cluster_id: str = ""
    notes: tuple[str, ...] = ()
    judged: JudgedBrokers | None = None
    quarantine: QuarantineCheck | None = None
    listeners: tuple[str, ...] = ()

    def check(self, cluster_id: str) -> None:
        """Raise Terminal if the addresses lead to another cluster."""
        if self.cluster_id and cluster_id != self.cluster_id:
            raise Terminal(
                f"the addresses lead to Kafka cluster {cluster_id}, and the policy is pinned to {self.cluster_id}: "
                "correct --bootstrap, or spec.kafka of the policy"
            )


class Examiner:
    """Examines one cluster."""

    def __init__(self, reader: ClusterReader, configs: ConfigReader, ends: EndsReader, samples: Samples) -> None:
        self._reader = reader
        self._configs = configs
        self._ends = ends
        self._samples = samples

    def examine(self, topics: Collection[str] = (), *, forecast: bool = False) -> Examination:
        """Examine some topics, or all; with ``forecast`` also what one slow disk would do, which takes seconds.

        Raises Terminal for an unknown topic, and the errors of reading metadata.
        """
        whole = self._reader.read()
        cluster = replace(whole, partitions=tuple(p for p in whole.partitions if not topics or p.topic in topics))
        if unknown := sorted(set(topics) - {p.topic for p in cluster.partitions}):
            raise Terminal(f"Kafka cluster {cluster.cluster_id} has no topic {unknown[0]}: check the name")
        troubles: list[str] = []
        silent = self._silent(cluster, troubles)
        self._reader.avoid(silent)  # read topic settings from a broker that answers
        facts = self._settings(cluster, troubles)
        lost = [d.partition for d in diagnose_cluster(cluster, facts, silent).diagnoses if d.loss is not None]
        if lost:
            samples = self._sampled(cluster.cluster_id, lost, troubles)
            facts = replace(facts, samples=samples, ends=self._where(cluster, lost, silent))
        slow_disk = self._slow_disk(whole, silent, troubles) if forecast else None
        diagnosed = diagnose_cluster(cluster, facts, silent)
        return Examination(cluster, diagnosed, facts, silent, slow_disk=slow_disk, troubles=tuple(troubles))

    def _slow_disk(self, cluster: Cluster, silent: Collection[int], troubles: list[str]) -> SlowDiskForecast | None:
        if len(cluster.partitions) > MOST_MEASURED:
            return None
        answering = cluster.live.difference(silent)
        try:
            found = self._configs.broker_configs(answering, [FETCHERS])
        except BellwetherError as error:
            troubles.append(f"what one slow disk would do is unknown: {error}")
            return None
        fetchers = {b: int(known[FETCHERS]) for b, known in found.items() if known.get(FETCHERS, "").isdigit()}
        led: dict[int, dict[TopicPartition, int]] = {}
        for p in cluster.partitions:
            if p.leader in answering:
                led.setdefault(p.leader, {})[p.name] = -1
        asked = {number: cluster.brokers[number] for number in led}
        began, before = time.monotonic(), self._ask(asked, led)
        time.sleep(MEASURED_SECONDS)
        after, seconds = self._ask(asked, led), time.monotonic() - began
        for number, (_, problem) in (*before.items(), *after.items()):
            if problem:
                troubles.append(f"what one slow disk would do is unknown: broker {number}: {problem}")
                return None
        first = {name: end for ends, _ in before.values() for name, end in ends.items()}
        grown = {name: end - first.get(name, end) for ends, _ in after.values() for name, end in ends.items()}
        return slow_disk_forecast(cluster, {n: more / seconds for n, more in grown.items() if more > 0}, fetchers)

    def _silent(self, cluster: Cluster, troubles: list[str]) -> dict[int, str]:
        """Brokers that do not answer; none if all fail, since then this client's network is the cause."""
        needed = {r for p in cluster.partitions for r in p.replicas} & cluster.live
        silent, others = self._unanswering(cluster, needed), cluster.live - needed
        if not silent or len(silent) < len(needed) or self._unanswering(cluster, others).keys() < others:
            return silent
        number, why = min(silent.items())
        troubles.append(
            "no broker is reachable at its advertised address; results are based on metadata from one bootstrap broker "
            f"only; run the command where the advertised addresses are reachable (broker {number}: {why})"
        )
        return {}

    def _unanswering(self, cluster: Cluster, asked: Collection[int]) -> dict[int, str]:
        brokers = {number: cluster.brokers[number] for number in sorted(asked)}
        return {number: problem for number, (_, problem) in self._ask(brokers, {}).items() if problem}

    def _settings(self, cluster: Cluster, troubles: list[str]) -> RiskInputs:
        topics = {p.topic for p in cluster.partitions}
        try:
            found = self._configs.topic_configs(topics, (MIN_ISR, UNCLEAN))
        except BellwetherError as error:
            troubles.append(f"{MIN_ISR} is unknown: {error}")
            return RiskInputs()
        floors = {topic: int(settings[MIN_ISR]) for topic, settings in found.items() if MIN_ISR in settings}
        unclean = {topic: settings[UNCLEAN] == "true" for topic, settings in found.items() if UNCLEAN in settings}
        return RiskInputs(floors, unclean)

    def _sampled(
        self, cluster_id: str, lost: Iterable[Partition], troubles: list[str]
    ) -> Mapping[PartitionKey, LogEndSample]:
        try:
            return self._samples(cluster_id, {p.key for p in lost})
        except BellwetherError as error:
            troubles.append(f"samples are unavailable: {error}")
            return {}

    def _where(
        self, cluster: Cluster, lost: Iterable[Partition], silent: Collection[int]
    ) -> Mapping[TopicPartition, Mapping[int, int]]:
        """Log end offsets of live replicas, by partition and broker."""
        questions: dict[int, dict[TopicPartition, int]] = {}
        for p in lost:
            for replica in cluster.live.intersection(p.replicas).difference(silent):
                questions.setdefault(replica, {})[p.name] = -1
        answered = self._ask({number: cluster.brokers[number] for number in questions}, questions)
        found: dict[TopicPartition, dict[int, int]] = {}
        for number, (ends, _) in answered.items():
            for name, end in ends.items():
                found.setdefault(name, {})[number] = end
        return found

    def _ask(
        self, brokers: Mapping[int, Broker], questions: Mapping[int, Mapping[TopicPartition, int]]
    ) -> dict[int, tuple[Mapping[TopicPartition, int], str]]:
        """Log ends and the error of each broker; brokers without a question are contacted, too."""

        def ask(number: int) -> tuple[Mapping[TopicPartition, int], str]:
            broker = brokers[number]
            if not broker.host or broker.port <= 0:
                return {}, "metadata contains no address for it"
            address = join_address(broker.host, broker.port)
            answered = self._ends.ask(address, questions.get(number, {}), TIMEOUT_SECONDS, LONGEST_SECONDS)
            return answered.ends, answered.problem

        if not brokers:
            return {}
        with ThreadPoolExecutor(min(_ASKED_AT_ONCE, len(brokers)), thread_name_prefix="doctor") as pool:
            return dict(zip(brokers, pool.map(ask, brokers), strict=True))
