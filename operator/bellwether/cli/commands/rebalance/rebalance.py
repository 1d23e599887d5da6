"""``bellwether rebalance``: ask for a load plan, look at it, approve it; through the operator or without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.kafka_options import kafka_options
from bellwether.core.settings.objective import Statistic
from bellwether.core.settings.rebalance import Rebalance

_DEFAULTS = Rebalance()


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            click.option("--policy", help="LeadershipPolicy to ask; its operator does the work."),
            click.option("--namespace", "-n", default="default", show_default=True, help="Namespace of the policy."),
            click.option("--approve", metavar="DIGEST", help="Apply the plan of that digest instead of making one."),
            click.option("--wait", "wait_seconds", default=1800, show_default=True, help="Seconds to wait (--policy)."),
            click.option("--yes", is_flag=True, help="Approve whatever is proposed, without asking."),
            click.option("--store", metavar="URI", help="Where samples, loads and plans are kept (--bootstrap)."),
            click.option(
                "--record",
                type=click.Path(dir_okay=False, path_type=Path),
                help="Keep the undo record in this file; needed to apply (--bootstrap).",
            ),
            click.option("--dry-run", is_flag=True, help="Make and show the plan, and move nothing (--bootstrap)."),
            click.option(
                "--statistic",
                type=click.Choice([str(s) for s in Statistic]),
                default=str(_DEFAULTS.objective.statistic),
                show_default=True,
                help="Which figure of a partition's history counts (--bootstrap).",
            ),
            click.option("--preferred-rack", multiple=True, help="A rack that is to lead; repeat it (--bootstrap)."),
            click.option("--max-moves", type=click.IntRange(1), help="The most leaders to move (--bootstrap)."),
            click.option(
                "--exclude", multiple=True, metavar="TOPIC", help="A topic that stays; * and ? (--bootstrap)."
            ),
            click.option(
                "--capacity", multiple=True, metavar="ID=N", help="A broker beside others' 100 (--bootstrap)."
            ),
            click.option("--days", default=14, show_default=True, help="Days to look back on (--bootstrap)."),
            click.option(
                "--memory", default="4Gi", show_default=True, help="Memory that planning may use (--bootstrap)."
            ),
            click.option(
                "--wave",
                type=click.IntRange(1),
                default=_DEFAULTS.waves.partitions,
                show_default=True,
                help="Partitions at a time (--bootstrap).",
            ),
            click.option(
                "--pause",
                type=click.IntRange(0),
                default=_DEFAULTS.waves.pause_seconds,
                show_default=True,
                help="Seconds from wave to wave (--bootstrap).",
            ),
            kafka_options,
        )
    ):
        command = option(command)
    return command


@click.command()
@_options
def rebalance(**options: Any) -> None:
    """Spread leaders by measured load.

    Makes a plan, shows how good it is, and applies it once it is approved. With --policy the operator is asked for a
    plan now, or told by --approve to apply the one of that digest. With --bootstrap and --store this command does it
    all itself: it plans in local processes and moves leaders through an undo record in a file (--record), which works
    while the Kubernetes API is away.
    """
    from bellwether.cli.rebalance.rebalance import rebalance as run

    run(**options)
