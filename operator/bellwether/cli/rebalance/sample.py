"""``bellwether sample``: record the log end offset and log size of every partition once per minute."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.brokers.log_dirs import LogDirs
from bellwether.adapters.kafka.brokers.log_ends import LogEnds
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.adapters.prometheus.query_client import Access, PrometheusClient
from bellwether.adapters.prometheus.topic_consumption import BODY_LIMIT, DEFAULT_QUERY, SERIES_LIMIT, TopicReaders
from bellwether.adapters.store.filesystems import Store
from bellwether.adapters.store.samples.compaction_worker import Upkeep
from bellwether.adapters.store.samples.sample_writer import SampleWriter
from bellwether.api.config.load_config import LoadConfig
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.commands.kubernetes_options import Target
from bellwether.cli.kafka_target import connection_from
from bellwether.cli.kubernetes_target import connect
from bellwether.cli.probe.prober import read_policy
from bellwether.cli.probe.prober_process import need, reported, serve, stop_on_signals
from bellwether.cli.rebalance.prometheus_options import PrometheusAccess
from bellwether.cli.rebalance.sample_table import print_sample
from bellwether.kafka_connection import Connection
from bellwether.sampling.rounds import Rounds, Sources
from bellwether.sampling.sampler import Sampler
from bellwether.sampling.schedules import Schedule
from bellwether.telemetry.health_server import Health
from bellwether.telemetry.heartbeat import STUCK_SECONDS
from bellwether.telemetry.logs import configure
from bellwether.telemetry.metrics.sampler_metrics import SamplingMetrics

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
# Time limit for the metadata of a large cluster; the rest of the period is for the requests of the same round.
_MAP_SECONDS, _MAP_SHARE = 20.0, 1 / 3
_DEFAULT_DAYS = 14


def sample(
    policy: str | None,
    target: Target,
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
    """Record log end offsets and log sizes of all leaders once per minute, as Parquet files."""
    configure(log_format, "warning" if once and log_level == "info" else log_level)
    if bool(policy) == bool(kafka["bootstrap"]):
        raise click.UsageError("Set either --policy, or --bootstrap with the TLS and SASL options.")
    if policy and any(value for name, value in kafka.items() if name != "bootstrap"):
        raise click.UsageError(
            "TLS and SASL options require --bootstrap: with --policy the connection is the policy's."
        )
    if load_config is not None and not policy:
        raise click.UsageError("--load-config requires --policy, which names a store in it: set --store instead.")
    with reported():
        options = partial(connection_from, **kafka)
        cluster = _Cluster.of_policy(policy, target) if policy else _Cluster(options(), options)
        if uri is None and load_config is not None and cluster.policy is not None:
            uri = LoadConfig.read(load_config).uri(cluster.policy)
        need(uri, "--store", "the store of the samples (or --policy with --load-config)")
        days = retention_days or cluster.days
        store = Store.open(str(uri))
        access = PrometheusAccess(
            token_file=prometheus_token_file,
            username=prometheus_username,
            password_file=prometheus_password_file,
            headers=prometheus_header,
            proxy=prometheus_proxy,
            ca=prometheus_ca,
        )
        consumers = Consumers(prometheus, consume_query or DEFAULT_QUERY, access)
        readers = consumers.read()
        sampled = cluster.policy
        labels = {"namespace": sampled.metadata.namespace, "policy": sampled.metadata.name} if sampled else {}
        clock, metrics = SystemClock(), SamplingMetrics(labels)
        limits = _limits(period, metadata_mebibytes)
        rounds = Rounds(
            _sources(cluster.connection, readers, limits), clock, timeout_seconds=broker_timeout, period_seconds=period
        )
        keeping = Upkeep(store, days, clock, metrics)
        writer = SampleWriter(store, keeping.start if compaction and not once else lambda _: None)
        try:
            if once:
                sys.exit(
                    print_sample(rounds.take(clock.now().replace(microsecond=0)), writer.write, str(store), output)
                )

            def prepare() -> None:
                nonlocal readers
                if cluster.read():
                    rounds.sources = _sources(cluster.connection, readers, limits)
                again = consumers.read()
                if again is not readers:
                    readers = again
                    rounds.sources = _sources(cluster.connection, readers, limits)

            sampler, health = Sampler(rounds, writer.write, Schedule(period), clock, metrics), Health()
            # A round may take a whole period, and the store another one.
            health.watch(lambda: sampler.problems(STUCK_SECONDS + 2 * period))
            serve(health, metrics.registry, metrics_port, health_port)
            sampler.run(stop_on_signals(), prepare)
        finally:
            keeping.stop()
            rounds.close()
            cluster.close()


class _Cluster:
    """Cluster to sample, with the connection from options or from the present policy."""

    def __init__(self, made: Connection, options: Callable[[], Connection] | None = None) -> None:
        self.connection = made
        self._options = options
        self.policy: LeadershipPolicy | None = None
        self.days = _DEFAULT_DAYS
        self._again: _Policy | None = None

    @classmethod
    def of_policy(cls, policy: str, target: Target) -> _Cluster:
        """Cluster of a policy. Raises Transient or Terminal."""
        again = _Policy(target, policy)
        found = again.read()
        cluster = cls(again.connection(found))
        cluster._again, cluster.policy = again, found
        if found.spec.rebalance is not None:
            cluster.days = found.spec.rebalance.history_days
        return cluster

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

    def __init__(self, target: Target, name: str) -> None:
        self._api, self._namespace = connect(target)
        self._name = name
        self.secrets = SecretReader(self._api, self._namespace)

    def read(self) -> LeadershipPolicy:
        """Read the policy. Raises Transient or Terminal."""
        return read_policy(self._api, self._namespace, self._name)

    def connection(self, policy: LeadershipPolicy) -> Connection:
        """Resolve the connection. Raises Transient or Terminal."""
        return connection(policy.spec.kafka, self.secrets)


def _limits(period: int, metadata_mebibytes: int) -> Limits:
    seconds = max(2.0, min(_MAP_SECONDS, _MAP_SHARE * period))
    return Limits(request_seconds=seconds, read_seconds=seconds, metadata_bytes=metadata_mebibytes << 20)


def _sources(made: Connection, readers: TopicReaders | None, limits: Limits) -> Sources:
    return Sources(KafkaReader(BrokerPool(made, limits)), LogEnds(made), LogDirs(made), readers)


class Consumers:
    """Client for consumer throughput per topic in Prometheus; its files are read again in each round."""

    def __init__(self, url: str | None, query: str, access: PrometheusAccess) -> None:
        if url is None and access != PrometheusAccess():
            raise click.UsageError("The options --prometheus-... require --prometheus.")
        if url is not None and not url.startswith(("http://", "https://")):
            raise click.UsageError(f"--prometheus {url!r} is not a URL: use a value such as http://prometheus:9090.")
        self._url, self._query, self._files = url, query, access
        self._made: TopicReaders | None = None
        self._access: Access | None = None

    def read(self) -> TopicReaders | None:
        """The client, None without --prometheus; a new one if a file has changed. Terminal names a bad file."""
        if self._url is None:
            return None
        access = self._files.read()
        if self._made is None or access != self._access:
            self._access = access
            client = PrometheusClient(self._url, access, body_limit=BODY_LIMIT, series_limit=SERIES_LIMIT)
            self._made = TopicReaders(client, self._query)
        return self._made
