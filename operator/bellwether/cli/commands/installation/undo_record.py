"""``bellwether undo-record``: look at a policy's undo record, take a copy of it, and put a copy back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

_POLICY = click.option("--policy", required=True, help="LeadershipPolicy whose record it is.")
_NAMESPACE = click.option("--namespace", "-n", default="default", show_default=True, help="Namespace of the policy.")


@click.group("undo-record")
def undo_record() -> None:
    """Show, export or import the undo record of a policy.

    It keeps the replica order that each displaced partition had before Bellwether moved it.
    """


@undo_record.command()
@_POLICY
@_NAMESPACE
def show(**options: Any) -> None:
    """Show who is demoted and how much is displaced.

    Shows how far the last load plan has come, too.
    """
    from bellwether.cli.installation.undo_record import show as run

    run(**options)


@undo_record.command()
@_POLICY
@_NAMESPACE
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="File; default: standard output.")
def export(**options: Any) -> None:
    """Write the record as one JSON document."""
    from bellwether.cli.installation.undo_record import export as run

    run(**options)


@undo_record.command("import")
@_POLICY
@_NAMESPACE
@click.argument("document", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def import_(**options: Any) -> None:
    """Put an exported DOCUMENT in place of an empty record.

    The operator that runs notices within its next turn, and restores or keeps displaced what the document names. A
    document that is refused changes nothing.
    """
    from bellwether.cli.installation.undo_record import import_ as run

    run(**options)
