"""``bellwether rebalance``: request, show, approve and apply a load plan; through the operator or without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.kafka_options import kafka_options
from bellwether.cli.commands.kubernetes_options import policy_options
from bellwether.cli.lazy_group import LazyGroup
from bellwether.core.settings.objective import Statistic
from bellwether.core.settings.rebalance import Rebalance

_DEFAULTS = Rebalance()


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            policy_options,
            click.option("--approve", metavar="DIGEST", help="Apply the plan with this digest (--bootstrap)."),
            click.option("--wait", "wait_seconds", default=1800, show_default=True, help="Seconds to wait."),
            click.option("--yes", is_flag=True, help="Approve the plan without confirmation."),
            click.option("--store", metavar="URI", help="Store of samples, loads and plans (--bootstrap)."),
            click.option(
                "--record",
                type=click.Path(dir_okay=False, path_type=Path),
                help="File of the undo record; required to apply a plan (--bootstrap).",
            ),
            click.option("--dry-run", is_flag=True, help="Compute and show the plan, and move nothing."),
            click.option(
                "--statistic",
                type=click.Choice([str(s) for s in Statistic]),
                default=str(_DEFAULTS.objective.statistic),
                show_default=True,
                help="Statistic of a partition's load history to balance by (--bootstrap).",
            ),
            click.option(
                "--preferred-rack", multiple=True, help="Preferred rack of leaders; repeatable (--bootstrap)."
            ),
            click.option(
                "--max-moves", type=click.IntRange(1), help="Maximum number of leaders to move (--bootstrap)."
            ),
            click.option(
                "--exclude",
                multiple=True,
                metavar="TOPIC",
                help="Topic to exclude; * and ? are wildcards; repeatable (--bootstrap).",
            ),
            click.option(
                "--capacity",
                multiple=True,
                metavar="ID=N",
                help="Relative capacity of a broker, default 100; repeatable (--bootstrap).",
            ),
            click.option("--days", default=14, show_default=True, help="Days of samples to use (--bootstrap)."),
            click.option(
                "--wave-size",
                type=click.IntRange(1),
                default=_DEFAULTS.waves.partitions,
                show_default=True,
                help="Partitions per wave (--bootstrap).",
            ),
            click.option(
                "--wave-pause",
                type=click.IntRange(0),
                default=_DEFAULTS.waves.pause_seconds,
                show_default=True,
                help="Seconds between waves (--bootstrap).",
            ),
            kafka_options,
        )
    ):
        command = option(command)
    return command


# command -> module:object
VERBS = {"show": "bellwether.cli.commands.rebalance.show:show"}


@click.group(cls=LazyGroup, verbs=VERBS, invoke_without_command=True)
@_options
def rebalance(**options: Any) -> None:
    """Balance leaders by measured load.

    Requests a plan from the operator, shows its improvement, and approves it after confirmation; `bellwether approve`
    does so later. With --bootstrap and --store the command does everything itself: it plans in local processes and
    keeps the undo record in a file (--record); this also works while the Kubernetes API is unavailable.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    from bellwether.cli.rebalance.rebalance import rebalance as run

    run(**options)
