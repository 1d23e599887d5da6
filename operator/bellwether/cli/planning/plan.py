"""``bellwether plan``: show what the policy would do now, and move nothing."""

from __future__ import annotations

import click

from bellwether.cli.commands.kubernetes_options import Target
from bellwether.cli.output import print_document
from bellwether.cli.planning.plan_text import plan_document, plan_lines
from bellwether.cli.planning.preview import Preview, policy_inputs
from bellwether.ports.errors import BellwetherError


def plan(target: Target, output: str) -> None:
    """Plan as the operator would, and print the plan."""
    try:
        with policy_inputs(target) as inputs:
            show_plan(inputs.preview(), output)
    except BellwetherError as error:
        raise click.ClickException(str(error)) from None


def show_plan(preview: Preview, output: str) -> None:
    """Print a plan."""
    if output != "table":
        print_document(plan_document(preview), output)
        return
    for line in plan_lines(preview):
        click.echo(line)
