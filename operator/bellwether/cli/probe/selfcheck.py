"""``bellwether probe self``: check next to a broker whether external clients are connected to its listener."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.files.meta_properties import read_broker
from bellwether.cli.probe.prober_options import (
    POLICY_NEEDED,
    PORT,
    SIDECAR_SOURCE,
    LogDirectory,
    ProberRun,
    directories_option,
    need,
    prober_command,
)
from bellwether.core.settings.detection import SelfReachability
from bellwether.core.signals import SignalType
from bellwether.probes.connections.sock_diag import Ignored
from bellwether.probes.connections.socket_table import SocketTable, open_table

if TYPE_CHECKING:
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy

LOOK_SECONDS = 1.0


@prober_command(
    directories_option(
        "Log directory of the broker, whose meta.properties names it; repeatable. Only that file is read."
    ),
    click.option(
        "--port",
        type=PORT,
        help="Port that the broker's external listener is bound to inside the pod (not the load balancer's port).",
    ),
    click.option(
        "--ignore",
        "ignored",
        metavar="CIDR",
        multiple=True,
        help="Ignore connections from this network, such as those of health checks; repeatable.",
    ),
    SIDECAR_SOURCE,
    name="self",
    sidecar=True,
)
def selfcheck(
    run: ProberRun, directories: Sequence[LogDirectory], port: int | None, ignored: tuple[str, ...], source: str | None
) -> None:
    """Check for external clients connected to a broker.

    Reads the kernel's socket table once per second, which a sidecar shares with the broker of its pod. Needs no
    privileges and sends nothing to the broker.
    """
    from bellwether.cli.probe import measurement_table
    from bellwether.probes.connections.self_reachability import SelfReachabilityProbe

    try:
        networks = Ignored(ignored)
    except ValueError as error:
        advice = "use a network such as 10.0.0.0/8 or 2001:db8::/32"
        raise click.BadParameter(f"{error}; {advice}", param_hint="'--ignore'") from error
    need(port, "--port", "the port that the broker's external listener is bound to")
    at = int(port or 0)
    if run.once:
        settings = run.detection().self_reachability
        sys.exit(measurement_table.self_reachability(_open(at, networks), at, settings, SystemClock(), run.output))
    need(run.policy, "--policy", POLICY_NEEDED)
    need(directories, "--directory", "a log directory of the broker in this pod, which names the broker")
    paths = [one.path.absolute() for one in directories]
    process = run.sidecar(SignalType.SELF_REACHABILITY)
    identity = process.identify(lambda: read_broker(paths))
    if identity is None:
        return
    name, broker = source or f"broker-{identity.broker}", identity.broker
    prober = process.prober(name, identity, f"port {at}")

    def look() -> float:
        prober.prober.verify()
        return LOOK_SECONDS

    table, settings, post = _open(at, networks), SelfReachability(), prober.prober.post
    running = SelfReachabilityProbe(broker, name, at, table, settings, post, prober.clock, prober.metrics)

    def follow(found: LeadershipPolicy | None) -> bool:
        if found is None:
            return False
        now = found.policy().detection.self_reachability
        running.configure(now)
        return now.enabled

    running.start()
    prober.run(running, follow, look)


def _open(port: int, ignored: Ignored) -> SocketTable:
    import structlog

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
