"""``bellwether probe self``: look from beside a broker whether anybody from outside is heard of on its listener."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.probe.broker_id_option import BrokerId
from bellwether.cli.commands.probe.prober_options import shared_options


@click.command("self")
@shared_options
@click.option(
    "--broker", type=BrokerId(), help="Id of the broker beside which this runs, or its pod's name, which ends with it."
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Port that the broker's external listener is bound to, inside the pod: not that of the load balancer.",
)
@click.option(
    "--ignore",
    "ignored",
    metavar="CIDR",
    multiple=True,
    help="Connections from this network do not count, such as those of health checks that speak. May be repeated.",
)
@click.option("--source", metavar="NAME", help="Stable name of this prober.  [default: broker-<ID>]")
def selfcheck(**options: Any) -> None:
    """Watch one broker's listener for clients from outside.

    Each second it reads the kernel's socket table, which a sidecar in the broker's pod shares with it. No privilege is
    needed, and nothing is sent to the broker.
    """
    from bellwether.cli.probe.selfcheck import selfcheck as run

    run(**options)
