"""Summary of a load plan in the terminal: busiest broker before and after, bound, moves.

In: figures from a policy's status or from a plan in the store. Out: lines on a console. Called by ``rebalance``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table

from bellwether.cli.rebalance.verify_plan import plain
from bellwether.core.model.undo_record import SkippedPartition
from bellwether.core.reasons import DESCRIPTIONS, reason_named
from bellwether.core.rebalance.lifecycle import HourlyFigures, RebalanceFigures, RebalanceRun
from bellwether.core.rebalance.rebalance_plan import RebalancePlan
from bellwether.pages.plan_page import unmeasured

_UNITS = ("B/s", "kB/s", "MB/s", "GB/s", "TB/s")


def rate(value: float) -> str:
    """Format bytes/s with three significant digits."""
    for unit in _UNITS:
        if value < 999.5 or unit == _UNITS[-1]:
            return f"{value:.3g} {unit}"
        value /= 1000
    raise AssertionError


def show_figures(figures: RebalanceFigures, digest: str, console: Console) -> None:
    """Print the summary of a plan."""
    gap = "" if figures.gap is None else f"; the plan is {max(0.0, figures.gap):.3%} above it"
    change = f"{figures.after / figures.before - 1 if figures.before else 0.0:.1%}"
    for line in (
        f"plan {digest}: {figures.moves} leaders move, {figures.reorders} partitions are only reordered",
        f"busiest broker   {rate(figures.before)} before, {rate(figures.after)} after ({change})",
        f"best possible    {rate(figures.bound)}{gap}",
        f"above the mean   {figures.spread_before:.1%} before, {figures.spread_after:.1%} after",
        f"load that moves  {rate(figures.load)}; minimum {rate(figures.least_load)}",
    ):
        console.print(line, highlight=False)
    if figures.bound_reason:
        console.print(plain(figures.bound_reason), highlight=False, markup=False)
    free = figures.uncapped
    if free is not None:
        found = (
            f"without maxMoves {rate(free.after)} with {free.moves} moves were found; best possible {rate(free.bound)}"
        )
        console.print(found, highlight=False)
    if figures.forecast is not None:
        before, after = figures.forecast.before, figures.forecast.after
        console.print(
            f"busiest hour     {rate(before.load)} before (broker {before.broker}, {before.moment}),"
            f" {rate(after.load)} after (broker {after.broker}, {after.moment})",
            highlight=False,
        )
        if figures.hourly is not None:
            show_hourly(figures.hourly, console)
        if figures.forecast.limits:
            console.print(figures.forecast.limits, highlight=False)
    if figures.without_consumption:
        console.print(unmeasured(figures.without_consumption), highlight=False)


def show_hourly(proved: HourlyFigures, console: Console) -> None:
    """Print how good a plan is by the hours of the week, and what that costs."""
    gap = "" if proved.gap is None else f"; at most {max(0.0, proved.gap):.2%} above the best possible"
    console.print(f"  its bound      {rate(proved.bound)}{gap}", highlight=False)
    other = proved.statistic_plan
    if other is not None:
        found = f"  instead of     {rate(other.load)} with {other.partitions} moves, for the statistic alone"
        console.print(found, highlight=False)


def show_run(run: RebalanceRun, console: Console) -> None:
    """Print the plan of a policy's status, and its state."""
    if run.figures is not None:
        show_figures(run.figures, run.digest, console)
    console.print(f"{run.state}: {run.message}", highlight=False, markup=False)


def show_brokers(plan: RebalancePlan, console: Console) -> None:
    """Print each broker's load before and after, the busiest first."""
    table = Table("broker", "rack", "capacity", "before", "after", "eligible", box=None, pad_edge=False)
    for broker in sorted(plan.brokers, key=lambda b: (-b.before, b.id)):
        table.add_row(
            str(broker.id),
            broker.rack or "-",
            str(broker.capacity),
            rate(broker.before),
            rate(broker.after),
            "yes" if broker.open else "no",
        )
    console.print(table)


def show_left(left: Mapping[str, int], sample: Iterable[SkippedPartition], console: Console) -> None:
    """Print the skipped partitions of a plan by reason, with samples."""
    for reason, count in sorted(left.items()):
        console.print(f"{count} skipped, {reason}: {DESCRIPTIONS[reason_named(reason)]}", highlight=False)
    for one in sample:
        console.print(f"  {one.topic}-{one.partition}: {one.reason}", highlight=False)
