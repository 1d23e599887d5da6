"""``bellwether probe reachability``: ask every broker from outside, with its internal listener as the control."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.probe.prober_options import shared_options


@click.command()
@shared_options
@click.option("--vantage", metavar="NAME", help="Stable name of this place, such as eu-west-1a.")
@click.option(
    "--no-internal",
    is_flag=True,
    help="This vantage has no path to the internal listener: ask no control, find the brokers from outside.",
)
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    multiple=True,
    help="With --once: ask this cluster, without Kubernetes, TLS or SASL. May be repeated.",
)
@click.option("--listener", help="With --bootstrap: name of the external listener.  [default: EXTERNAL]")
def reachability(**options: Any) -> None:
    """Ask every broker at its external address.

    The internal address is the control. The answer must come from that very broker: an open port does not count, nor
    does another broker behind the load balancer.
    """
    from bellwether.cli.probe.reachability import reachability as run

    run(**options)
