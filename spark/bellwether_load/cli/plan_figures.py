"""Summary of a load plan in the terminal: busiest broker before and after, bound, moves.

In: figures from a policy's status or from a plan in the store. Out: lines on a console. Called by ``rebalance``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table

from bellwether.api.v1alpha1.status import rebalance_status
from bellwether.api.v1alpha1.status.rebalance_status import Forecast, PlanFigures
from bellwether.core.model import undo_record
from bellwether.core.reasons import DESCRIPTIONS, reason_named
from bellwether.foreign_text import printable
from bellwether_load.controller.lifecycle import Run
from bellwether_load.plan.rebalance_plan import RebalancePlan

_UNITS = ("B/s", "kB/s", "MB/s", "GB/s", "TB/s")


def rate(value: float) -> str:
    """Format bytes/s with three significant digits."""
    for unit in _UNITS:
        if value < 999.5 or unit == _UNITS[-1]:
            return f"{value:.3g} {unit}"
        value /= 1000
    raise AssertionError


def show_figures(figures: PlanFigures, digest: str, console: Console) -> None:
    """Print the summary of a plan."""
    gap = "" if figures.gap_percent is None else f"; the plan is {figures.gap_percent}% above it"
    before, after = figures.load_before, figures.load_after
    for line in (
        printable(figures.evidence),
        f"plan {digest}: {figures.moves} leaders move, {figures.reorders} partitions are only reordered",
        f"busiest broker   {rate(before)} before, {rate(after)} after ({after / before - 1 if before else 0.0:.1%})",
        f"best possible    {rate(figures.bound)}{gap}",
        f"above the mean   {figures.spread_percent_before}% before, {figures.spread_percent_after}% after",
        f"load that moves  {rate(figures.moved_bytes_per_second)};"
        f" minimum {rate(figures.least_moved_bytes_per_second)}",
    ):
        console.print(line, highlight=False)
    if figures.losses:
        console.print(printable(figures.losses), highlight=False, markup=False)
    if figures.bound_reason:
        console.print(printable(figures.bound_reason), highlight=False, markup=False)
    free = figures.without_cap
    if free is not None:
        found = f"claimed without maxMoves {rate(free.load_after)} with {free.moves} moves"
        console.print(f"{found}; best possible {rate(free.bound)}", highlight=False)
    if figures.forecast is not None:
        _show_forecast(figures.forecast, console)


def _show_forecast(week: Forecast, console: Console) -> None:
    """Print the busiest hour of the week, how good the plan is by it, and what that costs."""
    before, after, other = week.before, week.after, week.statistic_plan
    console.print(
        f"busiest hour     {rate(before.load)} before (broker {before.broker}, {before.hour}),"
        f" {rate(after.load)} after (broker {after.broker}, {after.hour})",
        highlight=False,
    )
    if (requests := week.requests) is not None:
        first, then = requests.before, requests.after
        console.print(
            f"by requests      {first.per_second:,}/s before (broker {first.broker}, {first.hour}),"
            f" {then.per_second:,}/s after (broker {then.broker}, {then.hour}); each counts as"
            f" {rate(requests.request_bytes)}",
            highlight=False,
        )
        if requests.not_measured:
            console.print(f"  not measured   requests of {requests.not_measured:,} partitions: they count as 0")
    if week.bound is not None:
        above = "" if week.gap_percent is None else f"; at most {float(week.gap_percent):.2f}% above the best possible"
        console.print(f"  its bound      {rate(week.bound)}{above}", highlight=False)
    if other is not None:
        found = f"  instead of     {rate(other.load)} with {other.moves} moves, claimed for the statistic alone"
        console.print(found, highlight=False)


def show_run(run: Run, console: Console) -> None:
    """Print the plan of a policy's status, and its state."""
    if run.plan is not None:
        show_figures(run.plan, run.digest, console)
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


def show_left(
    left: Mapping[str, int],
    sample: Iterable[undo_record.SkippedPartition | rebalance_status.SkippedPartition],
    console: Console,
) -> None:
    """Print the skipped partitions of a plan by reason, with samples."""
    for reason, count in sorted(left.items()):
        console.print(f"{count} skipped, {reason}: {DESCRIPTIONS[reason_named(reason)]}", highlight=False)
    for one in sample:
        console.print(f"  {one.topic}-{one.partition}: {one.reason}", highlight=False)
