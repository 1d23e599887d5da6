"""``bellwether why``: explain why a broker leads a partition, and what would change that."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.common_options import OUTPUT
from bellwether.cli.commands.kubernetes_options import policy_options


@click.command()
@click.argument("partition", metavar="TOPIC/PARTITION")
@policy_options
@OUTPUT
def why(**options: Any) -> None:
    """Explain why a broker leads TOPIC/PARTITION.

    Shows for each replica whether it may lead and why not, whether the order is the partition's own or was changed, and
    what the operator would do now. Plans as `bellwether plan` does, and moves nothing.
    """
    from bellwether.cli.planning.why import why as run

    run(**options)
