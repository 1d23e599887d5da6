"""Prometheus from command-line options: credentials, headers, proxy and CAs; clients for consumer throughput."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from pathlib import Path

import click

from bellwether.adapters.prometheus.query_client import Access, PrometheusClient
from bellwether.adapters.prometheus.topic_consumption import BODY_LIMIT, SERIES_LIMIT, TopicReaders
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.spec.credentials_spec import RESERVED_HEADERS
from bellwether.kafka_connection import Hidden, HttpProxy
from bellwether.ports.errors import Terminal

MARKS = ("$namespace", "$policy")
"""Replaced in a query by those of the policy."""

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
        for header in self.headers:
            found = _HEADER.fullmatch(header)
            if found is None:
                raise click.UsageError("--prometheus-header must be NAME=VALUE, such as X-Scope-OrgID=orders.")
            if found[1].lower() in RESERVED_HEADERS:
                raise click.UsageError(f"--prometheus-header {found[1]} is reserved: use the options for credentials.")
        self._proxied()

    def read(self) -> Access:
        """The access with the present content of the files. Terminal names a bad file."""
        return Access(
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


def _text(path: Path | None, option: str) -> Hidden:
    try:
        return Hidden(path.read_text().strip() if path else "")
    except (OSError, UnicodeDecodeError):
        raise Terminal(f"{option} {path} cannot be read as text") from None


class Consumers:
    """Clients for consumer throughput per topic in Prometheus; their files are read again in each round."""

    def __init__(self, url: str | None, query: str, access: PrometheusAccess) -> None:
        if url is None and access != PrometheusAccess():
            raise click.UsageError("The options --prometheus-... require --prometheus.")
        if url is not None and not url.startswith(("http://", "https://")):
            raise click.UsageError(f"--prometheus {url!r} is not a URL: use a value such as http://prometheus:9090.")
        self._url, self._query, self._files = url, query, access
        self._lock = threading.Lock()
        self._made: dict[str, tuple[Access, TopicReaders]] = {}

    def read(self, policy: LeadershipPolicy | None = None) -> TopicReaders | None:
        """The client for a cluster, None without --prometheus; a new one if a file has changed. The query has the
        policy's namespace and name in place of $namespace and $policy. Terminal names a bad file.
        """
        if self._url is None:
            return None
        access, query = self._files.read(), self._query
        if policy is not None:
            for mark, value in zip(MARKS, (policy.metadata.namespace, policy.metadata.name), strict=True):
                query = query.replace(mark, value)
        with self._lock:
            known = self._made.get(query)
            if known is None or known[0] != access:
                client = PrometheusClient(self._url, access, body_limit=BODY_LIMIT, series_limit=SERIES_LIMIT)
                known = self._made[query] = access, TopicReaders(client, query)
            return known[1]
