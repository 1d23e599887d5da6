"""``bellwether uninstall``: before Bellwether is taken away, put every order back or export what cannot be put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command()
@click.option("--namespace", "-n", "namespaces", multiple=True, help="Of these namespaces; repeat it. Default: all.")
@click.option(
    "--mode",
    type=click.Choice(["restore", "export"]),
    default="restore",
    show_default=True,
    help="Put orders back and export those of brokers that are still sick; or leave all orders and export them.",
)
@click.option(
    "--timeout",
    "timeout_seconds",
    type=click.IntRange(0, 86400),
    default=120,
    show_default=True,
    help="Seconds that restoring may take; then what is left is exported.",
)
@click.option(
    "--export-to",
    type=click.Path(path_type=Path, allow_dash=True),
    help="A directory for exported undo records, or - for standard output.  [default: a ConfigMap beside the policy]",
)
@click.option("--by-hand", is_flag=True, help="No operator runs any more: export at once and take the finalizers away.")
def uninstall(**options: Any) -> None:
    """Restore or export all orders before Bellwether is removed.

    The operator that runs does the work; what it has not done in time is exported from here. Afterwards neither a
    policy nor a namespace waits for an operator. Policies stay as they are. May be repeated at any time.
    """
    from bellwether.cli.installation.uninstall import uninstall as run

    run(**options)
