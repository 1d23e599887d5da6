"""``bellwether probe reachability``: probe every broker's external listener, with the internal one as control."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.probe.prober_options import shared_options


@click.command()
@shared_options
@click.option("--vantage", metavar="NAME", help="Stable name of this vantage, such as eu-west-1a.")
@click.option(
    "--no-internal",
    is_flag=True,
    help="This vantage cannot reach the internal listener: probe no control, and discover the brokers externally.",
)
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    multiple=True,
    help="With --once: probe this cluster, without Kubernetes, TLS or SASL; repeatable.",
)
@click.option("--listener", help="With --bootstrap: name of the external listener.  [default: EXTERNAL]")
def reachability(**options: Any) -> None:
    """Probe every broker at its external address.

    The internal address is probed as the control. A probe passes only if that broker answers a Kafka request: an open
    port is not enough, and neither is another broker behind the load balancer.
    """
    from bellwether.cli.probe.reachability import reachability as run

    run(**options)
