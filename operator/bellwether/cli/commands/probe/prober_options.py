"""Options shared by the commands of ``bellwether probe`` and by ``bellwether quarantine-agent``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

HEALTH_PORT = "bellwether.health-port"
"""Key of the port in click's context."""


def _remember(context: click.Context, _option: click.Parameter, value: int | None) -> None:
    context.meta[HEALTH_PORT] = value


def shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every prober has."""
    for option in reversed(
        (
            click.option("--policy", metavar="NAME", help="LeadershipPolicy to read settings from and report to."),
            click.option("--namespace", "-n", default="default", show_default=True, help="Namespace of the policy."),
            click.option(
                "--once", is_flag=True, help="Measure once, print a table, report nothing; exit status 1 on a failure."
            ),
            click.option(
                "--metrics-port", type=click.IntRange(1, 65535), help="Port of /metrics, /healthz and /readyz."
            ),
            click.option(
                "--health-port",
                type=click.IntRange(1, 65535),
                expose_value=False,
                callback=_remember,
                help="Additional port of /healthz and /readyz.",
            ),
            click.option(
                "--log-format",
                type=click.Choice(["auto", "json", "console"]),
                default="auto",
                show_default=True,
                help="Log format; auto: console on a terminal, else json.",
            ),
            click.option(
                "--log-level",
                type=click.Choice(["debug", "info", "warning", "error"]),
                default="info",
                show_default=True,
                help="Minimum log level.",
            ),
        )
    ):
        command = option(command)
    return command
