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
        click.option("--bootstrap", "-b", help="Kafka bootstrap servers, host:port, separated by commas."),
        click.option("--tls/--no-tls", default=False, help="Encrypt connections."),
        click.option("--tls-ca", type=_FILE, help="PEM file of the authorities to trust; implies --tls."),
        click.option("--tls-cert", type=_FILE, help="PEM file of the client's certificate; implies --tls."),
        click.option("--tls-key", type=_FILE, help="PEM file of the client's key."),
        click.option("--sasl-mechanism", type=click.Choice([str(m) for m in Mechanism])),
        click.option("--sasl-username", help="User name for SASL."),
        click.option("--sasl-password-file", type=_FILE, help="File that holds the password; never an argument."),
        click.option("--oauth-token-endpoint", metavar="URL", help="Where tokens come from (OAUTHBEARER); https://."),
        click.option("--oauth-client-id", help="Client id at the token endpoint."),
        click.option("--oauth-client-secret-file", type=_FILE, help="File that holds the client's secret."),
        click.option("--oauth-scope", help="Scope to ask for."),
        click.option("--oauth-ca", type=_FILE, help="PEM file of the authorities to trust at the token endpoint."),
    )
    for option in reversed(options):
        command = option(command)
    return command
