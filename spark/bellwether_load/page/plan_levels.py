"""The brokers below the busiest ones of a plan: how low each level is, and how low it could be."""

from __future__ import annotations

from dataclasses import dataclass

from bellwether_load.page.figures import Unit, percent
from bellwether_load.page.markup import Markup, tag
from bellwether_load.plan.rebalance_plan import RebalancePlan


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
