"""``bellwether sample``: record the log end offset and log size of every partition once per minute."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import KubernetesClient
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.cli.kafka_target import connection_from, kafka_options
from bellwether.cli.kubernetes_target import Target, connect
from bellwether.cli.output import OUTPUT
from bellwether.cli.probe.prober_options import need, reported
from bellwether.cli.process_options import LOG_FORMAT, LOG_LEVEL, METADATA_LIMIT, METRICS_PORT, Selection, selecting
from bellwether.cli.rebalance.sample_table import print_sample
from bellwether.kafka_connection import Connection
from bellwether.sampling.rounds import Rounds, Sources
from bellwether.sampling.schedules import Schedule
from bellwether.telemetry.heartbeat import STUCK_SECONDS

if TYPE_CHECKING:
    from bellwether.adapters.kafka.connection.broker_pool import Limits
    from bellwether.adapters.prometheus.topic_consumption import TopicReaders
    from bellwether.adapters.store.filesystems import Store
    from bellwether.adapters.store.samples.sample_writer import SampleWriter
    from bellwether.api.config.load_config import LoadConfig
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.cli.rebalance.prometheus_options import Consumers
    from bellwether.sampling.sampler import Sampler
    from bellwether.telemetry.health_server import Health
    from bellwether.telemetry.metrics.metric_registry import JointRegistry
    from bellwether.telemetry.metrics.sampler_metrics import SamplingMetrics

# Time limit for the metadata of a large cluster; the rest of the period is for the requests of the same round.
_MAP_SECONDS, _MAP_SHARE = 20.0, 1 / 3
_DEFAULT_DAYS = 14
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@selecting
@kafka_options
@click.option(
    "--store",
    "uri",
    metavar="URI",
    help="Store: a directory, s3://, gs://, abfs:// or hdfs://.  [default: with --load-config, the policy's own"
    " directory in the store that it names]",
)
@click.option(
    "--load-config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML file of the operator with the stores that policies name.",
)
@click.option("--period", type=click.IntRange(1, 3600), default=60, show_default=True, help="Seconds between samples.")
@click.option(
    "--once", is_flag=True, help="Take one sample, write it, print the result per broker; exit status 4 on a failure."
)
@OUTPUT
@click.option(
    "--broker-timeout",
    type=click.FloatRange(0.1, 60),
    default=5.0,
    show_default=True,
    help="Request timeout per broker, in seconds; a broker that does not answer is left out of the sample.",
)
@click.option(
    "--retention-days",
    type=click.IntRange(1, 3660),
    help="Retention of samples, in days.  [default: the policy's rebalance.historyDays, or 14]",
)
@click.option("--prometheus", metavar="URL", help="Prometheus with the consumer throughput of each topic.")
@click.option(
    "--consume-query",
    metavar="PROMQL",
    help="Query for bytes/s to consumers, one series per topic; $namespace and $policy are replaced by the policy's."
    "  [default: BytesOutPerSec of the JMX exporter or of"
    " Strimzi's Metrics Reporter]",
)
@click.option("--prometheus-token-file", type=_FILE, help="File with the bearer token for Prometheus.")
@click.option("--prometheus-username", help="User name for Prometheus (basic authentication).")
@click.option("--prometheus-password-file", type=_FILE, help="File with the password for Prometheus.")
@click.option(
    "--prometheus-header",
    multiple=True,
    metavar="NAME=VALUE",
    help="Header of each request to Prometheus, such as X-Scope-OrgID=orders; repeatable.",
)
@click.option("--prometheus-proxy", metavar="URL", help="HTTP proxy to Prometheus.")
@click.option("--prometheus-ca", type=_FILE, help="PEM file of the CA certificates of Prometheus.")
@click.option(
    "--compaction/--no-compaction", default=True, show_default=True, help="Compact files and delete expired days."
)
@METADATA_LIMIT
@METRICS_PORT
@click.option(
    "--health-port",
    type=click.IntRange(1, 65535),
    help="Additional port of /healthz and /readyz.",
)
@LOG_FORMAT
@LOG_LEVEL
def sample(
    policy: str | None,
    target: Target,
    selection: Selection,
    uri: str | None,
    load_config: Path | None,
    period: int,
    once: bool,
    output: str,
    broker_timeout: float,
    retention_days: int | None,
    prometheus: str | None,
    consume_query: str | None,
    prometheus_token_file: Path | None,
    prometheus_username: str | None,
    prometheus_password_file: Path | None,
    prometheus_header: tuple[str, ...],
    prometheus_proxy: str | None,
    prometheus_ca: Path | None,
    compaction: bool,
    metadata_mebibytes: int,
    metrics_port: int | None,
    health_port: int | None,
    log_format: Any,
    log_level: str,
    **kafka: Any,
) -> None:
    """Record the load of every partition once per minute.

    Requests the log end offsets and log sizes from all leaders and writes them as Parquet files; `bellwether rebalance`
    reads them. Without --policy or --bootstrap it samples the clusters of all policies of the namespaces, each into the
    store that it names. Installs nothing on the brokers and changes nothing in Kafka. It can be stopped and restarted
    at any time, and two replicas may run.
    """
    from bellwether.adapters.prometheus.topic_consumption import DEFAULT_QUERY
    from bellwether.api.config.load_config import LoadConfig
    from bellwether.cli.probe.prober_process import serve, stop_on_signals
    from bellwether.cli.rebalance.prometheus_options import Consumers, PrometheusAccess
    from bellwether.telemetry.health_server import Health
    from bellwether.telemetry.logs import configure
    from bellwether.telemetry.metrics.metric_registry import JointRegistry
    from bellwether.telemetry.metrics.sampler_metrics import SamplingMetrics

    configure(log_format, "warning" if once and log_level == "info" else log_level)
    by_hand = bool(kafka["bootstrap"])
    if by_hand and (policy or selection.namespaces or selection.everywhere):
        raise click.UsageError("Set either --policy, or --bootstrap with the TLS and SASL options.")
    if not by_hand and any(value for name, value in kafka.items() if name != "bootstrap"):
        raise click.UsageError(
            "TLS and SASL options require --bootstrap: with --policy the connection is the policy's."
        )
    if load_config is not None and by_hand:
        raise click.UsageError("--load-config requires --policy, which names a store in it: set --store instead.")
    if by_hand or policy:
        need(uri or (policy and load_config), "--store", "the store of the samples (or --policy with --load-config)")
    else:
        need(not once, "--policy", "the LeadershipPolicy to sample once (or --bootstrap)")
        _check_several(uri, load_config, prometheus, consume_query)
    with reported():
        access = PrometheusAccess(
            token_file=prometheus_token_file,
            username=prometheus_username,
            password_file=prometheus_password_file,
            headers=prometheus_header,
            proxy=prometheus_proxy,
            ca=prometheus_ca,
        )
        consumers = Consumers(prometheus, consume_query or DEFAULT_QUERY, access)
        settings = _Settings(
            uri,
            LoadConfig.read(load_config) if load_config is not None else None,
            period,
            broker_timeout,
            retention_days,
            consumers,
            compaction and not once,
            _limits(period, metadata_mebibytes),
        )
        options = partial(connection_from, **kafka)
        if once:
            cluster = _Cluster(options(), options) if by_hand else _Cluster.of_policy(str(policy), *connect(target))
            sys.exit(_ClusterSampler(settings, lambda: cluster, SamplingMetrics(), threading.Event()).once(output))
        health = Health()
        if by_hand:
            cluster, metrics = _Cluster(options(), options), SamplingMetrics()
            serve(health, metrics.registry, metrics_port, health_port)
            alone = _ClusterSampler(settings, lambda: cluster, metrics, stop_on_signals())
            health.watch(lambda: alone.problems(STUCK_SECONDS))
            alone.run()
        else:
            registry = JointRegistry("sampler")
            serve(health, registry, metrics_port, health_port)
            _sample_policies(selection, settings, registry, health)


def _check_several(uri: str | None, load_config: Path | None, prometheus: str | None, query: str | None) -> None:
    """Refuse options that would mix the samples of several Kafka clusters."""
    from bellwether.cli.rebalance.prometheus_options import MARKS

    if uri:
        raise click.UsageError(
            "--store requires --policy or --bootstrap: with --load-config each policy has a directory of its own."
        )
    need(load_config, "--load-config", "the stores that policies name (or --policy or --bootstrap, and --store)")
    if prometheus and not any(mark in (query or "") for mark in MARKS):
        raise click.UsageError(
            "--prometheus for several policies requires a --consume-query with $namespace or $policy: topics of"
            " different Kafka clusters may have the same name."
        )


def _sample_policies(selection: Selection, settings: _Settings, registry: JointRegistry, health: Health) -> None:
    """Sample the cluster of every policy of the selection, each on threads of its own."""
    from bellwether.cli.probe.prober import read_policy
    from bellwether.cli.probe.prober_process import stop_on_signals
    from bellwether.cli.watched_policies import PolicyList, WatchedPolicies
    from bellwether.telemetry.metrics.sampler_metrics import SamplingMetrics

    api, default = connect(selection.target)
    if selection.policy is not None:
        read_policy(api, default, selection.policy)  # a name that is wrong ends the command instead of waiting

    def begin(namespace: str, name: str, stop: threading.Event) -> _ClusterSampler:
        def cluster() -> _Cluster:
            return _Cluster.of_policy(name, api, namespace, labelled_secrets=selection.labelled_secrets)

        metrics = SamplingMetrics({"namespace": namespace, "policy": name})
        return _ClusterSampler(settings, cluster, metrics, stop, registry)

    listed = PolicyList(api, default, selection)
    policies = WatchedPolicies(listed.read, begin, SystemClock())
    health.watch(policies.problems)
    health.require(listed.unread)
    policies.run(stop_on_signals())


@dataclass(frozen=True)
class _Settings:
    """Options that all sampled clusters share. The store is ``uri``, or the one that each policy names in ``loads``."""

    uri: str | None
    loads: LoadConfig | None
    period: int
    broker_timeout: float
    retention_days: int | None
    consumers: Consumers
    compaction: bool
    limits: Limits


class _ClusterSampler:
    """The sampler of one cluster. As a ``PolicyRun`` it samples until ``stop``, its metrics in ``served`` meanwhile."""

    def __init__(
        self,
        settings: _Settings,
        cluster: Callable[[], _Cluster],
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

    def problems(self, bound_seconds: float) -> list[str]:
        """Failures that only a restart fixes. A round may take a whole period, and the store another one."""
        sampler = self._sampler
        return [] if sampler is None else sampler.problems(bound_seconds + 2 * self._settings.period)

    def run(self) -> None:
        """Sample until ``stop``. Raises Transient or Terminal before the first round."""
        if self._served is not None:
            self._served.add(self._metrics.registry)
        try:
            self._work(self._sample)
        finally:
            if self._served is not None:
                self._served.remove(self._metrics.registry)

    def once(self, output: str) -> int:
        """Sample once, print the result, and return the exit status. Raises Transient or Terminal."""

        def take(_cluster: _Cluster, rounds: Rounds, writer: SampleWriter, store: Store) -> int:
            sampled = rounds.take(SystemClock().now().replace(microsecond=0))
            return print_sample(sampled, writer.write, str(store), output)

        return self._work(take)

    def _work(self, work: Callable[[_Cluster, Rounds, SampleWriter, Store], int]) -> int:
        """Call ``work`` with what it needs, and clean up."""
        from bellwether.adapters.store.filesystems import Store
        from bellwether.adapters.store.samples.compaction_worker import Upkeep
        from bellwether.adapters.store.samples.sample_writer import SampleWriter

        settings, cluster, clock = self._settings, self._find(), SystemClock()
        try:
            store = Store.open(settings.uri or cluster.uri(settings.loads))
            rounds = Rounds(
                _sources(cluster.connection, settings.consumers.read(cluster.policy), settings.limits),
                clock,
                timeout_seconds=settings.broker_timeout,
                period_seconds=settings.period,
            )
            keeping = Upkeep(store, settings.retention_days or cluster.days, clock, self._metrics)
            writer = SampleWriter(store, keeping.start if settings.compaction else lambda _: None)
            try:
                return work(cluster, rounds, writer, store)
            finally:
                keeping.stop()
                rounds.close()
        finally:
            cluster.close()

    def _sample(self, cluster: _Cluster, rounds: Rounds, writer: SampleWriter, _store: Store) -> int:
        from bellwether.sampling.sampler import Sampler

        settings = self._settings

        def prepare() -> None:
            changed, readers = cluster.read(), settings.consumers.read(cluster.policy)
            if changed or readers is not rounds.sources.readers:
                rounds.sources = _sources(cluster.connection, readers, settings.limits)

        self._sampler = Sampler(rounds, writer.write, Schedule(settings.period), SystemClock(), self._metrics)
        self._sampler.run(self._stop, prepare)
        return 0


class _Cluster:
    """Cluster to sample, with the connection from options or from the present policy."""

    def __init__(self, made: Connection, options: Callable[[], Connection] | None = None) -> None:
        self.connection = made
        self._options = options
        self.policy: LeadershipPolicy | None = None
        self.days = _DEFAULT_DAYS
        self._again: _Policy | None = None

    @classmethod
    def of_policy(
        cls, policy: str, api: KubernetesClient, namespace: str, *, labelled_secrets: bool = False
    ) -> _Cluster:
        """Cluster of a policy. Raises Transient or Terminal."""
        again = _Policy(api, namespace, policy, labelled_secrets)
        found = again.read()
        cluster = cls(again.connection(found))
        cluster._again, cluster.policy = again, found
        if found.spec.rebalance is not None:
            cluster.days = found.spec.rebalance.history_days
        return cluster

    def uri(self, loads: LoadConfig | None) -> str:
        """The policy's directory in the store that it names. Raises NotConfigured."""
        assert loads is not None and self.policy is not None  # noqa: S101, PT018 - the options were checked
        return loads.uri(self.policy)

    def read(self) -> bool:
        """Read the policy and its Secrets, or the options' files, again; returns whether the connection changed.

        Raises Transient or Terminal; the former connection is kept then.
        """
        if self._again is not None:
            made = self._again.connection(self._again.read())
        else:
            made = self._options() if self._options is not None else self.connection
        changed, self.connection = made != self.connection, made
        return changed

    def close(self) -> None:
        """Remove temporary files of the connection."""
        if self._again is not None:
            self._again.secrets.close()


