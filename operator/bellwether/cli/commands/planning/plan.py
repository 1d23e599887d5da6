"""``bellwether plan``: show what the policy would do now, and move nothing."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.common_options import OUTPUT
from bellwether.cli.commands.kubernetes_options import policy_options


@click.command()
@policy_options
@OUTPUT
def plan(**options: Any) -> None:
    """Show what the policy would do now; nothing is moved.

    Plans as the operator does: from the verdicts that it last reported, the overrides and the undo record, and from
    the metadata of the policy's Kafka cluster, which it reads with the policy's addresses and Secrets. Shows who would
    be demoted or promoted, which leaders would move, and what is blocked and why. For load plans see `bellwether
    rebalance show`.
    """
    from bellwether.cli.planning.plan import plan as run

    run(**options)
