"""Charts of load per rack before and after a plan, and a table of leaders moved between racks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bellwether_load.page.charts import WIDTH, Scale, across, drawing, for_both_widths, keys, line, short, words
from bellwether_load.page.figures import Unit, quantile
from bellwether_load.page.markup import Child, Markup, join, tag
from bellwether_load.page.plan_summary import NO_LEADER, NO_RACK, Story
from bellwether_load.plan.rebalance_plan import BrokerLoad, RebalancePlan

MOST_DOTS = 40
"""Racks with more brokers than these are drawn as ranges."""

_ROW, _NARROW_ROW = 52, 68
_TOP = 24


def by_rack(plan: RebalancePlan) -> dict[str, list[BrokerLoad]]:
    """The open brokers of each rack, racks in order; those without one last."""
    found: dict[str, list[BrokerLoad]] = {}
    for broker in plan.brokers:
        if broker.open:
            found.setdefault(broker.rack or NO_RACK, []).append(broker)
    return dict(sorted(found.items(), key=lambda item: (item[0] == NO_RACK, item[0])))


def rack_chart(plan: RebalancePlan, unit: Unit, label: str) -> Markup:
    """A row for each rack: dots for a few brokers, ranges for many."""
    if _dotted(by_rack(plan)):
        key = keys(("before-dot", "a broker before"), ("after-dot", "a broker after"), ("bound", "bound"))
    else:
        of = "from the least to the most, the middle 80 % of the brokers, the median"
        key = keys(("before-range", f"before: {of}"), ("after-range", "after: the same"), ("bound", "bound"))
    return join(key, for_both_widths(lambda width: _rows(plan, unit, label, width)))


def _dotted(racks: Mapping[str, Sequence[BrokerLoad]]) -> bool:
    return max((len(brokers) for brokers in racks.values()), default=0) <= MOST_DOTS


def _rows(plan: RebalancePlan, unit: Unit, label: str, width: int) -> Markup:
    racks, wide = by_rack(plan), width == WIDTH
    left, right = (196, width - 150) if wide else (10, width - 24)
    row = _ROW if wide else _NARROW_ROW
    bottom = _TOP + row * len(racks)
    most = max([plan.certificate.bound, *(max(b.before, b.after) for one in racks.values() for b in one)])
    scale = Scale.of(most, unit, left, right, 6 if wide else 4)
    draw = _dots if _dotted(racks) else _range
    parts: list[Child] = [across(scale, unit, _TOP, bottom, label)]
    for place, (rack, brokers) in enumerate(racks.items()):
        y = _TOP + row * place + 16
        most_of = {when: max(getattr(b, when) for b in brokers) for when in ("before", "after")}
        if wide:
            parts.append(tag("text", tag("title", rack), short(rack), x=left - 10, y=y + 8, class_="end strong"))
            parts.append(words(left - 10, y + 23, f"{len(brokers):,} open", "soft end"))
        else:
            said = tag("tspan", f"  {len(brokers):,} open", class_="soft", fill="var(--soft)")
            parts.append(tag("text", tag("title", rack), tag("tspan", short(rack), class_="strong"), said, x=left, y=y))
            figures = f"max {unit.bare(most_of['before'])} → {unit.bare(most_of['after'])}"
            parts.append(words(right, y, figures, "soft end"))
            y += 14
        for when, dy in (("before", 0), ("after", 20)):
            values = [getattr(b, when) for b in brokers]
            parts.append(draw(values, scale, y + dy, when))
            if wide:
                parts.append(words(right + 14, y + dy + 4, f"{when} max {unit.bare(most_of[when])}", "soft"))
    bound = scale(plan.certificate.bound)
    parts.append(line(bound, _TOP - 6, bound, bottom, "bound"))
    parts.append(line(left, _TOP, left, bottom, "axis"))
    description = "For each rack the load of its open brokers before and after, and a dashed line for the bound."
    return drawing(width, bottom + 42, "Load per rack", description, *parts)


def _dots(values: Sequence[float], scale: Scale, y: float, when: str) -> Markup:
    return join(*(tag("circle", cx=scale(v), cy=y, r=4.5, class_=f"{when}-dot") for v in values))


def _range(values: Sequence[float], scale: Scale, y: float, when: str) -> Markup:
    low, start, middle, end, high = (scale(quantile(values, q)) for q in (0.0, 0.1, 0.5, 0.9, 1.0))
    width = max(1.0, round(end - start, 1))
    return join(
        line(low, y, high, y, "whisker"),
        tag("rect", x=start, y=y - 6, width=width, height=12, class_=f"{when}-range"),
        line(middle, y - 8, middle, y + 8, f"{when}-median"),
    )


def flow_table(story: Story, unit: Unit) -> Markup | None:
    """How many leaders go from which rack to which; None where there is but one rack."""
    starts = sorted({a for a, _ in story.flows}, key=lambda r: (r in (NO_RACK, NO_LEADER), r))
    ends = sorted({b for _, b in story.flows}, key=lambda r: (r == NO_RACK, r))
    if len({*starts, *ends}) < 2:
        return None
    head = tag("tr", tag("th", "from"), *(tag("th", f"to {end}", class_="n") for end in ends))
    rows = []
    for start in starts:
        cells = []
        for end in ends:
            flow = story.flows.get((start, end))
            said = f"{flow.leaders:,} ({unit.said(flow.load / 100)})" if flow else "–"
            cells.append(tag("td", said, class_="n"))
        rows.append(tag("tr", tag("td", start), *cells))
    caption = tag("caption", "Leaders that move from rack to rack, and what leading them costs")
    return tag("div", tag("table", caption, head, *rows), class_="scroll")
