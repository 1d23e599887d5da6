"""``bellwether approve``: approve a proposed load plan."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.kubernetes_options import policy_options


@click.command()
@click.argument("digest")
@policy_options
@click.option("--wait", "wait_seconds", default=1800, show_default=True, help="Seconds to wait; 0: do not wait.")
@click.option("--dry-run", is_flag=True, help="Show the plan and approve nothing.")
def approve(**options: Any) -> None:
    """Approve the load plan with this DIGEST.

    The operator then applies it in waves; `bellwether status` has the digest of the plan that waits for approval.
    Exit status 3 if it is not applied in full, or not in time.
    """
    from bellwether.cli.rebalance.approve import approve as run

    run(**options)
