"""``bellwether probe self``: check next to a broker whether external clients are connected to its listener."""

from __future__ import annotations

import sys

import click
import structlog

from bellwether.adapters.clocks import SystemClock
from bellwether.cli.commands.kubernetes_options import Target
from bellwether.cli.kubernetes_target import connect
from bellwether.cli.probe import measurement_table
from bellwether.cli.probe.prober import read_policy
from bellwether.cli.probe.prober_process import POLICY_NEEDED, PolicyProber, need, reported
from bellwether.core.settings.detection import SelfReachability
from bellwether.core.signals import SignalType
from bellwether.probes.connections.self_reachability import SelfReachabilityProbe
from bellwether.probes.connections.sock_diag import Ignored
from bellwether.probes.connections.socket_table import SocketTable, open_table


def selfcheck(
    policy: str | None,
    target: Target,
    broker: int | None,
    port: int | None,
    ignored: tuple[str, ...],
    source: str | None,
    once: bool,
    output: str,
    metrics_port: int | None,
) -> None:
    """Check once per second whether external clients are connected to the port of the external listener."""
    try:
        networks = Ignored(ignored)
    except ValueError as error:
        advice = "use a network such as 10.0.0.0/8 or 2001:db8::/32"
        raise click.BadParameter(f"{error}; {advice}", param_hint="'--ignore'") from error
    need(port, "--port", "the port that the broker's external listener is bound to")
    at = int(port or 0)
    with reported():
        if once:
            settings = SelfReachability()
            if policy:
                settings = read_policy(*connect(target), policy).policy().detection.self_reachability
            sys.exit(measurement_table.self_reachability(_open(at, networks), at, settings, SystemClock(), output))
        need(policy, "--policy", POLICY_NEEDED)
        need(broker is not None, "--broker", "the id of the broker in this pod")
        name, kind = source or f"broker-{broker}", SignalType.SELF_REACHABILITY
        process = PolicyProber.begin(target, str(policy), kind, name, metrics_port)
        table, settings, post = _open(at, networks), SelfReachability(), process.prober.post
        running = SelfReachabilityProbe(
            int(broker or 0), name, at, table, settings, post, process.clock, process.metrics
        )
        process.run_sidecar(
            running, lambda detection: (detection.self_reachability, detection.self_reachability.enabled)
        )


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
