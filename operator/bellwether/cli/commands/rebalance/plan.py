"""``bellwether plan``: show a load plan of a store in the terminal, or as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("digest", required=False)
@click.option("--store", "uri", required=True, metavar="URI", help="Where problems, loads and plans are kept.")
@click.option("--policy", metavar="NAMESPACE/NAME", help="Without DIGEST: the newest plan of this policy.")
@click.option("--html", "page", type=click.Path(dir_okay=False, path_type=Path), help="Write one page to this file.")
@click.option("--top", default=20, show_default=True, help="How many brokers and moves to show in the terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as it is kept, without its moves.")
def plan(**options: Any) -> None:
    """Show a load plan: what it moves, and how good it is.

    Says how much better the balance gets, and how far that is from the best possible. Without DIGEST it is the newest
    plan of the store.
    """
    from bellwether.cli.rebalance.plan import plan as run

    run(**options)
