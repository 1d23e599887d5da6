"""``bellwether probe alertmanager``: receive alerts by webhook and report them as signals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.probe.prober_options import shared_options

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@shared_options
@click.option("--listen", metavar="[HOST]:PORT", default=":9098", show_default=True, help="Address of the webhook.")
@click.option("--token-file", type=_FILE, help="File with the bearer token that Alertmanager must send.")
@click.option("--tls-cert", type=_FILE, help="PEM file of the webhook's certificate.")
@click.option("--tls-key", type=_FILE, help="PEM file of the certificate's private key.")
@click.option(
    "--insecure-no-auth", is_flag=True, help="Accept requests without a token; allowed on a loopback address only."
)
@click.option(
    "--forget-after-seconds",
    type=click.IntRange(60),
    default=43200,
    show_default=True,
    help="Discard an alert that was neither repeated nor resolved for this many seconds. Must exceed Alertmanager's"
    " repeat_interval.",
)
def alertmanager(**options: Any) -> None:
    """Receive alerts from Alertmanager and report signals.

    The alerts are those in detection.alertmanager of the policy. POST /alerts accepts webhook notifications of
    Alertmanager, version 4. GET /readyz returns 200 while this replica reports, GET /healthz while it serves.
    """
    from bellwether.cli.probe.alertmanager import alertmanager as run

    run(**options)
