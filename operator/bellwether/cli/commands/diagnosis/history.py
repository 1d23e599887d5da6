"""``bellwether history``: list the leader moves and quarantines of a policy from the audit log."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands import completion
from bellwether.cli.commands.common_options import OUTPUT
from bellwether.cli.commands.kubernetes_options import policy_options


@click.command()
@policy_options
@click.option("--since", "after", metavar="TIME", help="Only entries since this time, or of the last 2h, 7d, ...")
@click.option(
    "--broker", type=click.IntRange(0), shell_complete=completion.brokers, help="Only entries that concern this broker."
)
@OUTPUT
def history(**options: Any) -> None:
    """List leader moves and quarantines, with the reason.

    Reads the audit log; the oldest entry comes first. A demotion or promotion is shown with its evidence or the
    override that caused it; moves are shown as a summary with a digest and sample partitions; the start and end of a
    quarantine with the reason. Leaders that Kafka moves by itself, as when a broker stops, and moves by other tools are
    not recorded. The audit log remains when the policy is deleted.
    """
    from bellwether.cli.diagnosis.history import history as run

    run(**options)
