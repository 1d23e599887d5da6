"""``bellwether probe self``: check next to a broker whether external clients are connected to its listener."""

from __future__ import annotations

import sys
from typing import Any

import click
import structlog

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import connect
from bellwether.cli.probe import measurement_table
from bellwether.cli.probe.prober import Prober
from bellwether.cli.probe.prober_process import (
    need,
    read_policy,
    reported,
    run_sidecar_prober,
    serve_metrics,
    stop_on_signals,
)
from bellwether.core.settings.detection import SelfReachability
from bellwether.core.signals import SignalType
from bellwether.probes.connections.self_reachability import SelfReachabilityProbe
from bellwether.probes.connections.sock_diag import Ignored
from bellwether.probes.connections.socket_table import SocketTable, open_table
from bellwether.telemetry.logs import configure


def selfcheck(
    policy: str | None,
    namespace: str,
    broker: int | None,
    port: int | None,
    ignored: tuple[str, ...],
    source: str | None,
    once: bool,
    metrics_port: int | None,
    log_format: Any,
    log_level: str,
) -> None:
    """Check once per second whether external clients are connected to the port of the external listener."""
    configure(log_format, "warning" if once and log_level == "info" else log_level)
    try:
        networks = Ignored(ignored)
    except ValueError as error:
        advice = "use a network such as 10.0.0.0/8 or 2001:db8::/32"
        raise click.BadParameter(f"{error}; {advice}", param_hint="'--ignore'") from error
    need(port, "--port", "the port that the broker's external listener is bound to")
    with reported():
        if once:
            settings = SelfReachability()
            if policy:
                settings = read_policy(connect(), namespace, policy).policy().detection.self_reachability
            sys.exit(
                measurement_table.self_reachability(
                    _open(int(port or 0), networks), int(port or 0), settings, SystemClock()
                )
            )
        need(policy, "--policy", "the LeadershipPolicy to read settings from")
        need(broker is not None, "--broker", "the id of the broker in this pod")
        number, name = int(broker or 0), source or f"broker-{broker}"
        metrics = serve_metrics(metrics_port, namespace, str(policy), SignalType.SELF_REACHABILITY, name)
        stop, clock = stop_on_signals(), SystemClock()
        prober = Prober(connect(), namespace, str(policy), SignalType.SELF_REACHABILITY, name, clock, metrics)
        table = _open(int(port or 0), networks)
        running = SelfReachabilityProbe(
            number, name, int(port or 0), table, SelfReachability(), prober.post, clock, metrics
        )
        run_sidecar_prober(prober, running, lambda detection: detection.self_reachability, stop)


def _open(port: int, ignored: Ignored) -> SocketTable:
    table, refusal = open_table(port, ignored)
    if refusal:
        structlog.get_logger(__name__).warning(
            "sock_diag_refused",
            effect="only new connections are visible: a broker without clients is not detected",
            remedy="allow AF_NETLINK sockets in the pod's seccomp profile",
            error=refusal,
            using=table.kind,
        )
    return table
