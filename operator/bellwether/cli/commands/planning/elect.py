"""``bellwether elect``: run preferred leader elections now, for healthy brokers only."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.common_options import OUTPUT
from bellwether.cli.commands.kubernetes_options import policy_options


@click.command()
@policy_options
@click.option("--topic", "topics", multiple=True, help="Elect leaders of this topic only; repeatable.  [default: all]")
@click.option("--dry-run", is_flag=True, help="Show the elections, and change nothing.")
@OUTPUT
def elect(**options: Any) -> None:
    """Elect preferred leaders now, on healthy brokers only.

    Elects the first replica of each order that does not lead, as the periodic election of the policy does
    (spec.election): never a broker that is demoted, drained, sick or not in the ISR. Nothing is reordered. The command
    sends the elections itself, with the policy's addresses and Secrets, and writes them into the policy's audit log if
    the user may; otherwise it says so. Exit status 3 while the operator has other
    moves to make, another tool is at work, or an election was refused.
    """
    from bellwether.cli.planning.elect import elect as run

    run(**options)
