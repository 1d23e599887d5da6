"""``bellwether quarantine-agent``: run the quarantine agent, which pauses its broker on the operator's order."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.probe.broker_id_option import BrokerId
from bellwether.cli.commands.probe.prober_options import shared_options


@click.command()
@shared_options
@click.option("--broker", type=BrokerId(), help="Id of the broker in this pod, or its pod's name.")
@click.option("--pid", type=click.IntRange(1), help="Process id of the broker.  [default: found with --process]")
@click.option(
    "--process",
    "pattern",
    metavar="REGEX",
    help="Regular expression that matches the broker's command line (arguments end with a zero byte)."
    "  [default: java kafka.Kafka]",
)
def quarantine_agent(**options: Any) -> None:
    """Run the quarantine agent: pause the broker on order.

    Pauses the broker's process (SIGSTOP) while the operator orders it (spec.quarantine of the policy), and resumes it
    afterwards. Needs the broker's process namespace, and its user or the capability KILL. A broker that is paused when
    the agent starts is resumed. With --once it prints the state of the process.
    """
    from bellwether.cli.probe.quarantine_agent import quarantine_agent as run

    run(**options)
