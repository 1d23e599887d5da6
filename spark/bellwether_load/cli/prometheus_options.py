"""Prometheus from command-line options: a token or a password in a file, headers, a proxy, CAs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bellwether.cli.option_lists import as_one
from bellwether.kafka_connection import Hidden, HttpProxy
from bellwether.ports.errors import Terminal

if TYPE_CHECKING:
    from bellwether.adapters.prometheus.query_client import Access

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_HEADER = re.compile("([A-Za-z0-9_-]{1,64})=([!-~](?:[ -~]{0,254}[!-~])?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusAccess:
    """The options ``--prometheus-...``. Raises UsageError for a combination that cannot work."""

    token_file: Path | None = None
    username: str | None = None
    password_file: Path | None = None
    headers: tuple[str, ...] = ()
    proxy: str | None = None
    ca: Path | None = None

    def __post_init__(self) -> None:
        if (self.username is None) != (self.password_file is None):
            raise click.UsageError("Set both --prometheus-username and --prometheus-password-file, or neither.")
        if self.username is not None and self.token_file is not None:
            raise click.UsageError("Set either --prometheus-token-file or --prometheus-username.")
        if self.headers:
            from bellwether.api.v1alpha1.spec.credentials_spec import RESERVED_HEADERS
        for header in self.headers:
            found = _HEADER.fullmatch(header)
            if found is None:
                raise click.UsageError("--prometheus-header must be NAME=VALUE, such as X-Scope-OrgID=orders.")
            if found[1].lower() in RESERVED_HEADERS:
                raise click.UsageError(f"--prometheus-header {found[1]} is reserved: use the options for credentials.")
        self._proxied()

    def read(self) -> Access:
        """The access with the present content of the files. Terminal names a bad file."""
        from bellwether.adapters.prometheus.query_client import Access
        from bellwether.destinations import ANYWHERE

        return Access(
            destinations=ANYWHERE,
            token=_text(self.token_file, "--prometheus-token-file"),
            username=self.username or "",
            password=_text(self.password_file, "--prometheus-password-file"),
            headers=tuple((name, value) for name, _, value in (header.partition("=") for header in self.headers)),
            proxy=self._proxied(),
            ca=self.ca,
        )

    def _proxied(self) -> HttpProxy | None:
        try:
            return HttpProxy(url=self.proxy, name="--prometheus-proxy") if self.proxy else None
        except ValueError as error:
            raise click.UsageError(f"{error}.") from None


prometheus_options = as_one(
    "access",
    PrometheusAccess,
    {
        "token_file": click.option(
            "--prometheus-token-file", "token_file", type=_FILE, help="File with the bearer token for Prometheus."
        ),
        "username": click.option(
            "--prometheus-username", "username", help="User name for Prometheus (basic authentication)."
        ),
        "password_file": click.option(
            "--prometheus-password-file", "password_file", type=_FILE, help="File with the password for Prometheus."
        ),
        "headers": click.option(
            "--prometheus-header",
            "headers",
            multiple=True,
            metavar="NAME=VALUE",
            help="Header of each request to Prometheus, such as X-Scope-OrgID=orders; repeatable.",
        ),
        "proxy": click.option("--prometheus-proxy", "proxy", metavar="URL", help="HTTP proxy to Prometheus."),
        "ca": click.option("--prometheus-ca", "ca", type=_FILE, help="PEM file of the CA certificates of Prometheus."),
    },
)
"""Adds the options ``--prometheus-...`` to a command; it gets them as ``access``."""


def _text(path: Path | None, option: str) -> Hidden:
    try:
        return Hidden(path.read_text().strip() if path else "")
    except (OSError, UnicodeDecodeError):
        raise Terminal(f"{option} {path} cannot be read as text") from None
