"""``bellwether undo-record``: show, export or import the undo record of a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.common_options import OUTPUT
from bellwether.cli.commands.kubernetes_options import policy_options


@click.group("undo-record")
def undo_record() -> None:
    """Show, export or import the undo record of a policy.

    The undo record stores the replica order that each partition had before Bellwether changed it (the baseline).
    """


@undo_record.command()
@policy_options
@OUTPUT
def show(**options: Any) -> None:
    """Show demoted brokers and the number of displaced partitions.

    Also shows the progress of the last load plan.
    """
    from bellwether.cli.installation.undo_record import show as run

    run(**options)


@undo_record.command()
@policy_options
@click.option(
    "--output-file", type=click.Path(dir_okay=False, path_type=Path), help="File to write.  [default: standard output]"
)
def export(**options: Any) -> None:
    """Export the undo record as one JSON document."""
    from bellwether.cli.installation.undo_record import export as run

    run(**options)


@undo_record.command("import")
@policy_options
@click.argument("document", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def import_(**options: Any) -> None:
    """Import an exported DOCUMENT into an empty undo record.

    The operator reads it in its next reconcile, and then restores the partitions in it or keeps them displaced. A
    rejected document changes nothing.
    """
    from bellwether.cli.installation.undo_record import import_ as run

    run(**options)
