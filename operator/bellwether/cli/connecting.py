"""The options that name a Kafka cluster on the command line, and the connection that they make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bellwether.connections import Connection, Mechanism, Protocol, Security

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
    )
    for option in reversed(options):
        command = option(command)
    return command


def connection_from(
    bootstrap: str,
    tls: bool,
    tls_ca: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    sasl_mechanism: str | None,
    sasl_username: str | None,
    sasl_password_file: Path | None,
) -> Connection:
    """The connection that the options describe. UsageError names what is missing."""
    encrypted = tls or tls_ca is not None or tls_cert is not None
    protocol = Protocol(
        f"SASL_{'SSL' if encrypted else 'PLAINTEXT'}" if sasl_mechanism else "SSL" if encrypted else "PLAINTEXT"
    )
    try:
        security = Security(
            protocol=protocol,
            mechanism=Mechanism(sasl_mechanism) if sasl_mechanism else None,
            username=sasl_username or "",
            password=sasl_password_file.read_text().rstrip("\r\n") if sasl_password_file else "",
            ca_file=str(tls_ca or ""),
            cert_file=str(tls_cert or ""),
            key_file=str(tls_key or ""),
        )
        return Connection(tuple(part.strip() for part in bootstrap.split(",") if part.strip()), security)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
