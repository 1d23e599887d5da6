"""Why a plan's bound is not lower, level by level, and what the cap on moves costs: as text and as sections."""

from __future__ import annotations

from dataclasses import dataclass

from bellwether_load.page.figures import Unit, percent
from bellwether_load.page.markup import Markup, tag
from bellwether_load.page.plan_summary import Story
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.verify.bound_reasons import proving_brokers


def bound_text(story: Story) -> str:
    """What decides the bound; the brokers alone where problem and loads are not in the store any more."""
    if story.proof is not None:
        return story.proof.text
    brokers, opened = story.plan.certificate.proving, sum(b.open for b in story.plan.brokers)
    if not brokers:
        return "The plan names no brokers that prove the bound."
    if len(brokers) == opened:
        return f"The proof of the bound rests on all {opened:,} open brokers."
    return f"The proof of the bound rests on {proving_brokers(brokers, opened, start=False)}, or on a single partition."


def cap_text(plan: RebalancePlan, unit: Unit) -> str | None:
    """What the cap costs, in one or two sentences; None without a cap."""
    most, free = plan.objective.max_moves, plan.certificate.without_cap
    if most is None:
        return None
    if free is None:
        return f"maxMoves {most:,} does not make the busiest broker busier."
    more = percent(plan.after.max / free.load - 1) if free.load else "infinitely"
    said = (
        f"With maxMoves {most:,} the busiest broker is {more} busier than in a plan without it, which"
        f" changes {free.partitions:,} leaders and brings it to {unit.said(free.load)} (claimed by the planner)."
    )
    gain = gain_of_a_move(plan)
    if gain:
        said += f" Each further leader that may change lowers the bound by at most {Unit.of(gain).said(gain)}."
    return said


def gain_of_a_move(plan: RebalancePlan) -> float:
    """How much lower the bound is at most if one more leader may change: the weights prove bounds for any cap."""
    proof = plan.certificate
    capacity = sum(proof.weights.get(b.id, 0) * b.capacity for b in plan.brokers)
    return proof.move_weight / capacity if capacity else 0.0


def bound_section(story: Story, unit: Unit) -> Markup:
    """The brokers and partitions that prove the bound."""
    proof = story.proof
    if proof is None:
        note = "The partitions cannot be named: the problem or the loads of this plan are not in the store."
        return tag("section", tag("h2", "Why not lower"), tag("p", bound_text(story)), tag("p", note, class_="soft"))
    table = None
    if proof.partitions:
        loads = Unit.column(p.load / 100 for p in proof.partitions)
        names = ("partition", "broker", f"load, {loads.name}", "of the bound", "why it is there")
        head = tag("tr", *(tag("th", n, class_="n" if i in (2, 3) else None) for i, n in enumerate(names)))
        rows = [
            tag(
                "tr",
                tag("td", one.name, class_="name"),
                tag("td", ", ".join(map(str, one.brokers))),
                tag("td", loads.bare(one.load / 100), class_="n"),
                tag("td", percent(one.share), class_="n"),
                tag("td", one.why, class_="why"),
            )
            for one in proof.partitions
        ]
        caption = tag("caption", "The heaviest partitions that these brokers keep")
        table = tag("div", tag("table", caption, head, *rows), class_="scroll")
    lead = tag("p", f"No plan brings the busiest broker below {unit.said(story.plan.certificate.bound)}. {proof.text}")
    return tag("section", tag("h2", "Why not lower"), lead, table)


def cap_section(plan: RebalancePlan, unit: Unit) -> Markup | None:
    """What more moves would give; None without a cap."""
    text, proof = cap_text(plan, unit), plan.certificate
    if text is None:
        return None
    table = None
    if proof.other_caps:
        column = Unit.column(load for other in proof.other_caps for load in (plan.after.max, other.load, other.bound))
        rows = [(f"{plan.objective.max_moves:,} (this plan)", plan.moved.partitions, plan.after.max, proof.bound)]
        for other in proof.other_caps:
            cap = "none" if other.max_moves is None else f"{other.max_moves:,}"
            rows.append((cap, other.partitions, other.load, other.bound))
        names = ("cap", "leaders that change*", f"busiest broker*, {column.name}", f"bound, {column.name}")
        head = tag("tr", *(tag("th", name, class_="n") for name in names))
        body = [
            tag("tr", *(tag("td", cell, class_="n") for cell in (cap, f"{moves:,}", *map(column.bare, figures))))
            for cap, moves, *figures in rows
        ]
        note = tag("p", "* with other caps: claimed by the planner, and not verified.", class_="soft")
        table = tag("div", tag("table", head, *body), note, class_="scroll")
    return tag("section", tag("h2", "What the cap costs"), tag("p", text), table)


@dataclass(frozen=True, slots=True)
class LevelFigures:
    """The busiest broker when so many are left out, before and after, and its bound."""

    settled: int
    before: float
    after: float
    bound: float

    @property
    def gap(self) -> float | None:
        """How far it is above the bound; 0 where brokers above are so little over their limits that it is below."""
        return max(0.0, self.after / self.bound - 1) if self.bound else None if self.after else 0.0


def levels(plan: RebalancePlan) -> list[LevelFigures]:
    """The brokers below the busiest ones, level by level."""
    found, settled = [], set[int]()
    for level in plan.certificate.levels:
        settled |= set(level.settled)
        before = max((b.before for b in plan.brokers if b.open and b.id not in settled), default=0.0)
        found.append(LevelFigures(len(settled), before, level.load, level.bound))
    return found


def level_table(plan: RebalancePlan) -> Markup | None:
    """The levels as a section of the page; None where there are none."""
    if not plan.certificate.levels:
        return None
    unit = Unit.column(v for level in levels(plan) for v in (level.before, level.after, level.bound))
    names = ("brokers left out", f"before, {unit.name}", f"after, {unit.name}", f"bound, {unit.name}", "gap")
    head = tag("tr", *(tag("th", name, class_="n") for name in names))
    rows = [
        (f"{level.settled:,}", *map(unit.bare, (level.before, level.after, level.bound)), percent(level.gap, 2))
        for level in levels(plan)
    ]
    body = (tag("tr", *(tag("td", cell, class_="n") for cell in row)) for row in rows)
    table = tag("div", tag("table", head, *body), class_="scroll")
    note = (
        "The busiest of the other brokers when the most loaded ones are left out. As long as those are as low as"
        " their own bound or as in this plan, no plan brings it below this bound."
    )
    return tag("section", tag("h2", "Below the busiest"), tag("p", note, class_="soft"), table)
