"""Report of a plan: its sentences, figures, brokers, moves and history, printed in the terminal or as an HTML page.

In: a story. Out: what rich prints, and the same as a page, which says the same as the terminal. Called by
``bellwether rebalance``, with and without ``show``.
"""

from __future__ import annotations

import io
import shlex
from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from bellwether.core.settings.rebalance import RebalanceWaves
from bellwether.foreign_text import printable
from bellwether_load.page.figures import Unit, change, moment, percent
from bellwether_load.page.plan_summary import Story
from bellwether_load.page.plan_text import WAVES, approve_command, levels, measure, no_proposal, page_unit, summary
from bellwether_load.plan.rebalance_plan import RebalancePlan

TOP = 20
"""Brokers and moves that are shown."""
PAGE_WIDTH = 110
_BAR = 40
_FULL, _BEFORE, _BOUND = "█", "○", "│"

# A page that loads nothing says so, should anything in it ever try.
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/><title>Load plan</title><style>
{stylesheet}
body {{ margin: 20px; color: {foreground}; background: {background}; }}
pre {{ font: 14px/1.3 ui-monospace, "SF Mono", "DejaVu Sans Mono", monospace; white-space: pre-wrap; }}
@media (max-width: 980px) {{ pre {{ font-size: 1.45vw; }} }}
</style></head><body><pre>{code}</pre></body></html>
"""


def print_report(story: Story, top: int = TOP, waves: RebalanceWaves = WAVES) -> None:
    """Print the report in the terminal."""
    _print(Console(highlight=False), story, top, waves)


def plan_page(story: Story, top: int = TOP) -> str:
    """The report as an HTML page that needs nothing from elsewhere; the same for the same story."""
    console = Console(record=True, file=io.StringIO(), width=PAGE_WIDTH, highlight=False, color_system="truecolor")
    _print(console, story, top, WAVES)
    return console.export_html(code_format=_PAGE)


def _print(console: Console, story: Story, top: int, waves: RebalanceWaves) -> None:
    """Sentences and commands are single lines, which may be copied."""
    for part in _parts(story, top, waves, console.width):
        console.print(part, soft_wrap=isinstance(part, Text))


def _parts(story: Story, top: int, waves: RebalanceWaves, width: int) -> Iterator[RenderableType]:
    plan, unit = story.plan, page_unit(story.plan)
    evidence, verdict, *others = summary(story, waves)
    thin = no_proposal(plan)
    yield _line(evidence)
    yield _line(f"plan {plan.digest} of policy {plan.policy}, as of {moment(plan.made_at)}")
    if thin:
        yield _line(thin)
    yield _line(verdict, "dim" if thin else "bold")
    if not thin and not story.faults and plan.moved.partitions + plan.moved.reordered:
        yield _line(f"to approve it: {approve_command(story)}")
    yield from map(_line, others)
    yield ""
    yield _sums(plan, unit)
    yield ""
    yield _brokers(plan, unit, top, width)
    if (more := len(plan.brokers) - top) > 0:
        yield _line(f"and {more:,} brokers with less load; --top {len(plan.brokers)} shows all")
    if story.heaviest:
        yield ""
        yield _moves(story, unit, top)
        if (more := plan.moved.partitions - min(top, len(story.heaviest))) > 0:
            yield _line(f"and {more:,} lighter moves")
    if len(story.history) > 1:
        yield ""
        yield _history(story, unit)
    if last := _verification(story):
        yield ""
        yield _line(last)


def _sums(plan: RebalancePlan, unit: Unit) -> Table:
    before, after = plan.before, plan.after
    table = _table(("", "left"), ("BEFORE", "right"), ("AFTER", "right"), ("", "left"))
    table.add_row("busiest broker", unit.said(before.max), unit.said(after.max), change(before.max, after.max))
    table.add_row("mean", unit.said(before.mean), unit.said(after.mean), "")
    table.add_row("spread", percent(before.spread), percent(after.spread), "")
    table.add_row("bound", "", unit.said(plan.certificate.bound), f"gap {percent(plan.gap, 2)}")
    for level in levels(plan):
        best = f"bound {unit.said(level.bound)}, gap {percent(level.gap, 2)}"
        table.add_row(f"without the {level.settled:,} above", unit.said(level.before), unit.said(level.after), best)
    moved = f"{unit.said(plan.moved.load / 100)}; minimum {unit.said(plan.moved.lower_bound / 100)}"
    table.add_row("leaders moved", "", f"{plan.moved.partitions:,}", moved)
    table.add_row("only reordered", "", f"{plan.moved.reordered:,}", "")
    stay = f"not moved: {plan.without_load:,} without measured load, {plan.held:,} internal, excluded or in motion"
    table.add_row("partitions", "", f"{plan.partitions:,}", stay)
    return table


def _brokers(plan: RebalancePlan, unit: Unit, top: int, width: int) -> Table:
    title = f"{measure(plan, unit)}  ({_FULL} after, {_BEFORE} before, {_BOUND} bound)"
    table = _table(("BROKER", "right"), ("RACK", "left"), ("BEFORE", "right"), ("AFTER", "right"), (title, "left"))
    shown = sorted(plan.brokers, key=lambda b: (-max(b.before, b.after), b.id))[:top]
    most = max([plan.certificate.bound, *(max(b.before, b.after) for b in shown)], default=0.0) or 1.0
    length = max(10, min(_BAR, width - 50))

    def at(value: float) -> int:
        return min(length - 1, int(value / most * length))

    for broker in sorted(shown, key=lambda b: b.id) if top >= len(plan.brokers) else shown:
        cells = [(_FULL, "cyan" if broker.open else "bright_black")] * round(broker.after / most * length)
        cells += [(" ", "")] * (length - len(cells))
        cells[at(plan.certificate.bound)] = (_BOUND, "bold")
        cells[at(broker.before)] = (_BEFORE, "yellow")
        bar = Text.assemble(*cells, "" if broker.open else " ineligible")
        loads = unit.bare(broker.before), unit.bare(broker.after)
        table.add_row(str(broker.id), _line(broker.rack or "–"), *loads, bar)
    return table


def _moves(story: Story, unit: Unit, top: int) -> Table:
    table = _table(("HEAVIEST MOVES", "left"), ("FROM", "right"), ("TO", "right"), (unit.name, "right"))
    for move in story.heaviest[:top]:
        start = str(move.from_leader) if move.from_leader >= 0 else "none"
        table.add_row(_line(str(move.name)), start, str(move.to_leader), unit.bare(move.load / 100))
    return table


def _history(story: Story, unit: Unit) -> Table:
    table = _table(
        ("PLANS OF THE POLICY", "left"),
        ("DIGEST", "left"),
        *((name, "right") for name in (f"BEFORE, {unit.name}", "AFTER", "BOUND", "LEADERS MOVED", "HOURS MEASURED")),
    )
    for plan in reversed(story.history):
        loads = map(unit.bare, (plan.before.max, plan.after.max, plan.certificate.bound))
        counts = f"{plan.moved.partitions:,}", str(plan.evidence.hours)
        table.add_row(moment(plan.made_at), plan.digest, *loads, *counts)
    return table


def _verification(story: Story) -> str:
    """How to verify the plan, or that it was not; empty if it was and its inputs are not named."""
    if not story.problem:
        unknown = not story.proof and not story.faults
        return "not verified: its problem or its loads are not in the store any more" if unknown else ""
    store = story.store.rstrip("/")
    folders = "--problem", f"{store}/problems/{story.problem}", "--loads", f"{store}/loads/{story.problem}"
    plan = f"{store}/plans/{story.plan.digest}"
    return f"to verify it: {shlex.join(('bellwether', 'verify-plan', *folders, '--plan', plan))}"


def _line(text: str, style: str = "") -> Text:
    """Text that is no markup, without control characters."""
    return Text(printable(text), style)


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, justify in columns:
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    return table
