"""``bellwether diff``: what a change of policy files would do to the live clusters."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.common_options import OUTPUT
from bellwether.cli.commands.kubernetes_options import namespaced


@click.command()
@click.option(
    "--filename",
    "-f",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    help="File or folder with policies, or - for the standard input; repeatable.",
)
@namespaced
@click.option(
    "--for",
    "duration_text",
    metavar="TIME",
    default="10m",
    show_default=True,
    help="Time to look ahead, such as 90s, 10m, 1h.",
)
@click.option(
    "--store", metavar="URI", help="The policy's store of load plans: adds the load of each broker, and limits by load."
)
@OUTPUT
def diff(**options: Any) -> None:
    """Show what policies in files would do to the cluster.

    Run it before the files are applied. For each LeadershipPolicy in them: which settings change, which brokers would
    be demoted and which leaders would move, with the current policy and with the changed one. Overrides of
    BrokerHealths in the files are included.
    It reads metadata, signals, status and undo record with the rights of the user, and runs the operator's reconcile
    on a copy in memory: nothing is written. The signals are assumed to stay as they are. Quarantine, the execution of
    load plans, and Kafka's own leader balancing are not part of the forecast.

    \b
    Exit status:
      0  no other demotions or moves than with the current policies
      1  the files have errors, or a cluster could not be read
      4  other demotions or moves
    """
    from bellwether.cli.policies.diff import diff as run

    run(**options)
