"""Options shared by the commands of ``bellwether probe`` and by ``bellwether quarantine-agent``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from bellwether.cli.commands.common_options import LOG_FORMAT, LOG_LEVEL, METRICS_PORT, OUTPUT
from bellwether.cli.commands.kubernetes_options import namespaced
from bellwether.cli.commands.policy_selection import selecting

HEALTH_PORT = "bellwether.health-port"
"""Key of the port in click's context."""


def _remember(context: click.Context, _option: click.Parameter, value: int | None) -> None:
    context.meta[HEALTH_PORT] = value


def _of_one_policy(command: Callable[..., Any]) -> Callable[..., Any]:
    policy = click.option("--policy", metavar="NAME", help="LeadershipPolicy to read settings from and report to.")
    return policy(namespaced(command))


def shared_options(command: Callable[..., Any], *, sidecar: bool = False) -> Callable[..., Any]:
    """Add the options that every prober has. A sidecar serves one policy, any other prober several."""
    for option in reversed(
        (
            _of_one_policy if sidecar else selecting,
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
