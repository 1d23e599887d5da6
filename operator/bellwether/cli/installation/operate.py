"""``bellwether operator``: run the operator: watch and reconcile LeadershipPolicies."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import kopf
import structlog

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.connection.broker_pool import Limits
from bellwether.adapters.kubernetes.api_client import POLICIES, connect
from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
from bellwether.api.config.load_config import LoadConfig
from bellwether.cli.installation import preflight
from bellwether.controllers.cluster_connection import Connector, LeaseTimes
from bellwether.controllers.crd_watch import Watches
from bellwether.controllers.deletion.baseline_export import BaselineExports
from bellwether.controllers.deletion.finalizer import PolicyFinalizer
from bellwether.controllers.lease_watch import LeaseWatch
from bellwether.controllers.policy_controller import PolicyController
from bellwether.controllers.policy_manager import PolicyManager, register
from bellwether.controllers.policy_quota import PolicyQuota
from bellwether.controllers.readiness import Readiness
from bellwether.controllers.rebalance_backend import rebalance_backend
from bellwether.controllers.rebalance_controller import RebalanceController
from bellwether.controllers.reporting.status_reporter import StatusReporter
from bellwether.controllers.requeue import Requeue
from bellwether.controllers.waiting_policies import WaitingPolicies
from bellwether.core.reasons import Reason
from bellwether.core.rebalance.lifecycle import RebalanceRun
from bellwether.gc_tuning import collect_seldom
from bellwether.jitter import jittered
from bellwether.ports.errors import BellwetherError
from bellwether.telemetry import logs
from bellwether.telemetry.health_server import Health, HealthServer
from bellwether.telemetry.heartbeat import Heartbeat
from bellwether.telemetry.metrics.operator_metrics import OperatorMetrics

log = structlog.get_logger(__name__)


def operator(
    namespaces: tuple[str, ...],
    lease_namespace: str,
    labelled_secrets: bool,
    lease_duration: int,
    lease_renew: float,
    metrics_port: int,
    health_port: int,
    stuck_after: float,
    max_policies: int,
    load_config: Path | None,
    metadata_mebibytes: int,
    log_format: logs.Format,
    log_level: str,
) -> None:
    """Run the operator."""
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
    collect_seldom()
    logs.configure(log_format, log_level)
    # kopf logs every watched event; the controllers log the relevant ones.
    logging.getLogger("kopf").setLevel(logging.WARNING)
    clock, metrics, health = SystemClock(), OperatorMetrics(), Health()
    try:
        config = LoadConfig.read(load_config)
        api = connect().observed(metrics.exchanges.kubernetes)
    except BellwetherError as error:
        raise click.ClickException(str(error)) from None
    if metrics_port:
        try:
            HealthServer(health, metrics_port, metrics.registry)
        except OSError as error:
            raise click.ClickException(f"--metrics-port {metrics_port}: {error.strerror}; choose another") from None
    reporter = StatusReporter(api, clock, f"{lease_namespace}/{socket.gethostname()}", metrics)
    finalizer = PolicyFinalizer(api, BaselineExports(api, refuge=lease_namespace), lease_namespace)
    times = LeaseTimes(lease_duration, lease_renew)

    def connector(signals: SignalCache) -> Connector:
        watched = metrics.exchanges.kafka, metrics.exchanges.certificate
        return Connector(
            api, clock, signals, times, lease_namespace, *watched, labelled_secrets=labelled_secrets, limits=limits
        )

    def rebalance_controller(run: RebalanceRun, wake: Callable[[], None]) -> RebalanceController:
        made = RebalanceController(run, config.settings, partial(rebalance_backend, api, clock, config), clock, wake)
        made.start()
        return made

    def make(body: dict[str, Any]) -> PolicyController:
        metrics.known(body["metadata"]["namespace"], body["metadata"]["name"])
        return PolicyController(
            body, connector, reporter, finalizer, clock, Requeue(spread=jittered), rebalance_controller
        )

    def read(key: tuple[str, str]) -> dict[str, Any] | None:
        return api.find(POLICIES, *key)

    def refuse(body: dict[str, Any], why: str) -> None:
        reporter.trouble(body, Reason.TOO_MANY_POLICIES, why)

    registry = kopf.OperatorRegistry()
    waiting = WaitingPolicies(lambda key: loops.settle(key, read, refuse))
    loops = PolicyManager(make, reporter.forget, PolicyQuota(max_policies), waiting.add)
    pulse = Heartbeat("the event loop of the watches", clock.monotonic, begun=False)
    register(registry, loops, pulse=pulse)
    watches = Watches(api, registry, namespaces, lambda: loops.request_stop(timeout_seconds=20), clock.sleep)
    readiness = Readiness(api, namespaces, loops.known, clock, watches.begin_anew)
    leases = [LeaseWatch(api, namespace, loops.lease, clock) for namespace in namespaces or (None,)]
    health.watch(lambda: [text for text in (pulse.unhealthy_reason(stuck_after),) if text])
    health.watch(lambda: loops.problems(stuck_after))
    health.watch(lambda: [text for watch in leases for text in watch.problems(stuck_after)])
    health.watch(waiting.problems)
    health.watch(readiness.stuck)
    health.require(readiness.problems)
    health.require(reporter.problems)
    if health_port:
        try:
            HealthServer(health, health_port)
        except OSError as error:
            raise click.ClickException(f"--health-port {health_port}: {error.strerror}; choose another") from None
    for thread in (waiting, readiness, *leases):
        thread.start()
    preflight.log_missing_permissions(api, namespaces, lease_namespace)
    named = {"stores": sorted(config.stores), "profiles": sorted(config.profiles)}
    log.info("operator_started", namespaces=list(namespaces) or "all", pid=os.getpid(), **named)
    watches.run()
