"""``bellwether plan``: show a load plan in the terminal or as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("digest", required=False)
@click.option(
    "--store",
    "uri",
    required=True,
    metavar="URI",
    help="Store of samples, loads and plans; that of a policy is STORE/NAMESPACE/NAME.",
)
@click.option("--policy", metavar="NAMESPACE/NAME", help="Without DIGEST: show the newest plan of this policy.")
@click.option(
    "--html", "page", type=click.Path(dir_okay=False, path_type=Path), help="Write an HTML page to this file."
)
@click.option("--top", default=20, show_default=True, help="Maximum number of brokers and of moves to show.")
@click.option("--json", "as_json", is_flag=True, help="Print the stored plan as JSON, without its moves.")
def plan(**options: Any) -> None:
    """Show a load plan: its moves and its improvement.

    Shows the balance before and after, and the gap to the best possible balance. Without DIGEST it shows the newest
    plan in the store.
    """
    from bellwether.cli.rebalance.plan import plan as run

    run(**options)
