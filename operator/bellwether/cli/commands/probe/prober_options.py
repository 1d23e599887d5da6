"""Options shared by the commands of ``bellwether probe`` and by ``bellwether quarantine-agent``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from bellwether.cli.commands.common_options import LOG_FORMAT, LOG_LEVEL, METRICS_PORT, OUTPUT
from bellwether.cli.commands.kubernetes_options import namespaced

HEALTH_PORT = "bellwether.health-port"
"""Key of the port in click's context."""


def _remember(context: click.Context, _option: click.Parameter, value: int | None) -> None:
    context.meta[HEALTH_PORT] = value


def shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every prober has."""
    for option in reversed(
        (
            click.option("--policy", metavar="NAME", help="LeadershipPolicy to read settings from and report to."),
            namespaced,
            click.option(
                "--once", is_flag=True, help="Measure once, print a table, report nothing; exit status 4 on a failure."
            ),
            OUTPUT,
            METRICS_PORT,
            click.option(
                "--health-port",
                type=click.IntRange(1, 65535),
                expose_value=False,
                callback=_remember,
                help="Additional port of /healthz and /readyz.",
            ),
            LOG_FORMAT,
            LOG_LEVEL,
        )
    ):
        command = option(command)
    return command
