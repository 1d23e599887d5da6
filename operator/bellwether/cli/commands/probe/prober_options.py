"""Options shared by every verb of ``bellwether probe`` and by ``bellwether quarantine-agent``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

HEALTH_PORT = "bellwether.health-port"
"""The key in click's context under which the port is kept."""


def _remember(context: click.Context, _option: click.Parameter, value: int | None) -> None:
    context.meta[HEALTH_PORT] = value


def shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that every probe takes."""
    for option in reversed(
        (
            click.option("--policy", metavar="NAME", help="The LeadershipPolicy to follow."),
            click.option("--namespace", "-n", default="default", show_default=True, help="The policy's namespace."),
            click.option(
                "--once", is_flag=True, help="Measure once, print a table, write nothing; exit 1 on a failure."
            ),
            click.option(
                "--metrics-port", type=click.IntRange(1, 65535), help="Serve Prometheus metrics on this port."
            ),
            click.option(
                "--health-port",
                type=click.IntRange(1, 65535),
                expose_value=False,
                callback=_remember,
                help="Serve /healthz and /readyz on this port, too; --metrics-port serves them in any case.",
            ),
            click.option(
                "--log-format", type=click.Choice(["auto", "json", "console"]), default="auto", show_default=True
            ),
            click.option(
                "--log-level",
                type=click.Choice(["debug", "info", "warning", "error"]),
                default="info",
                show_default=True,
            ),
        )
    ):
        command = option(command)
    return command
