"""``bellwether verify-plan``: recheck a load plan from its inputs alone, and say what was checked."""

from __future__ import annotations

from typing import Any

import click


@click.command()
@click.option("--problem", required=True, metavar="URI", help="The problem's folder: STORE/problems/NAME.")
@click.option("--loads", required=True, metavar="URI", help="The folder of the loads that the plan was made from.")
@click.option("--plan", required=True, metavar="URI", help="The plan's folder: STORE/plans/DIGEST.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def verify_plan(**options: Any) -> None:
    """Recheck a load plan from its inputs alone.

    Checks digests, every move, the balance, and the proof of how good it is. Takes nothing from the plan but its moves
    and weights, and shares no code with what made it. Exit status: 0 when all that it claims is so, 1 when it is
    refused, 2 when an input cannot be read.
    """
    from bellwether.cli.rebalance.verify_plan import verify_plan as run

    run(**options)
