"""Sample one Kafka cluster: its connection from options or from a policy, its store, rounds and rollups.

In: settings that all clusters share, and where a cluster is. Out: samples in the store until a stop event. Called by
``bellwether sample``, for one cluster or for those of all policies of a selection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.brokers.log_dirs import LogDirs
from bellwether.adapters.kafka.brokers.log_ends import LogEnds
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.kubernetes.api_client import KubernetesClient
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.adapters.kubernetes.objects.leader_rebalances import with_rebalances
from bellwether.adapters.prometheus.query_client import Access, PrometheusClient
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.spec.rebalance_spec import LeaderRebalanceSpec
from bellwether.kafka_connection import Connection
from bellwether.probes.runtime.prober import read_policy
from bellwether.probes.runtime.watched_policies import Selection
from bellwether.telemetry.metrics.metric_registry import JointRegistry
from bellwether_load.api.load_config import LoadConfig
from bellwether_load.sampling.rollup_worker import RollupWorker
from bellwether_load.sampling.rounds import Rounds, Sources
from bellwether_load.sampling.sampler import Sampler
from bellwether_load.sampling.sampler_metrics import SamplingMetrics
from bellwether_load.sampling.topic_consumption import BODY_LIMIT, SERIES_LIMIT, TopicReaders
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.sample_files import Rows, SampleWriter

MARKS = ("$namespace", "$policy")
"""Replaced in a query by those of the policy."""

# Time limit for the metadata of a large cluster; the rest of the period is for the requests of the same round.
_MAP_SECONDS, _MAP_SHARE = 20.0, 1 / 3

_DEFAULTS = LeaderRebalanceSpec(policy="any")


@dataclass(frozen=True)
class Settings:
    """Options that all sampled clusters share. The store is ``uri``, or the one that each policy names in ``loads``."""

    uri: str | None
    loads: LoadConfig | None
    period: int
    broker_timeout: float
    retention_days: int | None
    consumers: Consumers
    limits: Limits
    requests: Consumers | None = None

    def readers(self, policy: LeadershipPolicy | None) -> tuple[TopicReaders | None, TopicReaders | None]:
        """Who reads consumption and requests of a cluster in Prometheus. Terminal names a bad file."""
        return self.consumers.read(policy), None if self.requests is None else self.requests.read(policy)


class ClusterSampler:
    """The sampler of one cluster. As a ``PolicyRun`` it samples until ``stop``, its metrics in ``served`` meanwhile."""

    def __init__(
        self,
        settings: Settings,
        cluster: Callable[[], Cluster],
        metrics: SamplingMetrics,
        stop: threading.Event,
        served: JointRegistry | None = None,
    ) -> None:
        self._settings = settings
        self._find = cluster
        self._metrics = metrics
        self._stop = stop
        self._served = served
        self._sampler: Sampler | None = None
        self._rollups: RollupWorker | None = None

    def problems(self, bound_seconds: float) -> list[str]:
        """Failures that only a restart fixes. A round may take a whole period, and the store another one."""
        sampler, rollups = self._sampler, self._rollups
        found = [] if sampler is None else sampler.problems(bound_seconds + 2 * self._settings.period)
        return found + ([] if rollups is None else rollups.problems())

    def run(self) -> None:
        """Sample until ``stop``. Raises Transient or Terminal before the first round."""
        if self._served is not None:
            self._served.add(self._metrics.registry)
        try:
            self.work(self._sample)
        finally:
            if self._served is not None:
                self._served.remove(self._metrics.registry)

    def work(self, work: Callable[[Cluster, Rounds, SampleWriter, Store], int]) -> int:
        """Call ``work`` with what it needs, and clean up; returns its result. Raises Transient or Terminal."""
        settings, cluster, clock = self._settings, self._find(), SystemClock()
        try:
            uri = settings.uri or cluster.uri(settings.loads)
            store = Store.open(uri)
            rounds = Rounds(
                _sources(cluster.connection, settings.readers(cluster.policy), settings.limits),
                clock,
                timeout_seconds=settings.broker_timeout,
                period_seconds=settings.period,
            )
            days = settings.retention_days or cluster.days
            self._rollups = RollupWorker(store, uri, days, clock, self._metrics)
            try:
                return work(cluster, rounds, SampleWriter(store), store)
            finally:
                self._rollups.stop()
                rounds.close()
        finally:
            cluster.close()

    def _sample(self, cluster: Cluster, rounds: Rounds, writer: SampleWriter, _store: Store) -> int:
        settings, rollups = self._settings, self._rollups
        assert rollups is not None  # noqa: S101 - ``work`` has set it

        def write(rows: Rows) -> None:
            writer.write(rows)
            rollups.start()  # not before: the store may be that of another cluster

        def prepare() -> None:
            changed, readers = cluster.read(), settings.readers(cluster.policy)
            if changed or readers != (rounds.sources.readers, rounds.sources.requests):
                rounds.sources = _sources(cluster.connection, readers, settings.limits)
            if cluster.settings_changed():  # last: the connection does not depend on LeaderRebalances
                self._stop.set()  # begun again with the store and the days that hold now

        self._sampler = Sampler(rounds, write, settings.period, SystemClock(), self._metrics)
        self._sampler.run(self._stop, prepare)
        return 0


class Cluster:
    """Cluster to sample. ``read`` gives its connection, from options or from the present policy."""

    def __init__(
        self,
        read: Callable[[], Connection],
        close: Callable[[], None] = lambda: None,
        present: Callable[[], LeadershipPolicy | None] = lambda: None,
    ) -> None:
        self._read = read
        self._present = present
        self.connection = read()
        self.policy = present()
        unknown = (_DEFAULTS.store, None if self.policy is not None else _DEFAULTS.history_days)
        self._kept = _kept(self.policy, unknown)
        self.close = close
        """Removes temporary files of the connection."""

    @classmethod
    def of_policy(cls, policy: str, api: KubernetesClient, namespace: str, rules: Selection) -> Cluster:
        """Cluster of a policy. Raises Transient or Terminal."""
        secrets = SecretReader(api, namespace, labelled=rules.labelled_secrets, destinations=rules.destinations)
        read = partial(read_policy, api, namespace, policy)
        return cls(lambda: connection(read().spec.kafka, secrets), secrets.close, lambda: with_rebalances(api, read()))

    @property
    def days(self) -> int | None:
        """Days of samples to keep; None while no LeaderRebalance has said how many."""
        return self._kept[1]

    def settings_changed(self) -> bool:
        """Whether its LeaderRebalance names another store or other days by now. Raises Transient or Terminal."""
        return _kept(self._present(), self._kept) != self._kept

    def uri(self, loads: LoadConfig | None) -> str:
        """The policy's directory in the store that its LeaderRebalance names, or in the default. Raises
        NotConfigured."""
        assert loads is not None and self.policy is not None  # noqa: S101, PT018 - the options were checked
        return loads.uri(self.policy, self._kept[0])

    def read(self) -> bool:
        """Read the policy and its Secrets, or the options' files, again; returns whether the connection changed.

        Raises Transient or Terminal; the former connection is kept then.
        """
        former, self.connection = self.connection, self._read()
        return former != self.connection


def _kept(policy: LeadershipPolicy | None, former: tuple[str, int | None]) -> tuple[str, int | None]:
    """The store that samples are written to, and for how many days they are kept, by the policy's LeaderRebalance.

    ``former`` holds while there is none or it is invalid: a mistake in it, or its replacement, must not delete history.
    """
    used = policy.rebalance if policy is not None else None
    return former if used is None else (used.spec.store, used.spec.history_days)


def read_limits(period: int, metadata_mebibytes: int) -> Limits:
    """Limits of reading metadata within a period, in seconds, with a largest response in MiB."""
    seconds = max(2.0, min(_MAP_SECONDS, _MAP_SHARE * period))
    return Limits(request_seconds=seconds, read_seconds=seconds, metadata_bytes=metadata_mebibytes << 20)


def _sources(made: Connection, readers: tuple[TopicReaders | None, TopicReaders | None], limits: Limits) -> Sources:
    return Sources(KafkaReader(BrokerPool(made, limits)), LogEnds(made), LogDirs(made), *readers)


class Consumers:
    """Clients for what topics have in Prometheus, one query; their files are read again in each round."""

    def __init__(self, url: str | None, query: str, access: Callable[[], Access]) -> None:
        self._url, self._query, self._access = url, query, access
        self._lock = threading.Lock()
        self._made: dict[str, tuple[Access, TopicReaders]] = {}

    def read(self, policy: LeadershipPolicy | None = None) -> TopicReaders | None:
        """The client for a cluster, None without --prometheus; a new one if a file has changed. The query has the
        policy's namespace and name in place of $namespace and $policy. Terminal names a bad file.
        """
        if self._url is None:
            return None
        access, query = self._access(), self._query
        if policy is not None:
            for mark, value in zip(MARKS, (policy.metadata.namespace, policy.metadata.name), strict=True):
                query = query.replace(mark, value)
        with self._lock:
            known = self._made.get(query)
            if known is None or known[0] != access:
                client = PrometheusClient(self._url, access, body_limit=BODY_LIMIT, series_limit=SERIES_LIMIT)
                known = self._made[query] = access, TopicReaders(client, query)
            return known[1]
