"""``bellwether rebalance show``: show a load plan in the terminal, as a document or as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bellwether.cli.kubernetes_target import Target, connect, policy_options
from bellwether.cli.output import document_text
from bellwether.core.settings.rebalance import RebalanceWaves
from bellwether.foreign_text import printable
from bellwether.ports.errors import BellwetherError, Terminal
from bellwether_load.page.figures import Unit, change, moment, percent
from bellwether_load.page.plan_page import plan_page
from bellwether_load.page.plan_summary import Story, tell
from bellwether_load.page.plan_text import WAVES, levels, measure, no_proposal, page_unit, summary
from bellwether_load.plan.rebalance_plan import RebalancePlan

if TYPE_CHECKING:
    from rich.table import Table

    from bellwether_load.store.filesystems import Store

_BAR, _TOP = 40, 20
_FULL, _BEFORE, _BOUND = "█", "○", "│"


@click.command()
@click.argument("digest", required=False)
@click.option(
    "--store",
    "uri",
    required=True,
    metavar="URI",
    help="Store of samples, loads and plans; that of a policy is STORE/NAMESPACE/NAME.",
)
@policy_options
@click.option("--top", default=_TOP, show_default=True, help="Maximum number of brokers and of moves to show.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml", "html"]),
    default="table",
    show_default=True,
    help="Output format; documents have no moves.",
)
@click.option(
    "--output-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write the document or the page to.  [default: standard output]",
)
def show(digest: str | None, uri: str, target: Target, top: int, output: str, output_file: Path | None) -> None:
    """Show a load plan of a store: its moves and its improvement.

    Shows the balance before and after, and the gap to the best possible balance. Without DIGEST it shows the newest
    plan in the store, or with --policy the newest one of this policy.
    """
    from bellwether_load.store.filesystems import Store
    from bellwether_load.store.plans import plan_files

    if output_file is not None and output == "table":
        raise click.UsageError("--output-file requires -o json, yaml or html")
    try:
        store = Store.open(uri)
        history = plan_files.plans(store)
        found = plan_files.read_plan(store, digest) if digest else newest(history, str(store), _policy(target))
        if output in ("json", "yaml"):
            from bellwether_load.plan.documents import PLAN

            _write(output_file, document_text(PLAN.to_json(found), output))
            return
        story = _verified(store, tell(found, plan_files.read_moves(store, found.digest), history, str(store)))
        if output == "html":
            _write(output_file, plan_page(story))
            return
    except BellwetherError as error:
        raise click.ClickException(printable(str(error))) from None
    show_story(story, top)


def newest(history: tuple[RebalancePlan, ...], store: str, policy: str | None) -> RebalancePlan:
    """The newest plan, of one policy if given. Terminal if there is none."""
    mine = [p for p in history if policy in (None, p.policy)]
    if not mine:
        others = ", ".join(sorted({p.policy for p in history}))
        missing = f"{store} contains no plan" + (
            f" of policy {policy}; it contains plans of {others}" if others else ""
        )
        raise Terminal(f"{missing}: run `bellwether rebalance`, or use another --store")
    return mine[-1]


def _verified(store: Store, story: Story) -> Story:
    """The summary with the result of verifying the plan from its inputs, if these are still in the store."""
    from rich.console import Console

    from bellwether_load.store.plans.plan_verification import verified_from

    with Console(stderr=True).status("verifying the plan"):
        found = verified_from(store, story.plan)
    if found is None:
        return story
    problem, loads, report = found
    return story.verified(report, problem=problem, loads=loads)


def _policy(target: Target) -> str | None:
    """Namespace and name of the policy that --policy names."""
    if target.policy is None:
        return None
    return f"{target.namespace or connect(target)[1]}/{target.policy}"


def _write(file: Path | None, text: str) -> None:
    if file is None:
        click.echo(text.rstrip("\n"))
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Terminal(f"--output-file {file} cannot be written ({error.strerror}): use another file") from None
    click.echo(f"written to {file}", err=True)


def show_story(story: Story, top: int = _TOP, waves: RebalanceWaves = WAVES) -> None:
    """Print the plan in sentences, its sums, and its first brokers and moves."""
    from rich.console import Console
    from rich.markup import escape

    found, console = story.plan, Console(highlight=False)
    unit, say = page_unit(found), console.print
    evidence, *rest = summary(story, waves)
    missing = no_proposal(found)
    say(escape(evidence), soft_wrap=True)
    named = f"plan {found.digest} of policy {found.policy}, as of {moment(found.made_at)}"
    for text in (named, missing, *rest):
        if text:
            say(escape(printable(text)), soft_wrap=True, style="dim" if missing and text is rest[0] else "")
    say()
    say(_sums(found, unit))
    say()
    say(_brokers(found, unit, top, console.width))
    more = len(found.brokers) - top
    if more > 0:
        say(f"and {more:,} brokers with less load; --top {len(found.brokers)} shows all")
    if story.heaviest:
        say()
        say(_moves(story, top))
        more = found.moved.partitions - min(top, len(story.heaviest))
        if more > 0:
            say(f"and {more:,} lighter moves")


def _sums(found: RebalancePlan, unit: Unit) -> Table:
    table = _table(("", "left"), ("BEFORE", "right"), ("AFTER", "right"), ("", "left"))
    table.add_row(
        "busiest broker",
        unit.said(found.before.max),
        unit.said(found.after.max),
        change(found.before.max, found.after.max),
    )
    table.add_row("mean", unit.said(found.before.mean), unit.said(found.after.mean), "")
    table.add_row("spread", percent(found.before.spread), percent(found.after.spread), "")
    gap = f"gap {percent(found.gap, 2)}"
    table.add_row("bound", "", unit.said(found.certificate.bound), gap)
    for level in levels(found):
        best = f"bound {unit.said(level.bound)}, gap {percent(level.gap, 2)}"
        table.add_row(f"without the {level.settled:,} above", unit.said(level.before), unit.said(level.after), best)
    moved = f"{unit.said(found.moved.load / 100)}; minimum {unit.said(found.moved.lower_bound / 100)}"
    table.add_row("leaders moved", "", f"{found.moved.partitions:,}", moved)
    table.add_row("only reordered", "", f"{found.moved.reordered:,}", "")
    stay = f"not moved: {found.without_load:,} without measured load, {found.held:,} internal, excluded or in motion"
    table.add_row("partitions", "", f"{found.partitions:,}", stay)
    return table


def _brokers(found: RebalancePlan, unit: Unit, top: int, width: int) -> Table:
    from rich.markup import escape
    from rich.text import Text

    title = f"{measure(found, unit)}  ({_FULL} after, {_BEFORE} before, {_BOUND} bound)"
    table = _table(("BROKER", "right"), ("RACK", "left"), ("BEFORE", "right"), ("AFTER", "right"), (title, "left"))
    shown = sorted(found.brokers, key=lambda b: (-max(b.before, b.after), b.id))[:top]
    most = max([found.certificate.bound, *(max(b.before, b.after) for b in shown)], default=0.0) or 1.0
    length = max(10, min(_BAR, width - 50))

    def at(value: float) -> int:
        return min(length - 1, int(value / most * length))

    for broker in sorted(shown, key=lambda b: b.id) if top >= len(found.brokers) else shown:
        cells = [(_FULL, "cyan" if broker.open else "bright_black")] * round(broker.after / most * length)
        cells += [(" ", "")] * (length - len(cells))
        cells[at(found.certificate.bound)] = (_BOUND, "bold")
        cells[at(broker.before)] = (_BEFORE, "yellow")
        bar = Text.assemble(*cells)
        if not broker.open:
            bar.append(" ineligible")
        rack = escape(printable(broker.rack or "–"))
        table.add_row(str(broker.id), rack, unit.bare(broker.before), unit.bare(broker.after), bar)
    return table


def _moves(story: Story, top: int) -> Table:
    from rich.markup import escape

    scale = page_unit(story.plan)
    heads = (("HEAVIEST MOVES", "left"), ("FROM", "right"), ("TO", "right"), (scale.name, "right"))
    table = _table(*heads)
    for move in story.heaviest[:top]:
        start = str(move.from_leader) if move.from_leader >= 0 else "none"
        table.add_row(escape(printable(str(move.name))), start, str(move.to_leader), scale.bare(move.load / 100))
    return table


def _table(*columns: tuple[str, str]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, justify in columns:
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    return table
