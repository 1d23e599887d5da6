"""``bellwether operator``: watch the policies and act on them."""

from __future__ import annotations

from typing import Any

import click

from bellwether.telemetry.heartbeat import STUCK_SECONDS

# The longest single request, to a large cluster's metadata, and some.
SHORTEST_BOUND_SECONDS = 10.0


@click.command()
@click.option("--namespace", "-n", "namespaces", multiple=True, help="Watch this namespace; repeat it. Default: all.")
@click.option(
    "--lease-namespace",
    envvar="POD_NAMESPACE",
    default="default",
    show_default=True,
    help="Where the Leases of Kafka clusters stand; the same for all operators of a Kubernetes cluster.",
)
@click.option("--lease-duration", default=10, show_default=True, help="Seconds that a Lease lasts.")
@click.option("--lease-renew", default=2.0, show_default=True, help="Seconds between renewals of a Lease.")
@click.option("--metrics-port", default=9464, show_default=True, help="Serve Prometheus metrics here; 0 for nowhere.")
@click.option("--health-port", default=8080, show_default=True, help="Serve /healthz and /readyz here; 0 for nowhere.")
@click.option(
    "--stuck-after",
    type=click.FloatRange(SHORTEST_BOUND_SECONDS),
    default=STUCK_SECONDS,
    show_default=True,
    help="Seconds without any sign of life after which a thread counts as stuck, and /healthz says 503.",
)
@click.option("--log-format", type=click.Choice(["auto", "json", "console"]), default="auto", show_default=True)
@click.option("--log-level", type=click.Choice(["debug", "info", "warning"]), default="info", show_default=True)
def operator(**options: Any) -> None:
    """Run the operator: keep leadership away from sick brokers.

    Connects to the Kubernetes API by KUBECONFIG or the pod's ServiceAccount. Several processes may run: one acts on
    each Kafka cluster, the others stand by.
    """
    from bellwether.cli.installation.operate import operator as run

    run(**options)
