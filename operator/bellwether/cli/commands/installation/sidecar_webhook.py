"""``bellwether sidecar-webhook``: add sidecars to the pods of brokers when they are created."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.common_options import LOG_FORMAT, LOG_LEVEL, METRICS_PORT

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), default=9443, show_default=True, help="Port of the webhook.")
@click.option("--tls-cert", type=_FILE, required=True, help="PEM file of the webhook's certificate.")
@click.option("--tls-key", type=_FILE, required=True, help="PEM file of the certificate's private key.")
@click.option(
    "--sidecars",
    metavar="JSON",
    required=True,
    help="What the pods of each ServiceAccount get: a map from its name to containers, imagePullSecrets and"
    " shareProcessNamespace.",
)
@METRICS_PORT
@LOG_FORMAT
@LOG_LEVEL
def sidecar_webhook(log_format: Any, log_level: str, **options: Any) -> None:
    """Add sidecars to the pods of brokers when they are created.

    An admission webhook for API servers without MutatingAdmissionPolicy (before Kubernetes 1.36). It answers POST
    /sidecars with a patch, allows every pod and needs no permissions. The chart installs it
    (sidecars.injection).
    """
    from bellwether.cli.installation.sidecar_webhook import sidecar_webhook as run
    from bellwether.telemetry.logs import configure

    configure(log_format, log_level)
    run(**options)
