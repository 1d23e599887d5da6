"""``bellwether probe plugin``: measure every broker with a signal type from another package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.cli.probe.prober_options import ProberRun, need, prober_command
from bellwether.core.settings.source_settings import Plugin
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal
from bellwether.probes.plugins import plugin_discovery
from bellwether.probes.plugins.plugin_api import Measurement, Measurer

if TYPE_CHECKING:
    from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.api.v1alpha1.signal_source import UsedSource
    from bellwether.probes.plugins.broker_listeners import Listeners
    from bellwether.probes.runtime.prober_process import PolicyProber

ROSTER_SECONDS = 10.0
Chosen = tuple[Connection, Plugin]


@prober_command(
    click.option("--type", "type_", metavar="TYPE", help="Signal type of the plugin, as in its SignalSource."),
    click.option("--source", metavar="NAME", help="Stable name of this location, such as eu-west-1a."),
    click.option("--list", "list_", is_flag=True, help="List the installed plugins and exit."),
    click.option(
        "--setting",
        "settings",
        metavar="NAME=VALUE",
        multiple=True,
        help="With --bootstrap: plugin setting; repeatable.",
    ),
    kafka=True,
)
def plugin(
    run: ProberRun,
    type_: str | None,
    source: str | None,
    list_: bool,
    settings: tuple[str, ...],
) -> None:
    """Measure brokers with a plugin and report signals.

    A plugin is a signal type of another package, which is installed next to Bellwether and registers an entry point of
    the group bellwether.signals. Its settings come from the SignalSource that the policy names.
    """
    from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection
    from bellwether.adapters.kubernetes.objects.signal_sources import with_sources
    from bellwether.cli.probe import measurement_table

    if list_:
        sys.exit(measurement_table.plugins(plugin_discovery.found(), run.output))
    if settings and not run.kafka:
        raise click.UsageError(
            "--setting requires --bootstrap: with --policy the settings are those of its SignalSource."
        )
    need(type_, "--type", "the signal type to measure (--list shows the installed ones)")
    run.need_policy()
    measurer = plugin_discovery.load(str(type_))

    def chosen(found: LeadershipPolicy, secrets: SecretReader) -> tuple[UsedSource, Chosen] | None:
        used = next((one for one in found.sources.used if any(p.type == type_ for p in one.plugins)), None)
        return None if used is None else (used, (connection(found.spec.kafka, secrets), used.plugins[0]))

    def measure(prober: PolicyProber) -> None:
        def wanted(found: LeadershipPolicy) -> Chosen | None:
            one = chosen(prober.prober.with_sources(found), prober.secrets)
            if one is None:
                return None
            prober.prober.report_source(one[0].source, "")
            return one[1]

        run_measurer(prober, measurer, wanted)

    if run.kafka:
        given = Plugin(type=str(type_), settings=_pairs(settings))
        sys.exit(measure_once(measurer, (run.kafka, given), run.output))
    if run.once:
        found, secrets = run.read_policy()
        found = with_sources(secrets.api, found)
        one = chosen(found, secrets)
        if one is None:
            why = str(found.sources) or "add one to spec.detection.signalSources"
            raise Terminal(
                f"policy {secrets.namespace}/{run.policy} has no SignalSource with a plugin of type {type_}: {why}"
            )
        sys.exit(measure_once(measurer, one[1], run.output))
    run.process(str(type_), "--source", source).run(measure)


def run_measurer(policy: PolicyProber, measurer: Measurer, chosen: Callable[[LeadershipPolicy], Chosen | None]) -> None:
    """Measure with a measurer until it has to end, as is ``chosen`` from the policy; None: not now."""
    from bellwether.adapters.kafka.brokers.broker_directory import BrokerDirectory
    from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
    from bellwether.probes.plugins.broker_listeners import Listeners
    from bellwether.probes.plugins.measurer_probe import MeasurerProbe
    from bellwether.telemetry.metrics.probe_metrics import PluginMetrics

    prober, clock, metrics = policy.prober, policy.clock, PluginMetrics(policy.metrics)
    guarded = _Guarded(measurer, policy.secrets)
    running = MeasurerProbe(
        guarded, prober.source, Plugin(type=measurer.type), prober.post, prober.forget, clock, metrics
    )
    used: tuple[Connection, Listeners] | None = None
    wanted = False

    def follow(found: LeadershipPolicy | None) -> bool:
        nonlocal used, wanted
        now = None if found is None else chosen(found)
        wanted = now is not None
        if now is None:
            running.rest()
            return False
        made, settings = now
        if used is None or made != used[0]:
            used = made, Listeners(BrokerDirectory(made).brokers, BrokerProbe(made), clock)
        running.configure(settings)
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


class _Guarded:
    """A measurer that connects only where the policy may, whatever the brokers advertise."""

    def __init__(self, measurer: Measurer, secrets: SecretReader) -> None:
        self.type, self._measurer, self._secrets = measurer.type, measurer, secrets

    def measure(
        self, broker: int, addresses: Mapping[str, str], settings: Mapping[str, str], timeout_seconds: float
    ) -> Measurement:
        """As the measurer; without evidence where a connection was refused. Raises what the measurer raises."""
        hosts = (one.rpartition(":")[0].strip("[]") for one in addresses.values())
        with self._secrets.destinations.guard(*hosts) as refused:
            found = self._measurer.measure(broker, addresses, settings, timeout_seconds)
        return Measurement(None, str(refused[-1].strerror)) if refused else found


def measure_once(measurer: Measurer, chosen: Chosen, output: str) -> int:
    """Measure every broker once, and print a table; returns the exit status."""
    from bellwether.adapters.kafka.brokers.broker_directory import BrokerDirectory
    from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
    from bellwether.cli.probe import measurement_table
    from bellwether.probes.plugins.broker_listeners import Listeners

    clock, (made, settings) = SystemClock(), chosen
    brokers = BrokerDirectory(made).brokers
    brokers()  # raises connection errors, which Listeners.refresh would ignore
    return measurement_table.plugin(
        measurer, Listeners(brokers, BrokerProbe(made), clock).refresh(), settings, clock, output
    )


def _pairs(settings: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = [setting.partition("=") for setting in settings]
    if bad := [name for name, sign, _ in pairs if not sign or not name]:
        raise click.UsageError(f"--setting {bad[0]!r} is not NAME=VALUE: use a value such as region=eu-west-1")
    return tuple(sorted((name, value) for name, _, value in pairs))
