"""``bellwether replay``: replay a recorded trace with its own or with other settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.common_options import OUTPUT

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("trace", type=_FILE)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="PATH=VALUE",
    help="Override a setting, such as promotion.stabilizationSeconds=10 or mode=Enforce; repeatable.",
)
@click.option("--filename", "-f", "policy_file", type=_FILE, help="Use the settings of this LeadershipPolicy (YAML).")
@click.option("--no-plan", is_flag=True, help="Judge only, and plan no moves; faster with many partitions.")
@OUTPUT
def replay(**options: Any) -> None:
    """Replay a recorded TRACE, optionally with other settings.

    Prints what this version would have done, and when, and compares it with the operator's recorded decisions. Contacts
    no cluster.
    """
    from bellwether.cli.recording.replay import replay as run

    run(**options)
