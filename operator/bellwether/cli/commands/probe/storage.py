"""``bellwether probe storage``: measure the latency of durable writes in a broker's log directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.probe.broker_id_option import BrokerId
from bellwether.cli.commands.probe.prober_options import shared_options


@click.command()
@shared_options
@click.option("--broker", type=BrokerId(), help="Id of the broker that owns the volume, or its pod's name.")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Log directory of the broker; the prober writes a hidden file of 4 KiB in it.",
)
@click.option("--source", metavar="NAME", help="Stable name of this prober.  [default: broker-<ID>]")
def storage(**options: Any) -> None:
    """Measure write latency in a broker's log directory.

    Writes 4 KiB with fdatasync once per second. A broker with several log directories needs one prober for each, with
    different values of --source.
    """
    from bellwether.cli.probe.storage import storage as run

    run(**options)
