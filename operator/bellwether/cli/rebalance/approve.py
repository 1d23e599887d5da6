"""``bellwether approve``: approve a proposed load plan, and wait until the operator has applied it."""

from __future__ import annotations

import click
from rich.console import Console

from bellwether.cli.commands import exit_status
from bellwether.cli.commands.kubernetes_options import Target
from bellwether.cli.kubernetes_target import connect_policy
from bellwether.cli.rebalance import plan_request
from bellwether.cli.rebalance.plan_figures import show_left, show_run
from bellwether.core.rebalance.lifecycle import RebalanceRun, RunState
from bellwether.ports.errors import BellwetherError


def approve(digest: str, target: Target, wait_seconds: int, dry_run: bool) -> None:
    """Approve a plan."""
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


def finish(run: RebalanceRun, console: Console) -> None:
    """Print what was left out of an applied plan; exit status ``BLOCKED`` if anything was."""
    show_left(run.left, run.sample, console)
    if run.state is not RunState.DONE or run.left:
        raise click.exceptions.Exit(exit_status.BLOCKED)
