"""``bellwether probe alertmanager``: a webhook whose alerts become signals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.probe.prober_options import shared_options

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@shared_options
@click.option(
    "--listen", metavar="[HOST]:PORT", default=":9098", show_default=True, help="Where Alertmanager sends to."
)
@click.option("--token-file", type=_FILE, help="File with the bearer token that Alertmanager must send.")
@click.option("--tls-cert", type=_FILE, help="PEM file of the webhook's certificate.")
@click.option("--tls-key", type=_FILE, help="PEM file of its key.")
@click.option(
    "--insecure-no-auth", is_flag=True, help="Let everybody in. Only on a loopback address, as for a trial by hand."
)
@click.option(
    "--forget-after-seconds",
    type=click.IntRange(60),
    default=43200,
    show_default=True,
    help="An alert that is neither repeated nor resolved for so long is no longer known to fire."
    " Must exceed Alertmanager's repeat_interval.",
)
def alertmanager(**options: Any) -> None:
    """Receive alerts from Alertmanager, and report them.

    POST /alerts takes notifications of Alertmanager's webhook, version 4; GET /readyz is 200 while this process is the
    one that reports, GET /healthz while it serves.
    """
    from bellwether.cli.probe.alertmanager import alertmanager as run

    run(**options)
