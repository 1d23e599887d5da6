"""``bellwether drain``: move leadership away from a broker before a restart, and back afterwards."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands import completion
from bellwether.cli.commands.kubernetes_options import policy_options


@click.command()
@click.argument("broker", type=click.IntRange(min=0), shell_complete=completion.brokers)
@policy_options
@click.option("--end", is_flag=True, help="End the maintenance; the broker leads again once it is healthy.")
@click.option(
    "--for",
    "duration",
    metavar="TIME",
    default="30m",
    show_default=True,
    help="End the maintenance after 30m, 2h, 1d at the latest.",
)
@click.option(
    "--wait", is_flag=True, help="Wait until it is safe to stop the broker; with --end: until it leads again."
)
@click.option("--timeout", metavar="TIME", default="5m", show_default=True, help="Time limit of --wait: 30s, 5m, 1h.")
@click.option(
    "--accept-unavailable-writes",
    is_flag=True,
    help="Also report the broker as drained if Kafka would refuse acks=all writes without it (min.insync.replicas).",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show what would move and whether it would be safe to stop the broker; change nothing.",
)
@click.option("--reason", default="", help="Reason, recorded in status and in the audit log.")
def drain(**options: Any) -> None:
    """Move leadership away from BROKER before a restart.

    Starts a maintenance: until it ends (with --end, or after --for) the broker's signals demote no broker. Exit status
    3, with the reason, if the operator blocks the drain, because partitions would have no leader or refuse acks=all
    writes without the broker, or if it is not finished in time.
    `kubectl wait --for=condition=Drained bh/POLICY-BROKER` waits for the same.
    """
    from bellwether.cli.leadership.drain import drain as run

    run(**options)
