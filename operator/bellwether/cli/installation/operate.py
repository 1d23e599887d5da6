"""``bellwether operator``: run the operator: watch and reconcile LeadershipPolicies."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import KubernetesClient, connect
from bellwether.adapters.kubernetes.permissions import operator_lacks
from bellwether.cli.process_options import (
    DESTINATIONS,
    LOG_FORMAT,
    LOG_LEVEL,
    METADATA_LIMIT,
    labelled_secrets_option,
    namespaces_option,
)
from bellwether.core.reporting.requeue import Requeue
from bellwether.ports.clock import jittered
from bellwether.ports.errors import BellwetherError
from bellwether.ports.rebalance import load_side
from bellwether.telemetry.heartbeat import STUCK_SECONDS, Heartbeat

if TYPE_CHECKING:
    from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
    from bellwether.controllers.cluster_connection import Connector
    from bellwether.controllers.policy_controller import PolicyController
    from bellwether.destinations import Destinations
    from bellwether.telemetry import logs
    from bellwether.telemetry.metrics.metric_registry import LabelledRegistry

# A read of metadata may take longer, depending on --metadata-limit: the command checks that.
SHORTEST_BOUND_SECONDS = 10.0


@click.command()
@namespaces_option("Watch only this namespace")
@click.option(
    "--lease-namespace",
    envvar="POD_NAMESPACE",
    default="default",
    show_default=True,
    help="Namespace of the Leases of Kafka clusters; the same for all replicas of an installation.",
)
@labelled_secrets_option("an operator")
@DESTINATIONS
@click.option("--lease-duration", default=10, show_default=True, help="Duration of a Lease, in seconds.")
@click.option("--lease-renew", default=2.0, show_default=True, help="Renewal interval of a Lease, in seconds.")
@click.option("--metrics-port", default=9464, show_default=True, help="Port of /metrics; 0: off.")
@click.option("--health-port", default=8080, show_default=True, help="Port of /healthz and /readyz; 0: off.")
@click.option(
    "--stuck-after",
    type=click.FloatRange(SHORTEST_BOUND_SECONDS),
    default=STUCK_SECONDS,
    show_default=True,
    help="Give up a policy's reconcile, or report a shared thread by 503 at /healthz, after this many seconds without"
    " progress.",
)
@click.option(
    "--load-config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML file with the stores and job profiles of load rebalancing.  [default: none, no policy rebalances]",
)
@METADATA_LIMIT
@LOG_FORMAT
@LOG_LEVEL
def operator(
    namespaces: tuple[str, ...],
    lease_namespace: str,
    labelled_secrets: bool,
    destinations: Destinations,
    lease_duration: int,
    lease_renew: float,
    metrics_port: int,
    health_port: int,
    stuck_after: float,
    load_config: Path | None,
    metadata_mebibytes: int,
    log_format: logs.Format,
    log_level: str,
) -> None:
    """Run the operator: reconcile LeadershipPolicies.

    Moves leaders away from sick brokers and restores them after recovery. Connects to the Kubernetes API with
    KUBECONFIG or the pod's ServiceAccount. Several replicas may run: for each Kafka cluster one of them holds the Lease
    and acts, the others are on standby.
    """
    import kopf
    import structlog

    from bellwether.adapters.kafka.connection.broker_pool import Limits
    from bellwether.adapters.kubernetes.former_senders import this_process
    from bellwether.controllers.cluster_connection import Connector, LeaseTimes
    from bellwether.controllers.lease_watch import LeaseWatch
    from bellwether.controllers.policy_controller import PolicyController
    from bellwether.controllers.policy_finalizer import BaselineExports, PolicyFinalizer
    from bellwether.controllers.policy_manager import PolicyManager, register
    from bellwether.controllers.readiness import Readiness, await_definitions
    from bellwether.controllers.reporting.status_reporter import StatusReporter
    from bellwether.telemetry import logs
    from bellwether.telemetry.health_server import Health, HealthServer
    from bellwether.telemetry.metrics.operator_metrics import OperatorMetrics

    limits = Limits(metadata_bytes=metadata_mebibytes << 20)
    if lease_renew * 3 > lease_duration:
        raise click.UsageError(
            f"--lease-duration ({lease_duration} s) must be at least three times --lease-renew ({lease_renew:g} s), so "
            "that one renewal may fail"
        )
    if lease_duration - lease_renew <= limits.mutation_seconds:
        raise click.UsageError(
            f"--lease-duration ({lease_duration} s) must exceed --lease-renew ({lease_renew:g} s) by more than "
            f"{limits.mutation_seconds:g} s, the time limit of a request to Kafka: the Lease must not expire before "
            "the answer"
        )
    if stuck_after <= limits.longest_read_seconds:
        raise click.UsageError(
            f"--stuck-after ({stuck_after:g} s) must exceed {limits.longest_read_seconds:.0f} s, the longest that a "
            f"read of {metadata_mebibytes} MiB (--metadata-limit) takes"
        )
    logs.configure(log_format, log_level)
    # kopf logs every watched event; the controllers log the relevant ones.
    logging.getLogger("kopf").setLevel(logging.WARNING)
    clock, metrics, health = SystemClock(), OperatorMetrics(), Health()
    sender = this_process(os.environ, clock.now())
    load = load_side(load_config)
    api = connect().observed(metrics.exchanges.kubernetes)

    def serve(option: str, port: int, registry: LabelledRegistry | None = None) -> None:
        try:
            HealthServer(health, port, registry)
        except OSError as error:
            raise click.ClickException(f"{option} {port}: {error.strerror}; choose another") from None

    if metrics_port:
        serve("--metrics-port", metrics_port, metrics.registry)
    reporter = StatusReporter(api, clock, f"{lease_namespace}/{socket.gethostname()}", metrics)
    finalizer = PolicyFinalizer(api, BaselineExports(api, refuge=lease_namespace), lease_namespace)
    times = LeaseTimes(lease_duration, lease_renew)

    def connector(signals: SignalCache) -> Connector:
        watched = metrics.exchanges.kafka, metrics.exchanges.certificate
        rules: dict[str, Any] = {"labelled_secrets": labelled_secrets, "destinations": destinations}
        return Connector(api, clock, signals, times, lease_namespace, *watched, **rules, limits=limits, sender=sender)

    rebalancers = load.rebalancers(api, clock)

    def make(body: dict[str, Any]) -> PolicyController:
        metrics.leading(body["metadata"]["namespace"], body["metadata"]["name"], False)
        return PolicyController(body, connector, reporter, finalizer, clock, Requeue(jitter=jittered), rebalancers)

    registry = kopf.OperatorRegistry()
    loops = PolicyManager(make, reporter.forget, reporter.without_policy)
    reporter.rebalances_of = loops.rebalances
    pulse = Heartbeat("the event loop of the watches", clock.monotonic, begun=False)
    register(registry, loops, pulse=pulse)
    readiness = Readiness(api, namespaces, loops.known, clock, lambda: loops.give_up_stuck(stuck_after))
    leases = [LeaseWatch(api, namespace, loops.lease, clock) for namespace in namespaces or (None,)]
    health.watch(lambda: [text for text in (pulse.unhealthy_reason(stuck_after),) if text])
    health.watch(lambda: loops.problems(stuck_after))
    health.watch(lambda: [text for watch in leases for text in watch.problems(stuck_after)])
    health.watch(readiness.stuck)
    health.require(readiness.problems)
    health.require(reporter.problems)
    if health_port:
        serve("--health-port", health_port)
    for thread in (readiness, *leases):
        thread.start()
    log_missing_permissions(api, namespaces, lease_namespace)
    structlog.get_logger(__name__).info("operator_started", namespaces=list(namespaces) or "all", pid=os.getpid())
    await_definitions(api, clock.sleep)
    kopf.run(registry=registry, namespaces=namespaces, clusterwide=not namespaces, standalone=True)


def log_missing_permissions(api: KubernetesClient, namespaces: Sequence[str], lease_namespace: str) -> None:
    """Log each missing permission of this account. The operator continues: no restart is needed after one is granted.

    An unreachable API is handled by the watches.
    """
    import structlog

    log = structlog.get_logger(__name__)
    try:
        for missing in operator_lacks(api, namespaces, lease_namespace):
            log.error("permission_missing", permission=missing)
    except BellwetherError as error:
        log.warning("permissions_not_checked", error=str(error))
