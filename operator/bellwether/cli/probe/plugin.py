"""``bellwether probe plugin``: measure every broker with a signal type from another package."""

from __future__ import annotations

import sys
import threading
from typing import Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.brokers.broker_directory import BrokerDirectory
from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
from bellwether.adapters.kubernetes.api_client import KubernetesClient, connect
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.probe import measurement_table
from bellwether.cli.probe.prober import Prober
from bellwether.cli.probe.prober_process import need, read_policy, reported, serve_metrics, stop_on_signals
from bellwether.core.settings.detection import Plugin
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal
from bellwether.probes.plugins import plugin_discovery
from bellwether.probes.plugins.broker_listeners import Listeners
from bellwether.probes.plugins.plugin_api import Kind
from bellwether.probes.plugins.plugin_probe import PluginProbe
from bellwether.telemetry.logs import configure
from bellwether.telemetry.metrics.plugin_metrics import PluginMetrics
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics

ROSTER_SECONDS = 10.0


def plugin(
    policy: str | None,
    namespace: str,
    type_: str | None,
    source: str | None,
    list_: bool,
    once: bool,
    bootstrap: tuple[str, ...],
    settings: tuple[str, ...],
    metrics_port: int | None,
    log_format: Any,
    log_level: str,
) -> None:
    """Measure every broker with a plugin."""
    configure(log_format, "warning" if once and log_level == "info" else log_level)
    if list_:
        sys.exit(measurement_table.kinds(plugin_discovery.found()))
    if bootstrap and not once:
        raise click.UsageError("--bootstrap requires --once: signals can be reported to Kubernetes only.")
    if settings and not bootstrap:
        raise click.UsageError(
            "--setting requires --bootstrap: with --policy the settings are those in detection.plugins[].settings."
        )
    need(type_, "--type", "the signal type to measure (--list shows the installed ones)")
    need(policy or bootstrap, "--policy", "the LeadershipPolicy to read settings from (or --once with --bootstrap)")
    with reported():
        kind = plugin_discovery.load(str(type_))
        if bootstrap:
            wanted = Plugin(type=str(type_), settings=_pairs(settings))
            sys.exit(_once(kind, Connection(bootstrap), wanted))
        api = connect()
        if once:
            found = read_policy(api, namespace, str(policy))
            secrets = SecretReader(api, namespace)
            chosen = _chosen(found, str(type_))
            if chosen is None:
                raise Terminal(
                    f"policy {namespace}/{policy} has no plugin of type {type_}: add it to spec.detection.plugins"
                )
            sys.exit(_once(kind, connection(found.spec.kafka, secrets), chosen))
        need(source, "--source", "a stable name of this location, such as eu-west-1a")
        metrics = serve_metrics(metrics_port, namespace, str(policy), str(type_), str(source))
        _Plugged(api, namespace, str(policy), kind).run(str(source), metrics, stop_on_signals())


class _Plugged:
    """The prober, configured from its policy."""

    def __init__(self, api: KubernetesClient, namespace: str, policy: str, kind: Kind) -> None:
        self._api = api
        self._namespace = namespace
        self._policy = policy
        self._kind = kind
        self._secrets = SecretReader(api, namespace)
        self._connection: Connection | None = None
        self._listeners: Listeners | None = None
        self._wanted = False

    def run(self, source: str, metrics: ProbeMetrics, stop: threading.Event) -> None:
        """Measure until ``stop``."""
        clock, type_ = SystemClock(), self._kind.type
        prober = Prober(self._api, self._namespace, self._policy, type_, source, clock, metrics)
        running = PluginProbe(
            self._kind, source, Plugin(type=type_), prober.post, prober.forget, clock, PluginMetrics(metrics)
        )

        def follow(found: LeadershipPolicy | None) -> bool:
            chosen = None if found is None else _chosen(found, type_)
            self._wanted = chosen is not None
            if found is None or chosen is None:
                running.rest()
                return False
            made = connection(found.spec.kafka, self._secrets)
            if made != self._connection or self._listeners is None:
                self._connection = made
                self._listeners = Listeners(BrokerDirectory(made).brokers, BrokerProbe(made), clock)
            running.configure(chosen)
            return True

        def refresh() -> None:
            while not stop.is_set():
                listeners = self._listeners
                if listeners is not None and self._wanted:
                    known, there = listeners.refresh(), prober.brokers()
                    # Signals are stored in BrokerHealths: a broker that has one belongs to this policy, dead or alive.
                    if there is not None and self._wanted:
                        running.refresh({broker: known.get(broker, {}) for broker in there})
                stop.wait(ROSTER_SECONDS if listeners is not None else 0.2)

        running.start()
        threading.Thread(target=refresh, name="roster", daemon=True).start()
        try:
            prober.run(running, follow, stop)
        finally:
            running.stop()


def _chosen(found: LeadershipPolicy, type_: str) -> Plugin | None:
    """The policy's settings for the plugin; None if it has none."""
    return next((p for p in found.policy().detection.plugins if p.type == type_), None)


def _once(kind: Kind, made: Connection, settings: Plugin) -> int:
    clock = SystemClock()
    brokers = BrokerDirectory(made).brokers
    brokers()  # raises connection errors, which Listeners.refresh would ignore
    return measurement_table.plugin(kind, Listeners(brokers, BrokerProbe(made), clock).refresh(), settings, clock)


def _pairs(settings: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = [setting.partition("=") for setting in settings]
    if bad := [name for name, sign, _ in pairs if not sign or not name]:
        raise click.UsageError(f"--setting {bad[0]!r} is not NAME=VALUE: use a value such as region=eu-west-1")
    return tuple(sorted((name, value) for name, _, value in pairs))
