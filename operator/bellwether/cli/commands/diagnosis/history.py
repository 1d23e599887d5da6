"""``bellwether history``: what Bellwether moved for a policy, when, why and on whose request."""

from __future__ import annotations

from typing import Any

import click


@click.command()
@click.argument("policy")
@click.option("--namespace", "-n", default="default", show_default=True, help="The policy's namespace.")
@click.option(
    "--since", "after", metavar="TIME", help="Only what came after: a time, or how long ago, such as 2h or 7d."
)
@click.option("--broker", type=click.IntRange(0), help="Only what names this broker.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def history(**options: Any) -> None:
    """List what was moved for POLICY, when and why.

    The oldest comes first. A broker that was demoted or promoted stands with the evidence or the person's word that it
    was for; moves are summed up, with a digest and a few names. The trail stays when the policy is deleted.
    """
    from bellwether.cli.diagnosis.history import history as run

    run(**options)