class _Policy:
    """A policy in the Kubernetes API."""

    def __init__(self, api: KubernetesClient, namespace: str, name: str, labelled_secrets: bool) -> None:
        self._api, self._namespace = api, namespace
        self._name = name
        self.secrets = SecretReader(api, namespace, labelled=labelled_secrets)

    def read(self) -> LeadershipPolicy:
        """Read the policy. Raises Transient or Terminal."""
        from bellwether.cli.probe.prober import read_policy

        return read_policy(self._api, self._namespace, self._name)

    def connection(self, policy: LeadershipPolicy) -> Connection:
        """Resolve the connection. Raises Transient or Terminal."""
        from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection

        return connection(policy.spec.kafka, self.secrets)


def _limits(period: int, metadata_mebibytes: int) -> Limits:
    from bellwether.adapters.kafka.connection.broker_pool import Limits

    seconds = max(2.0, min(_MAP_SECONDS, _MAP_SHARE * period))
    return Limits(request_seconds=seconds, read_seconds=seconds, metadata_bytes=metadata_mebibytes << 20)


def _sources(made: Connection, readers: TopicReaders | None, limits: Limits) -> Sources:
    from bellwether.adapters.kafka.brokers.log_dirs import LogDirs
    from bellwether.adapters.kafka.brokers.log_ends import LogEnds
    from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
    from bellwether.adapters.kafka.metadata_reader import KafkaReader

    return Sources(KafkaReader(BrokerPool(made, limits)), LogEnds(made), LogDirs(made), readers)
