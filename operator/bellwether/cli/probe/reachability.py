"""``bellwether probe reachability``: probe every broker's external listener, with the internal one as control."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from bellwether.cli.probe.prober_options import ProberRun, prober_command
from bellwether.core.settings.detection import Reachability
from bellwether.core.signals import SignalType
from bellwether.destinations import NOT_LOCAL
from bellwether.kafka_connection import Connection, Security

if TYPE_CHECKING:
    from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.probes.reachability.reachability_probe import TwoSides
    from bellwether.probes.runtime.prober_process import PolicyProber

ROSTER_SECONDS = 10.0
CREDIT_SECONDS = 5.0


@prober_command(
    click.option("--vantage", metavar="NAME", help="Stable name of this vantage, such as eu-west-1a."),
    click.option(
        "--no-internal",
        is_flag=True,
        help="This vantage cannot reach the internal listener: probe no control, and discover the brokers externally.",
    ),
    click.option("--listener", help="With --bootstrap: name of the external listener.  [default: EXTERNAL]"),
    kafka=True,
)
def reachability(run: ProberRun, vantage: str | None, no_internal: bool, listener: str | None) -> None:
    """Probe every broker at its external address.

    The internal address is probed as the control. A probe passes only if that broker answers a Kafka request: an open
    port is not enough, and neither is another broker behind the load balancer.
    """
    if listener and not run.kafka:
        raise click.UsageError("--listener requires --bootstrap: with --policy the listener is the policy's.")
    run.need_policy()
    if run.kafka:
        settings = Reachability(listeners=(listener,)) if listener else Reachability()
        sys.exit(_once_reachability(run.kafka, settings, no_internal, run.output))
    if run.once:
        found, secrets = run.read_policy()
        made, settings = _connection(found, secrets)
        sys.exit(_once_reachability(made, settings, no_internal, run.output))
    process = run.process(SignalType.EXTERNAL_REACHABILITY, "--vantage", vantage)
    process.run(lambda policy: _run(policy, no_internal))


def _connection(found: LeadershipPolicy, secrets: SecretReader) -> tuple[Connection, Reachability]:
    """Connection and settings from the policy."""
    from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import sides

    settings = found.policy().detection.external_reachability
    both = sides(found.spec.kafka, secrets, settings.listeners, settings.bootstrap_servers)
    return both.connection, replace(settings, listeners=both.listeners, bootstrap_servers=both.outside)


def _run(policy: PolicyProber, no_internal: bool) -> None:
    """Probe under the policy's settings until it has to end."""
    from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
    from bellwether.probes.reachability.reachability_probe import ReachabilityProbe

    prober = policy.prober
    # Replaced before the first request, and when the credentials change.
    asker = BrokerProbe(Connection(("unknown.invalid:9092",), Security(destinations=NOT_LOCAL)))
    running = ReachabilityProbe(
        prober.source, asker, Reachability(), prober.post, prober.forget, policy.clock, policy.metrics
    )
    listed_by: tuple[Connection, tuple[str, ...]] | None = None
    roster: TwoSides | None = None
    wanted = False

    def follow(found: LeadershipPolicy | None) -> bool:
        nonlocal asker, listed_by, roster, wanted
        wanted = found is not None and found.policy().detection.external_reachability.enabled
        if found is None or not wanted:
            running.stop()
            return False
        made, settings = _connection(found, policy.secrets)
        if (made, settings.bootstrap_servers) != listed_by or roster is None:
            listed_by = made, settings.bootstrap_servers
            roster = _sides(made, settings, no_internal)
            asker = BrokerProbe(made, max(CREDIT_SECONDS, 2 * settings.period_seconds))
        running.configure(asker, settings)
        return True

    def refresh() -> float:
        if roster is not None and wanted:
            running.refresh(roster, prober.brokers())
        return ROSTER_SECONDS if roster is not None else 0.2

    policy.run(running, follow, refresh)


def _sides(made: Connection, settings: Reachability, no_internal: bool) -> TwoSides:
    from bellwether.adapters.kafka.brokers.broker_directory import BrokerDirectory
    from bellwether.probes.reachability.reachability_probe import TwoSides

    outside = settings.bootstrap_servers or (made.bootstrap if no_internal else ())
    external = BrokerDirectory(Connection(tuple(outside), made.security, made.client_id)).brokers if outside else None
    return TwoSides(None if no_internal else BrokerDirectory(made).brokers, external)


def _once_reachability(made: Connection, settings: Reachability, no_internal: bool, output: str) -> int:
    from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
    from bellwether.cli.probe import measurement_table

    return measurement_table.reachability(_sides(made, settings, no_internal), BrokerProbe(made), settings, output)
