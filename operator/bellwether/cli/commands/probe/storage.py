"""``bellwether probe storage``: time small durable writes in a broker's log directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.probe.broker_id_option import BrokerId
from bellwether.cli.commands.probe.prober_options import shared_options


@click.command()
@shared_options
@click.option(
    "--broker", type=BrokerId(), help="Id of the broker whose volume this is, or its pod's name, which ends with it."
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="The broker's log directory; a hidden file of 4 KiB is written there.",
)
@click.option("--source", metavar="NAME", help="Stable name of this prober.  [default: broker-<ID>]")
def storage(**options: Any) -> None:
    """Time small durable writes in a broker's log directory.

    Writes 4 KiB each second, with fdatasync. A broker with several log directories needs one prober for each, told
    apart by --source.
    """
    from bellwether.cli.probe.storage import storage as run

    run(**options)
