"""``bellwether approve``: approve a proposed load plan, and wait until the operator has applied it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click

from bellwether.cli import exit_status
from bellwether.cli.kubernetes_target import Target, connect_policy, policy_options
from bellwether.core.reasons import DESCRIPTIONS, reason_named
from bellwether.foreign_text import printable
from bellwether.ports.errors import BellwetherError
from bellwether.ports.rebalance import RunState

if TYPE_CHECKING:
    from bellwether.api.v1alpha1.status import rebalance_status
    from bellwether.core.model import undo_record
    from bellwether_load.controller.lifecycle import Run


@click.command()
@click.argument("digest")
@policy_options
@click.option("--wait", "wait_seconds", default=1800, show_default=True, help="Seconds to wait; 0: do not wait.")
@click.option("--dry-run", is_flag=True, help="Show the plan and approve nothing.")
def approve(digest: str, target: Target, wait_seconds: int, dry_run: bool) -> None:
    """Approve the load plan with this DIGEST.

    The operator then applies it in waves; `bellwether status` has the digest of the plan that waits for approval.
    Exit status 3 if it is not applied in full, or not in time.
    """
    from bellwether_load.cli import plan_request

    try:
        api, namespace, policy = connect_policy(target)
        if dry_run:
            show_run(plan_request.current_plan(api, namespace, policy, digest))
            return
        run = plan_request.approve(api, namespace, policy, digest, wait_seconds, click.echo)
    except BellwetherError as error:
        raise click.ClickException(str(error)) from None
    if wait_seconds > 0:
        finish(run)


def show_run(run: Run) -> None:
    """Print the plan of a policy's status, and its state."""
    if (plan := run.plan) is not None:
        moves = f"{plan.moves:,} leaders move, {plan.reorders:,} partitions are only reordered"
        for text in (*plan.summary[:1], f"plan {run.digest}: {moves}", *plan.summary[1:]):
            click.echo(printable(text))
    click.echo(printable(f"{run.state}: {run.message}"))


def finish(run: Run) -> None:
    """Print what was left out of an applied plan; exit status ``BLOCKED`` if anything was."""
    show_left({one.reason: one.count for one in run.skipped_by_reason}, run.skipped_sample)
    if run.state is not RunState.DONE or run.skipped:
        raise click.exceptions.Exit(exit_status.BLOCKED)


def show_left(
    left: Mapping[str, int], sample: Iterable[undo_record.SkippedPartition | rebalance_status.SkippedPartition]
) -> None:
    """Print the skipped partitions of a plan by reason, with samples."""
    for reason, count in sorted(left.items()):
        click.echo(f"{count} skipped, {reason}: {DESCRIPTIONS[reason_named(reason)]}")
    for one in sample:
        click.echo(f"  {one.topic}-{one.partition}: {one.reason}")
