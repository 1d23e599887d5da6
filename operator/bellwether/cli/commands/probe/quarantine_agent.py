"""``bellwether quarantine-agent``: the quarantine agent, which pauses its broker on the operator's order."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.probe.broker_id_option import BrokerId
from bellwether.cli.commands.probe.prober_options import shared_options


@click.command()
@shared_options
@click.option("--broker", type=BrokerId(), help="Id of the broker beside us, or its pod's name, which ends with it.")
@click.option("--pid", type=click.IntRange(1), help="The broker's process.  [default: found by --process]")
@click.option(
    "--process",
    "pattern",
    metavar="REGEX",
    help="What the broker's arguments, each ended by a zero byte, match.  [default: java kafka.Kafka]",
)
def quarantine_agent(**options: Any) -> None:
    """Pause the broker's process while the operator orders it.

    The policy's spec.quarantine says when; afterwards the process is released. It needs the broker's process namespace,
    and its user or the capability KILL. A broker that is found paused at the start is released. --once tells how the
    process is.
    """
    from bellwether.cli.probe.quarantine_agent import quarantine_agent as run

    run(**options)
