"""``bellwether replay``: judge a recorded trace again, under the settings of then or under others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("trace", type=_FILE)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="PATH=VALUE",
    help="Judge with another setting, as in promotion.stabilizationSeconds=10 or mode=Enforce. May be repeated.",
)
@click.option("--policy", "policy_file", type=_FILE, help="Judge with the settings of this LeadershipPolicy (YAML).")
@click.option("--no-plan", is_flag=True, help="Judge only, and plan no moves: faster with very many partitions.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def replay(**options: Any) -> None:
    """Judge a recorded TRACE again, also with other settings.

    Prints what this version would have done when. Without other settings it is compared with what the operator said at
    the time. Nothing is asked of any cluster.
    """
    from bellwether.cli.recording.replay import replay as run

    run(**options)
