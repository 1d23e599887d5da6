"""``bellwether simulate``: what a policy would do in a fault script, second by second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.common_options import OUTPUT

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("script", type=_FILE)
@click.option("--cluster", type=_FILE, help="Description of the cluster: brokers with racks, topics (YAML).")
@click.option("--trace", type=_FILE, help="Take the cluster, and without --policy the settings, from a recorded trace.")
@click.option("--policy", "policy_file", type=_FILE, help="File with the LeadershipPolicy (YAML).")
@click.option(
    "--html", "page", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with a picture to this file."
)
@OUTPUT
def simulate(**options: Any) -> None:
    """Simulate the faults of SCRIPT on a cluster in memory.

    Shows second by second what the operator would do with the policy: verdicts, demotions, moves of leaders and their
    return. It is the operator's own reconcile with a virtual clock; it contacts no cluster and takes seconds for hours.
    At the start every prober reports that all brokers are reachable and all disks are fast.
    """
    from bellwether.cli.policies.simulate import simulate as run

    run(**options)
