"""``bellwether verify-plan``: verify a load plan independently, from its inputs."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.common_options import OUTPUT


@click.command()
@click.option("--problem", required=True, metavar="URI", help="Folder of the problem: STORE/problems/NAME.")
@click.option("--loads", required=True, metavar="URI", help="Folder of the loads that the plan was computed from.")
@click.option("--plan", required=True, metavar="URI", help="Folder of the plan: STORE/plans/DIGEST.")
@OUTPUT
def verify_plan(**options: Any) -> None:
    """Verify a load plan independently, from its inputs.

    Checks the digests, every move, the balance, and the proof of the bound. Uses only the moves and weights of the
    plan, and shares no code with the planner. Exit status: 0 if every figure of the plan is correct, 4 if the plan is
    rejected, 1 if an input cannot be read.
    """
    from bellwether.cli.rebalance.verify_plan import verify_plan as run

    run(**options)
