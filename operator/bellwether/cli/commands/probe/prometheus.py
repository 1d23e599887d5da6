"""``bellwether probe prometheus``: ask a Prometheus the policy's rules, and report what the values say of brokers."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.probe.prober_options import shared_options


@click.command()
@shared_options
@click.option("--presets", is_flag=True, help="List the ready-made queries with their PromQL, and end.")
def prometheus(**options: Any) -> None:
    """Ask a Prometheus the policy's queries, each period.

    The queries are those of detection.prometheus. One prober is enough for all rules of a policy; a second one stands
    by.
    """
    from bellwether.cli.probe.prometheus import prometheus as run

    run(**options)
