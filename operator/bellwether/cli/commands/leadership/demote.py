"""``bellwether demote``, ``promote`` and ``release``: move leadership manually, through the operator or without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands import completion
from bellwether.cli.commands.kafka_options import kafka_options
from bellwether.cli.commands.kubernetes_options import policy_options
from bellwether.gc_tuning import collect_seldom


def _brokers(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the brokers: ids, and racks whose brokers are meant."""
    for option in (
        click.option(
            "--rack",
            "racks",
            multiple=True,
            shell_complete=completion.racks,
            help="All brokers of this rack; repeatable.",
        ),
        click.argument(
            "brokers",
            metavar="BROKER...",
            nargs=-1,
            type=click.IntRange(min=0),
            shell_complete=completion.brokers,
        ),
    ):
        command = option(command)
    return command


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            _brokers,
            policy_options,
            click.option(
                "--for",
                "duration",
                metavar="TIME",
                help="End the override after 30m, 2h, 1d.  [default: no end]",
            ),
            click.option(
                "--wait",
                "wait_seconds",
                default=60,
                show_default=True,
                help="Seconds to wait for the operator; 0: do not wait.",
            ),
            click.option(
                "--record",
                type=click.Path(dir_okay=False, path_type=Path),
                help="Work without the operator; keep the undo record in this file, which promote needs (--bootstrap).",
            ),
            click.option("--reason", default="", help="Reason, recorded in status and in the audit log."),
            click.option("--dry-run", is_flag=True, help="Show what would move, and change nothing."),
            kafka_options,
        )
    ):
        command = option(command)
    return command


def _require_brokers(options: dict[str, Any]) -> None:
    if not (options["brokers"] or options["racks"]):
        raise click.UsageError("name at least one broker by its id, or a rack with --rack")


def _through_operator(options: dict[str, Any]) -> bool:
    """Whether the operator does it; --record is then dropped. Raises UsageError for --policy and --record."""
    _require_brokers(options)
    if options["record"] is not None:
        if options["target"].policy is not None:
            raise click.UsageError(
                "set either --policy NAME (through the operator) or --record FILE (without the operator)"
            )
        return False
    del options["record"]
    return True


@click.command()
@_options
def demote(**options: Any) -> None:
    """Move leadership away from brokers; they keep following.

    Sets an override on each BrokerHealth, and the operator moves the leaders. With --record and --bootstrap the
    command moves the leaders itself; this also works while the Kubernetes API is unavailable.

    Without the operator (--record) no policy is read: its preferred racks and its limits do not apply. Leaders may
    move to any rack, and with a record that was exported from a policy, orders that were changed for its preferred
    racks are restored. A running operator treats the change as a foreign order and may move leaders back: suspend its
    policy first (spec.suspend), and promote the brokers before you resume it.
    """
    if _through_operator(options):
        from bellwether.cli.leadership import demote as through_operator

        through_operator.demote(**options)
    else:
        collect_seldom()  # what imports create stays; looking for cycles in it takes 50 of 350 ms
        from bellwether.cli.offline import manual_demotion

        manual_demotion.demote(**options)


@click.command()
@_options
def promote(**options: Any) -> None:
    """Move leadership back to brokers.

    Restores every replica order (the baseline). Sets an override Promoted, which also
    prevents a demotion by signals until it is released or ends (--for). With --record the baselines come from the file.

    Without the operator (--record) no policy is read: the leaders return at once and not in waves, and with a record
    that was exported from a policy, orders that were changed for its preferred racks are restored, too. Suspend the
    policy of a running operator first (spec.suspend).
    """
    if _through_operator(options):
        from bellwether.cli.leadership import demote as through_operator

        through_operator.promote(**options)
    else:
        collect_seldom()  # what imports create stays; looking for cycles in it takes 50 of 350 ms
        from bellwether.cli.offline import manual_demotion

        manual_demotion.promote(**options)


@click.command()
@_brokers
@policy_options
@click.option("--wait", "wait_seconds", default=60, show_default=True, help="Seconds to wait; 0: do not wait.")
@click.option("--dry-run", is_flag=True, help="Show what would move, and change nothing.")
def release(**options: Any) -> None:
    """Remove the override of brokers.

    Afterwards the signals decide again whether they are demoted.
    """
    _require_brokers(options)
    from bellwether.cli.leadership.demote import release as run

    run(**options)
