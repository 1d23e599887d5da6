"""Options that name a Kafka cluster, and the connection that they describe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bellwether.adapters import pem
from bellwether.kafka_connection import (
    AwsMskIam,
    Connection,
    HttpProxy,
    Mechanism,
    OAuth,
    Protocol,
    Security,
    TokenFile,
    TokenOrigin,
)
from bellwether.ports.errors import Unauthenticated

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


def connection_from(
    bootstrap: str,
    tls: bool,
    tls_ca: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    sasl_mechanism: str | None,
    sasl_username: str | None,
    sasl_password_file: Path | None,
    oauth_token_endpoint: str | None = None,
    oauth_client_id: str | None = None,
    oauth_client_secret_file: Path | None = None,
    oauth_scope: str | None = None,
    oauth_ca: Path | None = None,
    oauth_proxy: str | None = None,
    oauth_token_file: Path | None = None,
    aws_msk_region: str | None = None,
) -> Connection:
    """Build the connection from the options and the current content of their files.

    UsageError names a missing option, Unauthenticated a file that cannot be used.
    """
    encrypted = tls or tls_ca is not None or tls_cert is not None
    protocol = Protocol(
        f"SASL_{'SSL' if encrypted else 'PLAINTEXT'}" if sasl_mechanism else "SSL" if encrypted else "PLAINTEXT"
    )
    try:
        oauth: TokenOrigin | None = None
        origins = [name for name in (oauth_token_endpoint, oauth_token_file, aws_msk_region) if name]
        if len(origins) > 1:
            raise click.UsageError("Set one of --oauth-token-endpoint, --oauth-token-file and --aws-msk-region.")
        if origins and sasl_mechanism != Mechanism.OAUTHBEARER:
            raise click.UsageError(
                "--oauth-token-endpoint, --oauth-token-file and --aws-msk-region require --sasl-mechanism OAUTHBEARER."
            )
        proxy = HttpProxy(url=oauth_proxy, name="--oauth-proxy") if oauth_proxy else None
        if oauth_token_file is not None:
            oauth = TokenFile(path=str(oauth_token_file), names=(("path", "--oauth-token-file"),))
        elif aws_msk_region:
            oauth = AwsMskIam(region=aws_msk_region, proxy=proxy, names=(("region", "--aws-msk-region"),))
        elif sasl_mechanism == Mechanism.OAUTHBEARER:
            oauth = OAuth(
                token_endpoint=oauth_token_endpoint or "",
                client_id=oauth_client_id or "",
                client_secret=_secret(oauth_client_secret_file, "--oauth-client-secret-file"),
                scope=oauth_scope or "",
                ca_file=_certificates(oauth_ca, "--oauth-ca"),
                proxy=proxy,
                names=_OAUTH_NAMES,
            )
        security = Security(
            protocol=protocol,
            mechanism=Mechanism(sasl_mechanism) if sasl_mechanism else None,
            username=sasl_username or "",
            password=_secret(sasl_password_file, "--sasl-password-file"),
            oauth=oauth,
            ca_file=_certificates(tls_ca, "--tls-ca"),
            cert_file=_certificates(tls_cert, "--tls-cert"),
            key_file=_key(tls_key),
            names=_names(tls_ca, tls_cert, tls_key),
        )
        return Connection(tuple(part.strip() for part in bootstrap.split(",") if part.strip()), security)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


_OAUTH_NAMES = (
    ("token_endpoint", "--oauth-token-endpoint"),
    ("client_id", "--oauth-client-id"),
    ("client_secret", "--oauth-client-secret-file"),
    ("scope", "--oauth-scope"),
    ("ca_file", "--oauth-ca"),
)


def _names(ca: Path | None, certificate: Path | None, key: Path | None) -> tuple[tuple[str, str], ...]:
    """The option of each field, for error messages."""
    files = {"ca_file": ("--tls-ca", ca), "cert_file": ("--tls-cert", certificate), "key_file": ("--tls-key", key)}
    named = {field: f"{option} {path}" if path else option for field, (option, path) in files.items()}
    words = {"mechanism": "--sasl-mechanism", "username": "--sasl-username", "password": "--sasl-password-file"}
    return tuple((named | words).items())


def _secret(path: Path | None, option: str) -> str:
    """Content of a file, without trailing line ends."""
    if path is None:
        return ""
    try:
        found = path.read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise Unauthenticated(f"{option} {path} cannot be read as text") from None
    if not found:
        raise Unauthenticated(f"{option} {path} is empty")
    return found


def _certificates(path: Path | None, option: str) -> str:
    return _checked(path, option, pem.validities)


def _key(path: Path | None) -> str:
    return _checked(path, "--tls-key", pem.check_key)


def _checked(path: Path | None, option: str, check: Callable[[bytes], object]) -> str:
    if path is None:
        return ""
    try:
        check(path.read_bytes())
    except OSError as error:
        raise Unauthenticated(f"{option} {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise Unauthenticated(f"{option} {path} {error}") from None
    return str(path)
