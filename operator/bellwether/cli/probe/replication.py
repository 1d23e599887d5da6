"""``bellwether probe replication``: compare log end offsets and report followers that lag."""

from __future__ import annotations

import sys
import threading
from typing import Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.brokers.log_ends import LogEnds
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.kubernetes.api_client import KubernetesClient, connect
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.kafka_target import connection_from
from bellwether.cli.probe import measurement_table
from bellwether.cli.probe.prober import Prober
from bellwether.cli.probe.prober_process import need, read_policy, reported, serve_metrics, stop_on_signals
from bellwether.core.settings.detection import ReplicationLag
from bellwether.core.signals import SignalType
from bellwether.kafka_connection import Connection
from bellwether.probes.replication.lag_round import LagRounds
from bellwether.probes.replication.replication_probe import ReplicationProbe
from bellwether.telemetry.logs import configure
from bellwether.telemetry.metrics.lag_metrics import LagMetrics
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics


def replication(
    policy: str | None,
    namespace: str,
    source: str,
    once: bool,
    metrics_port: int | None,
    log_format: Any,
    log_level: str,
    **kafka: Any,
) -> None:
    """Measure replication lag and report slow followers."""
    configure(log_format, "warning" if once and log_level == "info" else log_level)
    named = any(kafka.values())
    if named and not (once and kafka["bootstrap"]):
        raise click.UsageError(
            "--bootstrap and the TLS and SASL options require --once: with --policy the connection is the policy's."
        )
    need(policy or named, "--policy", "the LeadershipPolicy to read settings from (or --once with --bootstrap)")
    with reported():
        if named:
            sys.exit(_once(connection_from(**kafka), ReplicationLag()))
        api = connect()
        prober = _Replication(api, namespace, str(policy))
        if once:
            sys.exit(_once(*prober.connection(read_policy(api, namespace, str(policy)))))
        metrics = serve_metrics(metrics_port, namespace, str(policy), SignalType.REPLICATION_LAG, source)
        prober.run(source, metrics, stop_on_signals())


class _Replication:
    """The replication prober, configured from its policy."""

    def __init__(self, api: KubernetesClient, namespace: str, policy: str) -> None:
        self._api = api
        self._namespace = namespace
        self._policy = policy
        self._secrets = SecretReader(api, namespace)
        self._connection: Connection | None = None
        self._lag_rounds: LagRounds | None = None

    def connection(self, found: LeadershipPolicy) -> tuple[Connection, ReplicationLag]:
        """Connection and settings from the policy."""
        return connection(found.spec.kafka, self._secrets), found.policy().detection.replication_lag

    def run(self, source: str, metrics: ProbeMetrics, stop: threading.Event) -> None:
        """Probe until ``stop``."""
        clock = SystemClock()
        prober = Prober(self._api, self._namespace, self._policy, SignalType.REPLICATION_LAG, source, clock, metrics)
        running = ReplicationProbe(source, prober.post, prober.forget, prober.brokers, clock, LagMetrics(metrics))

        def follow(found: LeadershipPolicy | None) -> bool:
            if found is None or not found.spec.detection.replication_lag.enabled:
                running.configure(None, ReplicationLag())
                self._connection = self._lag_rounds = None
                return False
            made, settings = self.connection(found)
            if made != self._connection or self._lag_rounds is None:
                self._connection, self._lag_rounds = made, _lag_rounds(made)
            running.configure(self._lag_rounds, settings)
            return True

        running.start()
        try:
            prober.run(running, follow, stop)
        finally:
            running.stop()


def _lag_rounds(made: Connection) -> LagRounds:
    return LagRounds(KafkaReader(BrokerPool(made)), LogEnds(made), SystemClock())


def _once(made: Connection, settings: ReplicationLag) -> int:
    rounds = _lag_rounds(made)
    try:
        return measurement_table.replication(rounds, settings, SystemClock())
    finally:
        rounds.close()
