"""``bellwether explain``: why a broker is judged as it is, from what, since when, and what would change it."""

from __future__ import annotations

from typing import Any

import click


@click.command()
@click.argument("broker", type=click.IntRange(0))
@click.option("--policy", metavar="NAME", help="The LeadershipPolicy.  [default: the only one of the namespace]")
@click.option("--namespace", "-n", default="default", show_default=True, help="The policy's namespace.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def explain(**options: Any) -> None:
    """Say why BROKER is judged as it is.

    Says what would change that, too.

    Shows which signals were judged, what they saw, what they were compared with, since when, which of them did not
    count and why, and what keeps the broker from leading.
    """
    from bellwether.cli.diagnosis.explain import explain as run

    run(**options)
