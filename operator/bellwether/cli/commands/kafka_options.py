"""Command-line options that name a Kafka cluster; ``cli.kafka_target`` makes a connection from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bellwether.kafka_connection import Mechanism

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def kafka_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--bootstrap`` and the TLS and SASL options to a command."""
    options = (
        click.option("--bootstrap", "-b", help="Kafka bootstrap servers: HOST:PORT, separated by commas."),
        click.option("--tls/--no-tls", default=False, help="Connect with TLS."),
        click.option("--tls-ca", type=_FILE, help="PEM file of the trusted CA certificates; implies --tls."),
        click.option("--tls-cert", type=_FILE, help="PEM file of the client certificate; implies --tls."),
        click.option("--tls-key", type=_FILE, help="PEM file of the client's private key."),
        click.option(
            "--sasl-mechanism", type=click.Choice([str(m) for m in Mechanism]), help="SASL mechanism; unset: no SASL."
        ),
        click.option("--sasl-username", help="SASL user name."),
        click.option("--sasl-password-file", type=_FILE, help="File with the SASL password."),
        click.option("--oauth-token-endpoint", metavar="URL", help="Token endpoint of OAUTHBEARER; https://."),
        click.option("--oauth-client-id", help="OAuth client id."),
        click.option("--oauth-client-secret-file", type=_FILE, help="File with the OAuth client secret."),
        click.option("--oauth-scope", help="OAuth scope to request."),
        click.option("--oauth-ca", type=_FILE, help="PEM file of the CA certificates that the token endpoint uses."),
        click.option("--oauth-proxy", metavar="URL", help="HTTP proxy to the token endpoint or to AWS STS."),
        click.option(
            "--oauth-token-file",
            type=click.Path(dir_okay=False, path_type=Path),
            help="File with a token for OAUTHBEARER, instead of a token endpoint; it is read again when it is renewed.",
        ),
        click.option(
            "--aws-msk-region",
            metavar="REGION",
            help="Amazon MSK with IAM in this region, for OAUTHBEARER: AWS credentials of the environment.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command
