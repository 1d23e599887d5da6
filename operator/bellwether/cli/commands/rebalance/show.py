"""``bellwether rebalance show``: show a load plan in the terminal, as a document or as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.kubernetes_options import policy_options


@click.command()
@click.argument("digest", required=False)
@click.option(
    "--store",
    "uri",
    required=True,
    metavar="URI",
    help="Store of samples, loads and plans; that of a policy is STORE/NAMESPACE/NAME.",
)
@policy_options
@click.option("--top", default=20, show_default=True, help="Maximum number of brokers and of moves to show.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml", "html"]),
    default="table",
    show_default=True,
    help="Output format; documents have no moves.",
)
@click.option(
    "--output-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write the document or the page to.  [default: standard output]",
)
def show(**options: Any) -> None:
    """Show a load plan of a store: its moves and its improvement.

    Shows the balance before and after, and the gap to the best possible balance. Without DIGEST it shows the newest
    plan in the store, or with --policy the newest one of this policy.
    """
    from bellwether.cli.rebalance.show import show as run

    run(**options)
