"""``bellwether demote`` and ``bellwether promote``: move leadership by hand, through the operator or without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.kafka_options import kafka_options


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            click.argument("broker", type=click.IntRange(min=0)),
            click.option("--policy", help="LeadershipPolicy to ask; its operator does the work."),
            click.option("--namespace", "-n", default="default", show_default=True, help="Namespace of the policy."),
            click.option("--for", "duration", metavar="TIME", help="End the override after 30m, 2h, 1d (--policy)."),
            click.option("--wait", "wait_seconds", default=60, show_default=True, help="Seconds to wait (--policy)."),
            click.option(
                "--record",
                type=click.Path(dir_okay=False, path_type=Path),
                help="Work without an operator and keep the undo record in this file: it is what brings leaders back.",
            ),
            click.option("--reason", default="", help="Why, for whoever comes next."),
            click.option("--dry-run", is_flag=True, help="Show the plan and change nothing (--record)."),
            kafka_options,
        )
    ):
        command = option(command)
    return command


@click.command()
@_options
def demote(**options: Any) -> None:
    """Move leadership away from BROKER; it keeps following.

    With --policy an override is put on its BrokerHealth and the operator moves the leaders. With --record and
    --bootstrap this command does it itself, which works while the Kubernetes API is away.

    By hand (--record) no policy is read: neither its preferred racks nor its limits. Leaders may go to any rack, and
    with a record that was exported from a policy the orders that its racks keep away go back. An operator at work takes
    it for somebody else's doing, and gives a broker its leaders back where the racks want it to lead: suspend its
    policy first (spec.suspend), and promote the broker before it goes on.
    """
    from bellwether.cli.leadership.demote import demote as run

    run(**options)


@click.command()
@_options
def promote(**options: Any) -> None:
    """Give BROKER its leaders back.

    Every replica order returns to what it was before. With --policy an override Promoted is set, which also keeps the
    broker from being demoted by its signals until it is taken away or ends (--for). With --record the orders are
    restored from the file.

    By hand (--record) no policy is read: the leaders return at once and not in waves, and with a record that was
    exported from a policy the orders that its preferred racks keep away go back, too. Suspend an operator's policy
    first (spec.suspend).
    """
    from bellwether.cli.leadership.demote import promote as run

    run(**options)


@click.command()
@click.argument("broker", type=click.IntRange(min=0))
@click.option("--policy", required=True, help="LeadershipPolicy that the broker belongs to.")
@click.option("--namespace", "-n", default="default", show_default=True, help="Namespace of the policy.")
@click.option("--wait", "wait_seconds", default=60, show_default=True, help="Seconds to wait for the effect.")
def release(**options: Any) -> None:
    """Remove the override of BROKER: its signals decide again."""
    from bellwether.cli.leadership.demote import release as run

    run(**options)
