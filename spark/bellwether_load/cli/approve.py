"""``bellwether approve``: approve a proposed load plan, and wait until the operator has applied it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bellwether.cli import exit_status
from bellwether.cli.kubernetes_target import Target, connect_policy, policy_options
from bellwether.ports.errors import BellwetherError
from bellwether.ports.rebalance import RunState

if TYPE_CHECKING:
    from rich.console import Console

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
    from rich.console import Console

    from bellwether_load.cli import plan_request
    from bellwether_load.cli.plan_figures import show_run

    console = Console(soft_wrap=True)
    try:
        api, namespace, policy = connect_policy(target)
        if dry_run:
            show_run(plan_request.current_plan(api, namespace, policy, digest), console)
            return
        run = plan_request.approve(api, namespace, policy, digest, wait_seconds, click.echo)
    except BellwetherError as error:
        raise click.ClickException(str(error)) from None
    if wait_seconds > 0:
        finish(run, console)


def finish(run: Run, console: Console) -> None:
    """Print what was left out of an applied plan; exit status ``BLOCKED`` if anything was."""
    from bellwether_load.cli.plan_figures import show_left

    show_left({one.reason: one.count for one in run.skipped_by_reason}, run.skipped_sample, console)
    if run.state is not RunState.DONE or run.skipped:
        raise click.exceptions.Exit(exit_status.BLOCKED)
