"""``bellwether probe plugin``: measure every broker with a signal type from another package."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.cli.kubernetes_target import Target, connect
from bellwether.cli.probe.prober_options import POLICY_NEEDED, bootstrap_option, need, prober_command, reported
from bellwether.core.settings.detection import Plugin
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal
from bellwether.probes.plugins import plugin_discovery
from bellwether.probes.plugins.plugin_api import Kind

if TYPE_CHECKING:
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.api.v1alpha1.signal_source import UsedSource
    from bellwether.probes.plugins.broker_listeners import Listeners
    from bellwether.probes.runtime.prober_process import PolicyProber, Ports
    from bellwether.probes.runtime.watched_policies import Selection

ROSTER_SECONDS = 10.0


@prober_command(
    click.option("--type", "type_", metavar="TYPE", help="Signal type of the plugin, as in its SignalSource."),
    click.option("--source", metavar="NAME", help="Stable name of this location, such as eu-west-1a."),
    click.option("--list", "list_", is_flag=True, help="List the installed plugins and exit."),
    bootstrap_option("measure"),
    click.option(
        "--setting",
        "settings",
        metavar="NAME=VALUE",
        multiple=True,
        help="With --bootstrap: plugin setting; repeatable.",
    ),
)
def plugin(
    policy: str | None,
    target: Target,
    type_: str | None,
    source: str | None,
    list_: bool,
    once: bool,
    output: str,
    bootstrap: tuple[str, ...],
    settings: tuple[str, ...],
    ports: Ports,
    selection: Selection,
) -> None:
    """Measure brokers with a plugin and report signals.

    A plugin is a signal type of another package, which is installed next to Bellwether and registers an entry point of
    the group bellwether.signals. Its settings come from the SignalSource that the policy names.
    """
    from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection
    from bellwether.adapters.kubernetes.objects.signal_sources import with_sources
    from bellwether.cli.probe import measurement_table
    from bellwether.probes.runtime.prober import read_policy
    from bellwether.probes.runtime.prober_process import ProberProcess

    if list_:
        sys.exit(measurement_table.kinds(plugin_discovery.found(), output))
    if bootstrap and not once:
        raise click.UsageError("--bootstrap requires --once: signals can be reported to Kubernetes only.")
    if settings and not bootstrap:
        raise click.UsageError(
            "--setting requires --bootstrap: with --policy the settings are those of its SignalSource."
        )
    need(type_, "--type", "the signal type to measure (--list shows the installed ones)")
    need(policy or bootstrap or not once, "--policy", f"{POLICY_NEEDED} (or --bootstrap)")
    with reported():
        kind = plugin_discovery.load(str(type_))
        if bootstrap:
            wanted = Plugin(type=str(type_), settings=_pairs(settings))
            sys.exit(_once(kind, Connection(bootstrap), wanted, output))
        if once:
            api, namespace = connect(target)
            found = with_sources(api, read_policy(api, namespace, str(policy)))
            chosen = _chosen(found, str(type_))
            if chosen is None:
                why = str(found.sources) or "add one to spec.detection.signalSources"
                raise Terminal(f"policy {namespace}/{policy} has no SignalSource with a plugin of type {type_}: {why}")
            secrets = SecretReader(api, namespace)  # its files last as long as it does
            sys.exit(_once(kind, connection(found.spec.kafka, secrets), chosen.plugins[0], output))
        need(source, "--source", "a stable name of this location, such as eu-west-1a")
        process = ProberProcess.begin(connect(target), selection, str(type_), str(source), ports)
        process.run(lambda policy: _run(policy, kind))


def _run(policy: PolicyProber, kind: Kind) -> None:
    """Measure under the policy's settings until it has to end."""
    from bellwether.adapters.kafka.brokers.broker_directory import BrokerDirectory
    from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
    from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection
    from bellwether.probes.plugins.broker_listeners import Listeners
    from bellwether.probes.plugins.plugin_probe import PluginProbe
    from bellwether.telemetry.metrics.probe_metrics import PluginMetrics

    prober, clock, metrics = policy.prober, policy.clock, PluginMetrics(policy.metrics)
    running = PluginProbe(kind, prober.source, Plugin(type=kind.type), prober.post, prober.forget, clock, metrics)
    used: tuple[Connection, Listeners] | None = None
    wanted = False

    def follow(found: LeadershipPolicy | None) -> bool:
        nonlocal used, wanted
        chosen = None if found is None else _chosen(prober.with_sources(found), kind.type)
        wanted = chosen is not None
        if found is None or chosen is None:
            running.rest()
            return False
        made = connection(found.spec.kafka, policy.secrets)
        if used is None or made != used[0]:
            used = made, Listeners(BrokerDirectory(made).brokers, BrokerProbe(made), clock)
        running.configure(chosen.plugins[0])
        prober.report_source(chosen.source, "")
        return True

    def refresh() -> float:
        if used is not None and wanted:
            known, there = used[1].refresh(), prober.brokers()
            # Signals are stored in BrokerHealths: a broker that has one belongs to this policy, dead or alive.
            if there is not None and wanted:
                running.refresh({broker: known.get(broker, {}) for broker in there})
        return ROSTER_SECONDS if used is not None else 0.2

    running.start()
    policy.run(running, follow, refresh)


def _chosen(found: LeadershipPolicy, type_: str) -> UsedSource | None:
    """The policy's source of the plugin; None if it has none."""
    return next((one for one in found.sources.used if any(p.type == type_ for p in one.plugins)), None)


def _once(kind: Kind, made: Connection, settings: Plugin, output: str) -> int:
    from bellwether.adapters.kafka.brokers.broker_directory import BrokerDirectory
    from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
    from bellwether.cli.probe import measurement_table
    from bellwether.probes.plugins.broker_listeners import Listeners

    clock = SystemClock()
    brokers = BrokerDirectory(made).brokers
    brokers()  # raises connection errors, which Listeners.refresh would ignore
    return measurement_table.plugin(
        kind, Listeners(brokers, BrokerProbe(made), clock).refresh(), settings, clock, output
    )


def _pairs(settings: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = [setting.partition("=") for setting in settings]
    if bad := [name for name, sign, _ in pairs if not sign or not name]:
        raise click.UsageError(f"--setting {bad[0]!r} is not NAME=VALUE: use a value such as region=eu-west-1")
    return tuple(sorted((name, value) for name, _, value in pairs))
