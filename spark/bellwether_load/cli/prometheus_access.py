"""Access to a Prometheus by the sampler: credentials in a directory, and headers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bellwether.kafka_connection import Hidden
from bellwether.ports.errors import Terminal

if TYPE_CHECKING:
    from bellwether.adapters.prometheus.query_client import Access

_HEADER = re.compile("([A-Za-z0-9_-]{1,64})=([!-~](?:[ -~]{0,254}[!-~])?)")


def prometheus_access(folder: Path | None, headers: tuple[str, ...]) -> Access:
    """The access with the present content of the files. Raises UsageError, or Terminal, which names a bad file."""
    from bellwether.adapters.prometheus.query_client import Access
    from bellwether.api.v1alpha1.spec.credentials_spec import RESERVED_HEADERS
    from bellwether.destinations import ANYWHERE

    pairs = []
    for header in headers:
        found = _HEADER.fullmatch(header)
        if found is None:
            raise click.UsageError("--prometheus-header must be NAME=VALUE, such as X-Scope-OrgID=orders.")
        if found[1].lower() in RESERVED_HEADERS:
            raise click.UsageError(f"--prometheus-header {found[1]} is reserved: use --prometheus-credentials.")
        pairs.append((found[1], found[2]))
    token, username, password = (_text(folder, name) for name in ("token", "username", "password"))
    if bool(username) != bool(password) or (username and token):
        raise Terminal(f"--prometheus-credentials {folder} must have token, or username and password")
    authority = folder / "ca.crt" if folder is not None else None
    return Access(
        destinations=ANYWHERE,
        token=token,
        username=username,
        password=password,
        headers=tuple(pairs),
        ca=authority if authority is not None and authority.exists() else None,
    )


def _text(folder: Path | None, name: str) -> Hidden:
    if folder is None or not (folder / name).exists():
        return Hidden("")
    try:
        return Hidden((folder / name).read_text().strip())
    except (OSError, UnicodeDecodeError):
        raise Terminal(f"--prometheus-credentials: {folder / name} cannot be read as text") from None
