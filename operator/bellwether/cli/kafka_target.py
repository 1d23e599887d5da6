"""Options that name a Kafka cluster, and the connection that they describe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from bellwether.cli.client_properties import ClientProperties
from bellwether.cli.option_lists import as_one
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Unauthenticated

T = TypeVar("T")

BOOTSTRAP = "--bootstrap HOST:PORT, or bootstrap.servers in the file of --command-config"
"""What a message asks for where servers are missing."""


@dataclass(frozen=True, kw_only=True)
class KafkaTarget:
    """The Kafka cluster that options name; the file of ``command_config`` is read again by each call."""

    bootstrap: str | None = None
    command_config: Path | None = None

    @property
    def servers(self) -> str:
        """The bootstrap servers of the option, or of the file; empty if neither has any. Raises Unauthenticated."""
        return self.bootstrap or self._of_file(lambda found: found.servers)

    def connection(self) -> Connection:
        """The connection. UsageError names what the options lack, Unauthenticated what is wrong in the file."""
        servers = self.servers
        security = self._of_file(lambda found: found.security(servers))
        try:
            return Connection(addresses(servers), security)
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    def _of_file(self, read: Callable[[ClientProperties], T]) -> T:
        try:
            return read(ClientProperties.read(self.command_config))
        except ValueError as error:
            raise Unauthenticated(f"--command-config {self.command_config}: {error}") from None


def addresses(servers: str | None) -> tuple[str, ...]:
    """``HOST:PORT``, separated by commas."""
    return tuple(part.strip() for part in (servers or "").split(",") if part.strip())


kafka_options = as_one(
    "kafka",
    KafkaTarget,
    {
        "bootstrap": click.option(
            "--bootstrap", "-b", metavar="HOST:PORT,...", help="Bootstrap servers of the Kafka cluster."
        ),
        "command_config": click.option(
            "--command-config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            metavar="FILE",
            help="TLS and SASL of the Kafka cluster: the properties file that Kafka's own tools take.",
        ),
    },
)
"""Adds ``--bootstrap`` and ``--command-config`` to a command; it gets them as ``kafka``."""
