"""``bellwether plan``: show what the policy would do now, and move nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bellwether.cli.kubernetes_target import Target, policy_options
from bellwether.cli.output import OUTPUT, print_document
from bellwether.ports.errors import BellwetherError

if TYPE_CHECKING:
    from bellwether.cli.planning.preview import Preview


@click.command()
@policy_options
@OUTPUT
def plan(target: Target, output: str) -> None:
    """Show what the policy would do now; nothing is moved.

    Plans as the operator does: from the verdicts that it last reported, the overrides and the undo record, and from
    the metadata of the policy's Kafka cluster, which it reads with the policy's addresses and Secrets. Shows who would
    be demoted or promoted, which leaders would move, and what is blocked and why. For load plans see `bellwether
    rebalance show`.
    """
    from bellwether.cli.planning.policy_inputs import policy_inputs

    try:
        with policy_inputs(target) as inputs:
            show_plan(inputs.preview(), output)
    except BellwetherError as error:
        raise click.ClickException(str(error)) from None


def show_plan(preview: Preview, output: str) -> None:
    """Print a plan."""
    from bellwether.cli.planning.plan_text import plan_document, plan_lines

    if output != "table":
        print_document(plan_document(preview), output)
        return
    for line in plan_lines(preview):
        click.echo(line)
