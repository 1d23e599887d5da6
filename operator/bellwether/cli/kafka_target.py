"""Options that name a Kafka cluster, and the connection that they describe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import click

from bellwether.adapters import pem
from bellwether.cli.client_properties import KEYS, read_options
from bellwether.cli.option_lists import as_one
from bellwether.destinations import ANYWHERE
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

BOOTSTRAP = "--bootstrap HOST:PORT, or bootstrap.servers in the file of --command-config"
"""What a message asks for where servers are missing."""

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, kw_only=True)
class KafkaTarget:
    """The Kafka cluster that options name, or the file that ``command_config`` names where an option is not set."""

    bootstrap: str | None = None
    command_config: Path | None = None
    tls: bool | None = None
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password_file: Path | None = None
    oauth_token_endpoint: str | None = None
    oauth_client_id: str | None = None
    oauth_client_secret_file: Path | None = None
    oauth_scope: str | None = None
    oauth_ca: Path | None = None
    oauth_proxy: str | None = None
    oauth_token_file: Path | None = None
    aws_msk_region: str | None = None

    @property
    def servers(self) -> str:
        """The bootstrap servers of the option, or of the file; empty if neither has any. Raises UsageError."""
        return self.bootstrap or self._configured().get("bootstrap") or ""

    @property
    def secured_by(self) -> dict[str, Any]:
        """The options that are set, without ``--bootstrap``."""
        return {name: value for name, value in vars(self).items() if value and name != "bootstrap"}

    def connection(self) -> Connection:
        """Build the connection from the options and the current content of their files.

        UsageError names a missing option, Unauthenticated a file that cannot be used.
        """
        configured = self._configured()
        if self.tls is False:
            configured = {name: value for name, value in configured.items() if not name.startswith("tls")}
        chosen = replace(
            self, **{k: v for k, v in configured.items() if k != "sasl_password" and getattr(self, k) is None}
        )
        from_file = configured.keys() - {name for name, value in vars(self).items() if value is not None}
        password = "" if self.sasl_password_file else configured.get("sasl_password", "")

        def named(option: str) -> str:
            if option in from_file or (option == "sasl_password_file" and password):
                return f"--command-config {self.command_config}: {KEYS[option]}"
            return f"--{option.replace('_', '-')}"

        return chosen._connected(password, named)

    def _configured(self) -> dict[str, Any]:
        """The options of the file, as ``read_options``; empty without one."""
        if self.command_config is None:
            return {}
        try:
            return read_options(self.command_config)
        except ValueError as error:
            raise click.UsageError(f"--command-config {self.command_config}: {error}.") from None

    def _connected(self, password: str, named: Callable[[str], str]) -> Connection:
        encrypted = self.tls or self.tls_ca is not None or self.tls_cert is not None
        protocol = "SSL" if encrypted else "PLAINTEXT"
        try:
            security = Security(
                destinations=ANYWHERE,
                protocol=Protocol(f"SASL_{protocol}" if self.sasl_mechanism else protocol),
                mechanism=Mechanism(self.sasl_mechanism) if self.sasl_mechanism else None,
                username=self.sasl_username or "",
                password=password or _secret(self.sasl_password_file, named("sasl_password_file")),
                oauth=self._token_origin(),
                ca_file=_checked(self.tls_ca, named("tls_ca"), pem.validities),
                cert_file=_checked(self.tls_cert, named("tls_cert"), pem.validities),
                key_file=_checked(self.tls_key, named("tls_key"), pem.check_key),
                names=(
                    ("ca_file", _with_path(named("tls_ca"), self.tls_ca)),
                    ("cert_file", _with_path(named("tls_cert"), self.tls_cert)),
                    ("key_file", _with_path(named("tls_key"), self.tls_key)),
                    ("mechanism", named("sasl_mechanism")),
                    ("username", named("sasl_username")),
                    ("password", named("sasl_password_file")),
                ),
            )
            return Connection(addresses(self.bootstrap), security)
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    def _token_origin(self) -> TokenOrigin | None:
        origins = [name for name in (self.oauth_token_endpoint, self.oauth_token_file, self.aws_msk_region) if name]
        if len(origins) > 1:
            raise click.UsageError("Set one of --oauth-token-endpoint, --oauth-token-file and --aws-msk-region.")
        if origins and self.sasl_mechanism != Mechanism.OAUTHBEARER:
            raise click.UsageError(
                "--oauth-token-endpoint, --oauth-token-file and --aws-msk-region require --sasl-mechanism OAUTHBEARER."
            )
        proxy = HttpProxy(url=self.oauth_proxy, name="--oauth-proxy") if self.oauth_proxy else None
        if self.oauth_token_file is not None:
            return TokenFile(path=str(self.oauth_token_file), names=(("path", "--oauth-token-file"),))
        if self.aws_msk_region:
            return AwsMskIam(region=self.aws_msk_region, proxy=proxy, names=(("region", "--aws-msk-region"),))
        if self.sasl_mechanism != Mechanism.OAUTHBEARER:
            return None
        return OAuth(
            destinations=ANYWHERE,
            token_endpoint=self.oauth_token_endpoint or "",
            client_id=self.oauth_client_id or "",
            client_secret=_secret(self.oauth_client_secret_file, "--oauth-client-secret-file"),
            scope=self.oauth_scope or "",
            ca_file=_checked(self.oauth_ca, "--oauth-ca", pem.validities),
            proxy=proxy,
            names=(
                ("token_endpoint", "--oauth-token-endpoint"),
                ("client_id", "--oauth-client-id"),
                ("client_secret", "--oauth-client-secret-file"),
                ("scope", "--oauth-scope"),
                ("ca_file", "--oauth-ca"),
            ),
        )


def addresses(servers: str | None) -> tuple[str, ...]:
    """``HOST:PORT``, separated by commas."""
    return tuple(part.strip() for part in (servers or "").split(",") if part.strip())


def _with_path(option: str, path: Path | None) -> str:
    return option if path is None else f"{option} {path}"


_OPTIONS = (
    click.option("--bootstrap", "-b", help="Kafka bootstrap servers: HOST:PORT, separated by commas."),
    click.option(
        "--command-config",
        type=_FILE,
        metavar="FILE",
        help="Properties file of a Kafka client, as Kafka's own tools take it; other options win over it.",
    ),
    click.option("--tls/--no-tls", default=None, help="Connect with TLS.  [default: no-tls]"),
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

kafka_options = as_one("kafka", KafkaTarget, dict(zip([f.name for f in fields(KafkaTarget)], _OPTIONS, strict=True)))
"""Adds ``--bootstrap`` and the TLS and SASL options to a command; it gets them as ``kafka``."""


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
