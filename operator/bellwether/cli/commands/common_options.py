"""Options that several commands have."""

from __future__ import annotations

import click

OUTPUT = click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Output format.",
)
METRICS_PORT = click.option(
    "--metrics-port", type=click.IntRange(1, 65535), help="Port of /metrics, /healthz and /readyz."
)
LOG_FORMAT = click.option(
    "--log-format",
    type=click.Choice(["auto", "json", "console"]),
    default="auto",
    show_default=True,
    help="Log format; auto: console on a terminal, else json.",
)
LOG_LEVEL = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Minimum log level.",
)
