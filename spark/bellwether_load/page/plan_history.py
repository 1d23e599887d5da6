"""History of a policy's plans as three small charts and a table: maximum and bound, spread, and gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from bellwether_load.page.charts import Scale, drawing, keys, line, up, words
from bellwether_load.page.figures import Unit, percent
from bellwether_load.page.markup import Child, Markup, join, tag
from bellwether_load.plan.rebalance_plan import RebalancePlan

_WIDTH, _HEIGHT = 318, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 306, 34, 168

Series = tuple[str, Callable[[RebalancePlan], float | None]]


def history_charts(plans: Sequence[RebalancePlan], unit: Unit) -> Markup | None:
    """Three charts; None where there is no plan but this one."""
    if len(plans) < 2:
        return None
    percents = Unit(0.01, "%")
    tops: list[Series] = [
        ("before", lambda p: p.before.max),
        ("after", lambda p: p.after.max),
        ("bound", lambda p: p.certificate.bound),
    ]
    spreads: list[Series] = [("before", lambda p: p.before.spread), ("after", lambda p: p.after.spread)]
    gaps: list[Series] = [("after", lambda p: p.certificate.gap)]
    return join(
        keys(("before-line", "before the plan"), ("after-line", "after the plan"), ("bound", "bound")),
        tag(
            "div",
            _chart("Busiest broker", f"busiest broker, {unit.name}", plans, tops, unit),
            _chart("Spread", "spread: maximum / mean − 1, %", plans, spreads, percents),
            _chart("Gap", "gap to the bound, %", plans, gaps, percents),
            class_="side",
        ),
    )


def _chart(title: str, label: str, plans: Sequence[RebalancePlan], series: Sequence[Series], unit: Unit) -> Markup:
    values = [v for _, of in series for p in plans if (v := of(p)) is not None]
    scale = Scale.of(max(values, default=0.0), unit, _BOTTOM, _TOP, most=5)
    first, last = plans[0].made_at, plans[-1].made_at
    span = (last - first).total_seconds() or 1.0

    def x(at: datetime) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * (at - first).total_seconds() / span, 1)

    parts: list[Child] = [up(scale, unit, _LEFT, _RIGHT, label)]
    for kind, of in series:
        points = [(x(p.made_at), scale(v)) for p in plans if (v := of(p)) is not None]
        parts.append(tag("polyline", points=" ".join(f"{a},{b}" for a, b in points), class_=_line(kind)))
        if kind != "bound":
            parts += [tag("circle", cx=a, cy=b, r=2.6, class_=f"{kind}-dot") for a, b in points]
    parts.append(line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, "axis"))
    parts.append(words(_LEFT, _BOTTOM + 18, _day(first), "soft"))
    parts.append(words(_RIGHT, _BOTTOM + 18, _day(last), "soft end"))
    return drawing(_WIDTH, _HEIGHT, title, f"{label}, of {len(plans)} plans over time", *parts)


def history_table(plans: Sequence[RebalancePlan], this: str, unit: Unit) -> Markup:
    """A row for each plan, the newest first."""
    names = (
        "made for, UTC",
        "digest",
        "before",
        "after",
        "bound",
        "gap",
        "spread before",
        "spread after",
        "leaders moved",
    )
    head = tag("tr", *(tag("th", name, class_=None if i < 2 else "n") for i, name in enumerate(names)))
    rows = []
    for plan in reversed(plans):
        figures = (
            unit.bare(plan.before.max),
            unit.bare(plan.after.max),
            unit.bare(plan.certificate.bound),
            percent(plan.certificate.gap),
            percent(plan.before.spread),
            percent(plan.after.spread),
            f"{plan.moved.partitions:,}",
        )
        rows.append(
            tag(
                "tr",
                tag("td", moment(plan.made_at).removesuffix(" UTC")),
                tag("td", tag("code", plan.digest), " (this plan)" if plan.digest == this else None),
                *(tag("td", figure, class_="n") for figure in figures),
                class_="this" if plan.digest == this else None,
            )
        )
    caption = tag("caption", f"Busiest broker and bound in {unit.name}")
    return tag("div", tag("table", caption, head, *rows), class_="scroll")


def moment(at: datetime) -> str:
    """A time as people read it, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _day(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d")


def _line(kind: str) -> str:
    return "bound" if kind == "bound" else f"{kind}-line"
