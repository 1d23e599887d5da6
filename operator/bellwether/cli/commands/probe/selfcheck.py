"""``bellwether probe self``: check next to a broker whether external clients are connected to its listener."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.probe.broker_id_option import BrokerId
from bellwether.cli.commands.probe.prober_options import shared_options


@click.command("self")
@shared_options
@click.option("--broker", type=BrokerId(), help="Id of the broker in this pod, or its pod's name.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Port that the broker's external listener is bound to inside the pod (not the load balancer's port).",
)
@click.option(
    "--ignore",
    "ignored",
    metavar="CIDR",
    multiple=True,
    help="Ignore connections from this network, such as those of health checks; repeatable.",
)
@click.option("--source", metavar="NAME", help="Stable name of this prober.  [default: broker-<ID>]")
def selfcheck(**options: Any) -> None:
    """Check for external clients connected to a broker.

    Reads the kernel's socket table once per second, which a sidecar shares with the broker of its pod. Needs no
    privileges and sends nothing to the broker.
    """
    from bellwether.cli.probe.selfcheck import selfcheck as run

    run(**options)
