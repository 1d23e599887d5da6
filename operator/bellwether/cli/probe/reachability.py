"""``bellwether probe reachability``: probe every broker's external listener, with the internal one as control."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from typing import Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.brokers.broker_directory import BrokerDirectory
from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
from bellwether.adapters.kubernetes.api_client import KubernetesClient, connect
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import sides
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.probe import measurement_table
from bellwether.cli.probe.prober import Prober
from bellwether.cli.probe.prober_process import need, read_policy, reported, serve_metrics, stop_on_signals
from bellwether.core.settings.detection import Reachability
from bellwether.core.signals import SignalType
from bellwether.kafka_connection import Connection
from bellwether.probes.reachability.broker_addresses import TwoSides
from bellwether.probes.reachability.reachability_probe import ReachabilityProbe
from bellwether.telemetry.logs import configure
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics

ROSTER_SECONDS = 10.0
CREDIT_SECONDS = 5.0


def reachability(
    policy: str | None,
    namespace: str,
    vantage: str | None,
    once: bool,
    no_internal: bool,
    bootstrap: tuple[str, ...],
    listener: str | None,
    metrics_port: int | None,
    log_format: Any,
    log_level: str,
) -> None:
    """Probe every broker at its external address, and at its internal one as the control."""
    configure(log_format, "warning" if once and log_level == "info" else log_level)
    if bootstrap and not once:
        raise click.UsageError("--bootstrap requires --once: signals can be reported to Kubernetes only.")
    if listener and not bootstrap:
        raise click.UsageError("--listener requires --bootstrap: with --policy the listener is the policy's.")
    need(policy or bootstrap, "--policy", "the LeadershipPolicy to read settings from (or --once with --bootstrap)")
    with reported():
        if bootstrap:
            settings = Reachability(listener=listener) if listener else Reachability()
            sys.exit(_once_reachability(Connection(bootstrap), settings, no_internal))
        api = connect()
        prober = _Reachability(api, namespace, str(policy), no_internal)
        if once:
            made, settings = prober.connection(read_policy(api, namespace, str(policy)))
            sys.exit(_once_reachability(made, settings, no_internal))
        need(vantage, "--vantage", "a stable name of this vantage, such as eu-west-1a")
        kind = SignalType.EXTERNAL_REACHABILITY
        metrics = serve_metrics(metrics_port, namespace, str(policy), kind, str(vantage))
        prober.run(str(vantage), metrics, stop_on_signals())


class _Reachability:
    """The reachability prober, configured from its policy."""

    def __init__(self, api: KubernetesClient, namespace: str, policy: str, no_internal: bool) -> None:
        self._api = api
        self._namespace = namespace
        self._policy = policy
        self._no_internal = no_internal
        self._secrets = SecretReader(api, namespace)
        self._listed_by: tuple[Connection, tuple[str, ...]] | None = None
        self._roster: TwoSides | None = None
        self._wanted = False

    def connection(self, found: LeadershipPolicy) -> tuple[Connection, Reachability]:
        """Connection and settings from the policy."""
        settings = found.policy().detection.reachability
        both = sides(found.spec.kafka, self._secrets, settings.listener, settings.bootstrap_servers)
        return both.connection, replace(settings, listener=both.listener, bootstrap_servers=both.outside)

    def run(self, vantage: str, metrics: ProbeMetrics, stop: threading.Event) -> None:
        """Probe until ``stop``."""
        clock = SystemClock()
        prober = Prober(
            self._api, self._namespace, self._policy, SignalType.EXTERNAL_REACHABILITY, vantage, clock, metrics
        )
        # Replaced before the first request, and when the credentials change.
        asker = BrokerProbe(Connection(("unknown.invalid:9092",)))
        running = ReachabilityProbe(vantage, asker, Reachability(), prober.post, prober.forget, clock, metrics)

        def follow(found: LeadershipPolicy | None) -> bool:
            nonlocal asker
            self._wanted = found is not None and found.spec.detection.external_reachability.enabled
            if found is None or not self._wanted:
                running.stop()
                return False
            made, settings = self.connection(found)
            if (made, settings.bootstrap_servers) != self._listed_by or self._roster is None:
                self._listed_by = made, settings.bootstrap_servers
                self._roster = _sides(made, settings, self._no_internal)
                asker = BrokerProbe(made, max(CREDIT_SECONDS, 2 * settings.period_seconds))
            running.configure(asker, settings)
            return True

        def refresh() -> None:
            while not stop.is_set():
                roster = self._roster
                if roster is not None and self._wanted:
                    running.refresh(roster, prober.brokers())
                stop.wait(ROSTER_SECONDS if roster is not None else 0.2)

        threading.Thread(target=refresh, name="roster", daemon=True).start()
        try:
            prober.run(running, follow, stop)
        finally:
            running.stop()


def _sides(made: Connection, settings: Reachability, no_internal: bool) -> TwoSides:
    outside = settings.bootstrap_servers or (made.bootstrap if no_internal else ())
    external = BrokerDirectory(Connection(tuple(outside), made.security, made.client_id)).brokers if outside else None
    return TwoSides(None if no_internal else BrokerDirectory(made).brokers, external)


def _once_reachability(made: Connection, settings: Reachability, no_internal: bool) -> int:
    return measurement_table.reachability(_sides(made, settings, no_internal), BrokerProbe(made), settings)
