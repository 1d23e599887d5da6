"""HTML page of one rebalance plan: how good it is, what it rests on, how to approve it, what it moves and costs.

In: a story. Out: HTML, the same for the same story. Called by ``bellwether rebalance show -o html``.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from bellwether_load.page.charts import bar, keys
from bellwether_load.page.figures import Unit, change, moment, percent
from bellwether_load.page.markup import STYLE, Child, Markup, join, section, table, tag
from bellwether_load.page.plan_summary import Story
from bellwether_load.page.plan_text import (
    approve_command,
    bound_text,
    busiest_hour,
    cap_text,
    faults_text,
    levels,
    measure,
    no_proposal,
    page_unit,
    pinned_text,
    unmeasured_text,
    verdict,
    waves_text,
)
from bellwether_load.plan.forecast import WEEK
from bellwether_load.plan.problem import NO_BROKER
from bellwether_load.plan.rebalance_plan import BY_HAND, BrokerLoad, RebalancePlan

MOST_ROWS = 48
"""Of brokers: of more than these the busiest ones are shown, and all are in a table that is folded."""

PROVING = "\N{BLACK DIAMOND} "
"""Marks a broker that proves the bound."""

# A page that loads nothing says so, should anything in it ever try.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def plan_page(story: Story) -> str:
    """The page."""
    plan, unit = story.plan, page_unit(story.plan)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"Load plan {plan.digest} of {plan.policy}"),
        tag("style", Markup(STYLE)),
    )
    sections = (
        _opening(story, unit),
        _losses(plan, unit),
        _brokers(story, unit),
        _bound(story, unit),
        _cap(plan, unit),
        _levels(plan, unit),
        _racks(story, unit),
        _moves(story, unit),
        _history(story, unit),
        _verifying(story),
        _settings(plan, unit),
    )
    page = tag("html", head, tag("body", tag("main", *sections)), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _opening(story: Story, unit: Unit) -> Markup:
    plan, moved = story.plan, story.plan.moved
    thin = no_proposal(plan)
    what = "By hand, in waves" if plan.policy == BY_HAND else "If the rebalance requires approval"
    approve = section(
        "Approve",
        tag("p", f"{what}:"),
        tag("pre", approve_command(story)),
        tag("p", waves_text(plan)),
        tag("p", pinned_text(plan), class_="soft"),
    )
    change_of_most = f"{unit.bare(plan.before.max)} → {unit.said(plan.after.max)}"
    few = " with so few moves" * (plan.certificate.move_weight > 0)
    limit = f"bound {unit.said(plan.certificate.bound)}: no plan{few} is lower"
    tiles = (
        _tile("busiest broker", change_of_most, change(plan.before.max, plan.after.max), "tile main"),
        _tile("gap to the bound", percent(plan.gap, 2), limit),
        _tile(
            "leaders that move",
            f"{moved.partitions:,} of {plan.partitions:,}",
            f"{unit.said(moved.load / 100)}; at least {unit.said(moved.lower_bound / 100)} must, for this maximum",
        ),
    )
    more = busiest_hour(plan, unit), unmeasured_text(story)
    return join(
        tag("h1", "Load plan ", tag("code", plan.digest)),
        tag("p", f"{plan.policy}, Kafka cluster ", tag("code", plan.cluster_id), class_="soft"),
        tag("p", f"As of {moment(plan.made_at)}: {plan.evidence_line}", class_="lead"),
        *(tag("p", tag("b", text), class_="lead") for text in (faults_text(story), thin) if text),
        tag("p", verdict(plan, unit), class_="soft" if thin else "lead"),
        approve if not story.faults and not thin else None,
        tag("div", *tiles, class_="tiles soft" if thin else "tiles"),
        *(tag("p", text, class_="lead") for text in more if text),
    )


def _tile(name: str, figure: str, note: str, kind: str = "tile") -> Markup:
    return tag("div", tag("span", name), tag("b", figure), tag("span", note), class_=kind)


def _losses(plan: RebalancePlan, unit: Unit) -> Markup | None:
    if not plan.losses_line or plan.losses is None:
        return None
    rows = []
    for of in plan.losses.kinds:
        loads = map(unit.bare, (of.before.load, of.after.load, of.bound))
        times = f"{of.after.load / plan.after.max:.2f}"
        rows.append((f"{of.kind} {of.after.lost}", str(of.after.broker), *loads, times))
    heads = ("lost", "rack"), ("busiest then", "n"), (f"before, {unit.name}", "n"), ("after", "n"), ("bound", "n")
    found = table((*heads, ("times the busiest", "n")), rows)
    note = "What the busiest of the others carries after the worst loss; before the plan, another loss can be worst."
    return section("If a broker or a rack is lost", tag("p", note, class_="soft"), found)


def _brokers(story: Story, unit: Unit) -> Markup:
    plan = story.plan
    opened = [b for b in plan.brokers if b.open]
    proving = set(story.proof.brokers if story.proof is not None else plan.certificate.proving)
    if len(proving) == len(opened):
        proving = set()
    most = max([plan.certificate.bound, *(max(b.before, b.after) for b in plan.brokers)], default=0.0)
    columns = (
        ("broker", "n"),
        ("rack", "rack"),
        ("capacity", "n wide"),
        (f"before, {unit.name}", "n"),
        (f"after, {unit.name}", "n"),
        ("", "bar"),
        ("leaders gone", "n wide"),
        ("come", "n wide"),
    )

    def row(b: BrokerLoad) -> Sequence[Child]:
        drawn = bar(b.before, b.after, plan.certificate.bound, most, counts=b.open)
        loads = unit.bare(b.before), unit.bare(b.after)
        gone, came = (f"{counts.get(b.id, 0):,}" for counts in (story.left, story.came))
        return f"{PROVING * (b.id in proving)}{b.id}", b.rack or "–", f"{b.capacity:,}", *loads, drawn, gone, came

    shut = len(plan.brokers) - len(opened)
    note = f"{len(opened):,} open brokers" + (f", {shut:,} closed" if shut else "")
    marks = f". {PROVING}proves the bound." if proving else "."
    said = tag("p", f"{note}; {measure(plan, unit)}{marks}", class_="soft")
    key = keys("after-bar", "before-mark", "bound", *(["shut"] if shut else []))
    rows = table(columns, map(row, plan.brokers))
    if len(plan.brokers) <= MOST_ROWS:
        return section("Load per broker", said, key, rows, long=True)
    busiest = sorted(plan.brokers, key=lambda b: (-max(b.before, b.after), b.id))[:MOST_ROWS]
    folded = tag("details", tag("summary", f"All {len(plan.brokers):,} brokers"), rows)
    return section("Load per broker", said, key, table(columns, map(row, busiest)), folded, long=True)


def _bound(story: Story, unit: Unit) -> Markup:
    proof = story.proof
    if proof is None:
        note = "The partitions cannot be named: the problem or the loads of this plan are not in the store."
        return section("Why not lower", tag("p", bound_text(story)), tag("p", note, class_="soft"))
    heads = ("partition", "name"), ("broker", ""), (f"load, {unit.name}", "n"), ("of the bound", "n"), ("why", "")
    rows = (
        (one.name, ", ".join(map(str, one.brokers)), unit.bare(one.load / 100), percent(one.share), one.why)
        for one in proof.partitions
    )
    caption = "The heaviest partitions that these brokers keep"
    found = table(heads, rows, caption=caption) if proof.partitions else None
    limit = unit.said(story.plan.certificate.bound)
    lead = tag("p", f"No plan brings the busiest broker below {limit}. {proof.text}")
    return section("Why not lower", lead, found)


def _cap(plan: RebalancePlan, unit: Unit) -> Markup | None:
    text = cap_text(plan, unit)
    return None if text is None else section("What the cap costs", tag("p", text))


def _levels(plan: RebalancePlan, unit: Unit) -> Markup | None:
    if not plan.certificate.levels:
        return None
    heads = ("brokers left out", "n"), (f"before, {unit.name}", "n"), ("after", "n"), ("bound", "n"), ("gap", "n")
    rows = (
        (f"{one.settled:,}", *map(unit.bare, (one.before, one.after, one.bound)), percent(one.gap, 2))
        for one in levels(plan)
    )
    note = (
        "The busiest of the other brokers when the most loaded ones are left out. As long as those are as low as"
        " their own bound or as in this plan, no plan brings it below this bound."
    )
    return section("Below the busiest", tag("p", note, class_="soft"), table(heads, rows))


def _racks(story: Story, unit: Unit) -> Markup | None:
    racks: dict[str, list[BrokerLoad]] = {}
    for broker in story.plan.brokers:
        if broker.open:
            racks.setdefault(broker.rack or "no rack", []).append(broker)
    if len(racks) < 2:
        return None
    bound = story.plan.certificate.bound
    tops = {rack: (max(b.before for b in of), max(b.after for b in of)) for rack, of in racks.items()}
    most = max([bound, *(max(pair) for pair in tops.values())])
    heads = ("rack", "rack"), ("open", "n wide"), (f"max before, {unit.name}", "n"), ("after", "n"), ("", "bar")
    rows = (
        (rack, f"{len(racks[rack]):,}", *map(unit.bare, tops[rack]), bar(*tops[rack], bound, most))
        for rack in sorted(racks)
    )
    return section("Per rack", table(heads, rows))


def _moves(story: Story, unit: Unit) -> Markup:
    plan = story.plan
    if not story.heaviest:
        return section("Heaviest moves", tag("p", "No leader moves."))
    racks = {b.id: b.rack for b in plan.brokers}

    def place(broker: int) -> str:
        if broker == NO_BROKER:
            return "none"
        rack = racks.get(broker)
        return f"{broker} ({rack})" if rack else str(broker)

    heads = (("partition", "name"), ("from", ""), ("to", ""), (f"load, {unit.name}", "n"), ("of all", "n wide"))
    rows = (
        (
            str(move.name),
            place(move.from_leader),
            place(move.to_leader),
            unit.bare(move.load / 100),
            percent(move.load / plan.moved.load if plan.moved.load else 0.0),
        )
        for move in story.heaviest
    )
    more = plan.moved.partitions - len(story.heaviest)
    where = f"{story.store.rstrip('/')}/plans/{plan.digest}/moves/"
    rest = tag("p", f"and {more:,} lighter ones: ", tag("code", where), class_="soft") if more > 0 else None
    return section("Heaviest moves", table(heads, rows), rest, long=True)


def _history(story: Story, unit: Unit) -> Markup:
    plans, this = story.history, story.plan.digest
    if len(plans) < 2:
        return section("History", tag("p", "This is the policy's only plan in the store.", class_="soft"))
    heads = (
        ("made for, UTC", ""),
        ("digest", ""),
        (f"before, {unit.name}", "n"),
        ("after", "n"),
        ("bound", "n"),
        ("gap", "n"),
        ("leaders moved", "n wide"),
        ("hours, bytes measured", "n wide"),
        ("", "bar"),
    )
    most = max(max(plan.before.max, plan.after.max, plan.certificate.bound) for plan in plans)
    rows = (
        (
            moment(plan.made_at).removesuffix(" UTC"),
            join(tag("code", plan.digest), " (this plan)" if plan.digest == this else None),
            *map(unit.bare, of := (plan.before.max, plan.after.max, plan.certificate.bound)),
            percent(plan.gap),
            f"{plan.moved.partitions:,}",
            f"{plan.evidence.hours}, {percent(plan.evidence.share)}",
            bar(*of, most),
        )
        for plan in reversed(plans)
    )
    place = next((at for at, plan in enumerate(reversed(plans)) if plan.digest == this), -1)
    return section("History", table(heads, rows, this=place), long=True)


def _verifying(story: Story) -> Markup:
    plan = story.plan
    digests = tag("p", "digest of the problem ", tag("code", plan.problem_digest), class_="soft")
    if not story.problem:
        gone = (
            "The problem or the loads of this plan are not in the store any more (the last five of a policy are kept)"
        )
        return section("Verify", tag("p", f"{gone}, so it cannot be verified."), digests)
    store = story.store.rstrip("/") or "STORE"
    folders = ("--problem", f"{store}/problems/{story.problem}", "--loads", f"{store}/loads/{story.loads}")
    command = ("bellwether", "verify-plan", *folders, "--plan", f"{store}/plans/{plan.digest}")
    lead = "To verify the figures on this page from the files, with code that is independent of the planner:"
    return section("Verify", tag("p", lead), tag("pre", shlex.join(command)), digests)


def _settings(plan: RebalancePlan, unit: Unit) -> Markup:
    asked, evidence = plan.objective, plan.evidence
    cap = "none" if asked.max_moves is None else f"{asked.max_moves:,} leaders, plus mandatory moves"
    rows: tuple[tuple[str, str], ...] = (
        ("measured", evidence.period()),
        ("hours of the week measured", f"{evidence.hours} of {WEEK}"),
        ("partitions with a measured load", f"{plan.partitions - plan.without_load:,} of {plan.partitions:,}"),
        ("bytes in them", percent(evidence.share)),
        ("without measured consumption (counts as 0)", f"{plan.without_consumption:,}"),
        ("must stay: internal, excluded or being moved", f"{plan.held:,}"),
        ("a partition's load is its", str(asked.statistic)),
        ("bytes to consumers", "count" if asked.consumption else "do not count"),
        ("a request per second", unit.said(asked.request_bytes) if asked.request_bytes else "does not count"),
        ("preferred racks", ", ".join(asked.preferred_racks) or "none"),
        ("cap on moves", cap),
        ("busiest broker over the mean", f"{percent(plan.before.spread)} → {percent(plan.after.spread)}"),
    )
    return section("Evidence and settings", table((("", ""), ("", "n")), rows))
