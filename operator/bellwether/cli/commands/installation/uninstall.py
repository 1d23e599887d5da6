"""``bellwether uninstall``: restore or export all replica orders before Bellwether is removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.kubernetes_options import clusterwide


@click.command()
@click.option(
    "--namespace",
    "-n",
    "namespaces",
    multiple=True,
    help="Only policies in this namespace; repeatable.  [default: all]",
)
@clusterwide
@click.option(
    "--mode",
    type=click.Choice(["restore", "export"]),
    default="restore",
    show_default=True,
    help="restore: restore replica orders, and export those of brokers that are still sick. export: change no"
    " order, and export all.",
)
@click.option(
    "--timeout",
    "timeout_seconds",
    type=click.IntRange(0, 86400),
    default=120,
    show_default=True,
    help="Time limit of the operator's part, in seconds; then the command exports what is left.",
)
@click.option(
    "--export-to",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Directory for exported undo records, or - for standard output.  [default: ConfigMaps]",
)
@click.option(
    "--without-operator", is_flag=True, help="Do not wait for an operator: export at once and remove the finalizers."
)
@click.option("--dry-run", is_flag=True, help="Show what each policy has displaced, and change nothing.")
def uninstall(**options: Any) -> None:
    """Restore or export all replica orders before removal.

    Run it before Bellwether is removed. It requests the restoration from the operator, and exports what the operator
    has not finished in time. Afterwards no policy and no undo record has a finalizer of Bellwether. The policies are
    not deleted. The command can be repeated at any time.
    """
    from bellwether.cli.installation.uninstall import uninstall as run

    run(**options)
