"""Examine a cluster for ``bellwether doctor``: read it, ask its brokers, and diagnose every partition.

In: the ports, and a way to look samples up. Out: an ``Examination``. Metadata calls a broker alive until its session
runs out, so every one is spoken to as well; where copies end is asked only of partitions that nobody may lead.
"""

from __future__ import annotations

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
from bellwether.core.model.cluster import Broker, Cluster, Partition, PartitionKey, TopicPartition
from bellwether.kafka_connection import join_address
from bellwether.ports.errors import BellwetherError, Terminal
from bellwether.ports.kafka import ClusterReader, TopicConfigReader
from bellwether.sampling.asking import AsksEnds

_ASKED_AT_ONCE = 32
TIMEOUT_SECONDS, LONGEST_SECONDS = 2.0, 8.0

Samples = Callable[[str, Collection[PartitionKey]], Mapping[PartitionKey, LogEndSample]]
"""The last samples of some partitions of a cluster, by its id."""


def no_samples(_cluster_id: str, _wanted: Collection[PartitionKey]) -> Mapping[PartitionKey, LogEndSample]:
    """What is known without a store."""
    return {}


@dataclass(frozen=True)
class Examination:
    """What was found; ``silent`` are brokers that metadata calls alive and that did not answer, and why.

    ``troubles`` says what could not be found out.
    """

    cluster: Cluster
    risk_summary: RiskSummary
    facts: RiskInputs
    silent: Mapping[int, str]
    troubles: tuple[str, ...] = ()

    def of(self, name: TopicPartition) -> Diagnosis:
        """One partition's diagnosis. Raises Terminal where there is no such partition."""
        for found in self.risk_summary.diagnoses:
            if found.partition.name == name:
                return found
        raise Terminal(f"there is no partition {name} in Kafka cluster {self.cluster.cluster_id}: check the name")


class Examiner:
    """Examines one cluster, as often as asked."""

    def __init__(self, reader: ClusterReader, configs: TopicConfigReader, ends: AsksEnds, samples: Samples) -> None:
        self._reader = reader
        self._configs = configs
        self._ends = ends
        self._samples = samples

    def examine(self, topics: Collection[str] = ()) -> Examination:
        """Examine some topics, or all. Raises what reading metadata raises; Terminal for a topic that there is not."""
        whole = self._reader.read()
        cluster = replace(whole, partitions=tuple(p for p in whole.partitions if not topics or p.topic in topics))
        if unknown := sorted(set(topics) - {p.topic for p in cluster.partitions}):
            raise Terminal(f"there is no topic {unknown[0]} in Kafka cluster {cluster.cluster_id}: check the name")
        troubles: list[str] = []
        silent = self._silent(cluster, troubles)
        self._reader.avoid(silent)  # the settings come from a broker that answers
        facts = self._settings(cluster, troubles)
        lost = [d.partition for d in diagnose_cluster(cluster, facts, silent).diagnoses if d.loss is not None]
        if lost:
            samples = self._sampled(cluster.cluster_id, lost, troubles)
            facts = replace(facts, samples=samples, ends=self._where(cluster, lost, silent))
        return Examination(cluster, diagnose_cluster(cluster, facts, silent), facts, silent, tuple(troubles))

    def _silent(self, cluster: Cluster, troubles: list[str]) -> dict[int, str]:
        """Who does not answer. Where nobody does, that is about us: somebody has just told us of the cluster."""
        needed = {r for p in cluster.partitions for r in p.replicas} & cluster.live
        silent = self._unanswering(cluster, needed)
        if not silent or len(silent) < len(needed) or self._anybody(cluster, cluster.live - needed):
            return silent
        number, why = min(silent.items())
        troubles.append(
            "no broker answers where metadata says that it is, and one has told this metadata: judged by it alone; run "
            f"the doctor where the addresses of that listener lead to the brokers (broker {number}: {why})"
        )
        return {}

    def _anybody(self, cluster: Cluster, others: Collection[int]) -> bool:
        return len(self._unanswering(cluster, others)) < len(others)

    def _unanswering(self, cluster: Cluster, asked: Collection[int]) -> dict[int, str]:
        brokers = {number: cluster.brokers[number] for number in sorted(asked)}
        return {number: problem for number, (_, problem) in self._ask(brokers, {}).items() if problem}

    def _settings(self, cluster: Cluster, troubles: list[str]) -> RiskInputs:
        topics = {p.topic for p in cluster.partitions}
        try:
            found = self._configs.topic_configs(topics, (MIN_ISR, UNCLEAN))
        except BellwetherError as error:
            troubles.append(f"{MIN_ISR} is not known: {error}")
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
            troubles.append(f"no samples: {error}")
            return {}

    def _where(
        self, cluster: Cluster, lost: Iterable[Partition], silent: Collection[int]
    ) -> Mapping[TopicPartition, Mapping[int, int]]:
        """Where the copies of living replicas end, by partition and broker."""
        questions: dict[int, dict[TopicPartition, int]] = {}
        for p in lost:
            for replica in cluster.live.intersection(p.replicas).difference(silent):
                questions.setdefault(replica, {})[p.name] = -1
        told = self._ask({number: cluster.brokers[number] for number in questions}, questions)
        found: dict[TopicPartition, dict[int, int]] = {}
        for number, (ends, _) in told.items():
            for name, end in ends.items():
                found.setdefault(name, {})[number] = end
        return found

    def _ask(
        self, brokers: Mapping[int, Broker], questions: Mapping[int, Mapping[TopicPartition, int]]
    ) -> dict[int, tuple[Mapping[TopicPartition, int], str]]:
        """What each told, and why it did not tell; every broker is greeted, with or without a question."""

        def ask(number: int) -> tuple[Mapping[TopicPartition, int], str]:
            broker = brokers[number]
            if not broker.host or broker.port <= 0:
                return {}, "metadata names no address"
            address = join_address(broker.host, broker.port)
            told = self._ends.ask(address, questions.get(number, {}), TIMEOUT_SECONDS, LONGEST_SECONDS)
            return told.ends, told.problem

        if not brokers:
            return {}
        with ThreadPoolExecutor(min(_ASKED_AT_ONCE, len(brokers)), thread_name_prefix="doctor") as pool:
            return dict(zip(brokers, pool.map(ask, brokers), strict=True))
