"""HTML page of one rebalance plan: how good it is, what it moves, how to approve it and how to check it.

In: a story. Out: HTML, the same for the same story. Called by ``bellwether rebalance show -o html``.
"""

from __future__ import annotations

import shlex

from bellwether.core.settings.objective import WHOLE
from bellwether_load.page.broker_charts import broker_chart
from bellwether_load.page.figures import Unit, change, percent
from bellwether_load.page.markup import STYLE, Child, Markup, join, tag
from bellwether_load.page.plan_bound import bound_section, cap_section, level_table
from bellwether_load.page.plan_history import history_charts, history_table, moment
from bellwether_load.page.plan_summary import Story
from bellwether_load.page.rack_views import by_rack, flow_table, rack_chart
from bellwether_load.plan.forecast import hours_unknown
from bellwether_load.plan.problem import NO_BROKER
from bellwether_load.plan.rebalance_plan import RebalancePlan

MOST_TOPICS = 5
"""Topics without measured consumption that are named."""

ANNOTATION = "bellwether.dev/approve-plan"

# A page that loads nothing says so, should anything in it ever try.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def plan_page(story: Story) -> str:
    """The page."""
    plan = story.plan
    unit = Unit.of(max(plan.before.max, plan.after.max, plan.certificate.bound))
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
        _brokers(story),
        bound_section(story, unit),
        cap_section(plan, unit),
        level_table(plan),
        _racks(story),
        _moves(story),
        _history(story, unit),
        _deciding(story),
        _asked(plan),
        _all_brokers(story),
    )
    page = tag("html", head, tag("body", tag("main", *sections)), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def measure(plan: RebalancePlan, unit: Unit) -> str:
    """What a relative load is measured in."""
    if any(b.capacity != WHOLE for b in plan.brokers):
        return f"load, {unit.name} per {WHOLE} units of capacity"
    return f"load, {unit.name}"


def verdict(plan: RebalancePlan, unit: Unit) -> str:
    """The plan in two sentences."""
    proof, most = plan.certificate, unit.said(plan.after.max)
    if not plan.moved.partitions and not plan.moved.reordered:
        did = f"Nothing moves: the busiest broker stays at {most}"
    else:
        less = change(plan.before.max, plan.after.max)
        did = f"The busiest broker goes from {unit.said(plan.before.max)} to {most} ({less})"
    if proof.gap is None:
        return f"{did}. There is no proof of how much lower it could be."
    few = f" that changes {plan.moved.partitions:,} leaders or fewer" if proof.move_weight else ""
    bound = f"No plan{few} can bring it below {unit.said(proof.bound)}"
    if proof.gap <= 0:
        return f"{did}. {bound}, so this plan is optimal."
    near = "less than 0.01 %" if proof.gap < 0.0001 else f"at most {percent(proof.gap, 2)}"
    return f"{did}. {bound}, so this plan is {near} above the optimum."


def busiest_hour(plan: RebalancePlan, unit: Unit) -> str | None:
    """The busiest broker-hours before and after, in a sentence, and what is not known; None without a forecast."""
    found = plan.forecast
    if found is None:
        return None
    before, after = found.before, found.after
    said = (
        f"By the hours of the week, the busiest broker carries {unit.said(before.load)} before (broker {before.broker},"
        f" {before.moment}) and {unit.said(after.load)} after (broker {after.broker}, {after.moment})."
    )
    return f"{said} {hourly_proof(plan, unit)} {hours_unknown(found.hours)}".replace("  ", " ").strip()


def hourly_proof(plan: RebalancePlan, unit: Unit) -> str:
    """How far the busiest hour is above the best possible, and what that costs; empty where nothing is proved."""
    proof, found = plan.certificate.hourly, plan.forecast
    if proof is None or found is None:
        return ""
    few = f" that changes {plan.moved.partitions:,} leaders or fewer" if proof.move_weight else ""
    said = f"No plan{few} can bring it below {unit.said(proof.bound)}"
    if (gap := proof.gap(found.after.load)) is not None:
        said += f": this one is at most {percent(max(gap, 0.0), 2)} above the best possible"
    other = proof.statistic_plan
    if other is None:
        return f"{said}."
    return (
        f"{said}. The plan for the {plan.objective.statistic} alone moves {other.partitions:,} leaders instead of"
        f" {plan.moved.partitions:,}, and its busiest hour has {unit.said(other.load)} (claimed by the planner)."
    )


def unmeasured(partitions: int) -> str:
    """What it means that the consumption of so many partitions is not measured."""
    return (
        f"The consumption of {partitions:,} partitions is not measured. It counts as 0, so brokers with many consumers"
        " seem less loaded than they are: run the sampler with --prometheus."
    )


def unmeasured_text(story: Story) -> str | None:
    """Which consumption is not measured, and what that means; None if all is that weighs."""
    count, topics = story.plan.unmeasured, story.unmeasured
    if not count:
        return None
    said = unmeasured(count)
    if count == story.plan.partitions - story.plan.without_load:
        return f"{said} None is measured."
    if topics:
        most = sorted(topics.items(), key=lambda item: (-item[1], item[0]))
        named = ", ".join(f"{topic} ({partitions:,})" for topic, partitions in most[:MOST_TOPICS])
        more = f" and {len(most) - MOST_TOPICS:,} more topics" if len(most) > MOST_TOPICS else ""
        said = f"{said} Not measured: {named}{more}."
    return said


def faults_text(story: Story) -> str | None:
    """That the plan did not pass its verification, and why."""
    if not story.faults:
        return None
    more = f" (and {len(story.faults) - 3:,} more)" if len(story.faults) > 3 else ""
    return f"Do not approve this plan: it does not pass verification. {'; '.join(story.faults[:3])}{more}."


def _opening(story: Story, unit: Unit) -> Markup:
    plan = story.plan
    more = [text for text in (faults_text(story), busiest_hour(plan, unit), unmeasured_text(story)) if text]
    moved = plan.moved
    least = unit_of_load(moved.lower_bound)
    alone = f"; {moved.reordered:,} more change their order alone" if moved.reordered else ""
    tiles = (
        _tile(
            "busiest broker",
            f"{unit.bare(plan.before.max)} → {unit.said(plan.after.max)}",
            change(plan.before.max, plan.after.max),
        ),
        _tile("bound", unit.said(plan.certificate.bound), _bound_note(plan)),
        _tile("gap to the bound", percent(plan.certificate.gap, 2), "how much better a perfect plan could be, at most"),
        _tile(
            "spread",
            f"{percent(plan.before.spread)} → {percent(plan.after.spread)}",
            "busiest broker over the mean, less 1",
        ),
        _tile(
            "leaders that move",
            f"{moved.partitions:,}",
            f"of {plan.partitions:,} partitions" + alone,
        ),
        _tile("load that moves", unit_of_load(moved.load), f"at least {least} must, for this maximum"),
    )
    return join(
        tag("h1", "Load plan ", tag("code", plan.digest)),
        tag(
            "p",
            f"Policy {plan.policy}, Kafka cluster ",
            tag("code", plan.cluster_id),
            f", as of {moment(plan.made_at)}",
            class_="soft",
        ),
        tag("p", verdict(plan, unit), class_="lead"),
        *(tag("p", text, class_="lead") for text in more),
        tag("div", *tiles, class_="tiles"),
    )


def unit_of_load(load: int) -> str:
    """Hundredths of a byte/s as people read them."""
    return Unit.of(load / 100).said(load / 100)


def _bound_note(plan: RebalancePlan) -> str:
    free = plan.certificate.without_cap
    if free is None:
        return "no plan has a lower maximum"
    unit = Unit.of(free.bound)
    return f"no plan with so few moves has a lower maximum; without the cap: {unit.said(free.bound)}"


def _tile(name: str, figure: str, note: str) -> Markup:
    return tag("div", tag("span", name), tag("b", figure), tag("span", note), class_="tile")


def _brokers(story: Story) -> Markup:
    plan = story.plan
    unit = _unit_of_brokers(plan)
    shut = sum(not b.open for b in plan.brokers)
    proving = story.proof.brokers if story.proof is not None else plan.certificate.proving
    note = f"{len(plan.brokers) - shut:,} open brokers" + (f", {shut:,} closed" if shut else "")
    return tag(
        "section",
        tag("h2", "Load per broker"),
        tag("p", f"{note}. Load is what leading and following cost, by the weights below.", class_="soft"),
        broker_chart(plan, unit, measure(plan, unit), proving if len(proving) < len(plan.brokers) - shut else ()),
    )


def _unit_of_brokers(plan: RebalancePlan) -> Unit:
    return Unit.column((plan.certificate.bound, *(load for b in plan.brokers for load in (b.before, b.after))))


def _racks(story: Story) -> Markup | None:
    if len(by_rack(story.plan)) < 2:
        return None
    unit = _unit_of_brokers(story.plan)
    chart = rack_chart(story.plan, unit, measure(story.plan, unit))
    return tag("section", tag("h2", "Per rack"), chart, flow_table(story, unit))


def _moves(story: Story) -> Markup:
    plan = story.plan
    if not story.heaviest:
        return tag("section", tag("h2", "Heaviest moves"), tag("p", "No leader moves."))
    racks = {b.id: b.rack for b in plan.brokers}

    def place(broker: int) -> str:
        if broker == NO_BROKER:
            return "none"
        rack = racks.get(broker)
        return f"{broker} ({rack})" if rack else str(broker)

    scale = Unit.of(story.heaviest[0].load / 100)
    head = ("partition", "from broker", "to broker", f"load, {scale.name}", "of all that moves")
    rows = [
        tag(
            "tr",
            tag("td", str(move.name), class_="name"),
            tag("td", place(move.from_leader)),
            tag("td", place(move.to_leader)),
            tag("td", scale.bare(move.load / 100), class_="n"),
            tag("td", percent(move.load / plan.moved.load if plan.moved.load else 0.0), class_="n"),
        )
        for move in story.heaviest
    ]
    more = plan.moved.partitions - len(rows)
    where = f"{story.store.rstrip('/')}/plans/{plan.digest}/moves/"
    names = tag("tr", *(tag("th", name, class_="n" if i > 2 else None) for i, name in enumerate(head)))
    return tag(
        "section",
        tag("h2", "Heaviest moves"),
        tag("div", tag("table", names, *rows), class_="scroll"),
        tag("p", f"and {more:,} lighter ones: ", tag("code", where), class_="soft") if more > 0 else None,
        class_="long",
    )


def _history(story: Story, unit: Unit) -> Markup:
    if story.history:
        unit = Unit.column(v for p in story.history for v in (p.before.max, p.after.max, p.certificate.bound))
    charts = history_charts(story.history, unit)
    table = history_table(story.history, story.plan.digest, unit)
    if charts is None:
        return tag(
            "section", tag("h2", "History"), tag("p", "This is the policy's only plan in the store.", class_="soft")
        )
    return tag("section", tag("h2", "History"), charts, table, class_="long")


_COVERS = (
    "The digest covers the problem, the loads and every new order: an approval of it approves nothing else. Loads by"
    " hour are not in it: they change no order."
)
_GONE = (
    "The problem or the loads of this plan are not in the store any more (the last five of a policy are kept), so it"
    " cannot be verified."
)
_CHECK = "To verify the figures on this page from the files, with code that is independent of the planner:"


def _deciding(story: Story) -> Markup:
    plan = story.plan
    namespace, _, name = plan.policy.rpartition("/")
    where = ["-n", namespace] if namespace else []
    mark = f"{ANNOTATION}={plan.digest}"
    approve = ("kubectl", "annotate", "leadershippolicy", name, *where, "--overwrite", mark)
    of = join("digest ", tag("code", plan.digest), ", of the problem ", tag("code", plan.problem_digest))
    return tag(
        "section",
        tag("h2", "Approve or verify"),
        tag("p", "If the policy requires approval:"),
        tag("pre", shlex.join(approve)),
        tag("p", _COVERS, class_="soft"),
        *_verifying(story),
        tag("p", of, class_="soft"),
    )


def _verifying(story: Story) -> tuple[Markup, ...]:
    if not story.problem:
        return (tag("p", _GONE),)
    store = story.store.rstrip("/") or "STORE"
    folders = ("--problem", f"{store}/problems/{story.problem}", "--loads", f"{store}/loads/{story.loads}")
    verify = ("bellwether", "verify-plan", *folders, "--plan", f"{store}/plans/{story.plan.digest}")
    return tag("p", _CHECK), tag("pre", shlex.join(verify))


def _asked(plan: RebalancePlan) -> Markup:
    asked = plan.objective
    racks = ", ".join(asked.preferred_racks) or "none"
    cap = "none" if asked.max_moves is None else f"{asked.max_moves:,} leaders, plus mandatory moves"
    rows: tuple[tuple[str, str], ...] = (
        ("a partition's load is its", str(asked.statistic)),
        ("a byte from a producer", f"{asked.produce_weight} %"),
        ("a byte to a follower", f"{asked.replication_weight} %"),
        ("a byte to a consumer", f"{asked.consume_weight} %"),
        ("a byte that a follower takes", f"{asked.follow_weight} %"),
        ("preferred racks", racks),
        ("cap on moves", cap),
        ("partitions", f"{plan.partitions:,}"),
        ("without a measured load (not moved)", f"{plan.without_load:,}"),
        ("without measured consumption (counts as 0)", f"{plan.without_consumption:,}"),
        ("pinned (not moved)", f"{plan.held:,}"),
        ("largest load that has a choice", Unit.of(plan.certificate.largest_item).said(plan.certificate.largest_item)),
    )
    table = tag("table", *(tag("tr", tag("td", name), tag("td", said, class_="n")) for name, said in rows))
    return tag("section", tag("h2", "Settings"), table)


def _all_brokers(story: Story) -> Markup:
    plan = story.plan
    unit = _unit_of_brokers(plan)
    names = (
        "broker",
        "rack",
        "capacity",
        f"before, {unit.name}",
        f"after, {unit.name}",
        "leaders gone",
        "leaders come",
        "",
    )
    head = tag("tr", *(tag("th", name, class_=None if name in ("rack", "") else "n") for name in names))
    rows: list[Child] = []
    for b in plan.brokers:
        figures = (
            f"{b.capacity:,}",
            unit.bare(b.before),
            unit.bare(b.after),
            f"{story.left.get(b.id, 0):,}",
            f"{story.came.get(b.id, 0):,}",
        )
        rows.append(
            tag(
                "tr",
                tag("td", b.id, class_="n"),
                tag("td", b.rack or "–"),
                *(tag("td", figure, class_="n") for figure in figures),
                tag("td", "" if b.open else "closed"),
            )
        )
    table = tag("div", tag("table", head, *rows), class_="scroll")
    return tag(
        "section",
        tag("details", tag("summary", f"All {len(plan.brokers):,} brokers in figures"), table),
        class_="long",
    )
