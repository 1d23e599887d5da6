"""``bellwether probe prometheus``: evaluate the policy's Prometheus rules and report signals."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.probe.prober_options import shared_options


@click.command()
@shared_options
@click.option("--presets", is_flag=True, help="List the preset queries with their PromQL and exit.")
def prometheus(**options: Any) -> None:
    """Evaluate the policy's Prometheus rules and report signals.

    Queries Prometheus once per period; the rules are those of detection.prometheus. One prober is enough for all rules
    of a policy; a second replica is on standby.
    """
    from bellwether.cli.probe.prometheus import prometheus as run

    run(**options)
