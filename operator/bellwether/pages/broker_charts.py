"""Charts of load per broker before and after a plan: a row per broker, or two sorted curves for many brokers."""

from __future__ import annotations

from bellwether.core.rebalance.rebalance_plan import BrokerLoad, RebalancePlan
from bellwether.pages.charts import WIDTH, Scale, across, drawing, keys, line, short, up, words
from bellwether.pages.figures import Unit
from bellwether.pages.markup import Child, Markup, join, tag

MOST_ROWS = 48
"""More brokers than these are drawn as curves."""

_ROW = 24
_TOP = 26


def broker_chart(plan: RebalancePlan, unit: Unit, label: str) -> Markup:
    """The chart that suits the number of brokers, with its key."""
    return _rows(plan, unit, label) if len(plan.brokers) <= MOST_ROWS else _curves(plan, unit, label)


def _rows(plan: RebalancePlan, unit: Unit, label: str) -> Markup:
    left, right = 196, WIDTH - 130
    bottom = _TOP + _ROW * len(plan.brokers)
    most = max((max(b.before, b.after) for b in plan.brokers), default=0.0)
    scale = Scale.of(max(most, plan.certificate.bound), unit, left, right)
    parts: list[Child] = [across(scale, unit, _TOP, bottom, label)]
    for place, broker in enumerate(plan.brokers):
        parts.append(_row(broker, unit, scale, _TOP + _ROW * place + _ROW / 2))
    bound = scale(plan.certificate.bound)
    parts += [line(bound, _TOP - 6, bound, bottom, "bound")]
    side = "end" if bound > (left + right) / 2 else ""
    parts.append(words(bound, _TOP - 11, f"bound {unit.said(plan.certificate.bound)}", f"strong {side}".strip()))
    parts.append(line(left, _TOP, left, bottom, "axis"))
    description = "One row a broker: a bar for its load after, a ring for its load before, a dashed line for the bound."
    marks = [("before-dot", "before"), ("after-bar", "after"), ("bound", "bound: no plan has a lower maximum")]
    if any(not b.open for b in plan.brokers):
        marks.append(("shut", "closed: must not lead, and does not count"))
    return join(keys(*marks), drawing(WIDTH, bottom + 42, "Load per broker", description, *parts))


def _row(broker: BrokerLoad, unit: Unit, scale: Scale, y: float) -> Markup:
    name = tag("tspan", f"broker {broker.id}")
    rack = tag("tspan", f"  {short(broker.rack)}", class_="soft", fill="var(--soft)") if broker.rack else None
    start, end = scale(broker.before), scale(broker.after)
    label = f"broker {broker.id}: {unit.said(broker.before)} before, {unit.said(broker.after)} after"
    return tag(
        "g",
        tag("title", label),
        tag("text", name, rack, x=scale.start - 10, y=y + 4, class_="end"),
        tag(
            "rect",
            x=scale.start,
            y=y - 6,
            width=max(0.0, round(end - scale.start, 1)),
            height=12,
            class_="after-bar" if broker.open else "shut",
        ),
        line(min(start, end), y, max(start, end), y, "link") if start != end else None,
        tag("circle", cx=start, cy=y, r=5, class_="before-dot"),
        words(scale.end + 14, y + 4, f"{unit.bare(broker.before)} → {unit.bare(broker.after)}"),
    )


def _curves(plan: RebalancePlan, unit: Unit, label: str) -> Markup:
    left, right, top, bottom = 70, WIDTH - 110, 34, 330
    free = [b for b in plan.brokers if b.open]
    before, after = (sorted((getattr(b, when) for b in free), reverse=True) for when in ("before", "after"))
    bound = plan.certificate.bound
    scale = Scale.of(max([*before[:1], *after[:1], bound]), unit, bottom, top)
    parts: list[Child] = [up(scale, unit, left, right, label)]
    for share in (0, 0.25, 0.5, 0.75, 1):
        x = left + (right - left) * share
        rank = max(1, round(share * len(free)))
        parts += [line(x, bottom, x, bottom + 4, "axis"), words(x, bottom + 18, f"{rank:,}", "soft middle")]
    parts.append(words((left + right) / 2, bottom + 36, "open brokers, the busiest first", "soft middle"))
    parts.append(line(left, bottom, right, bottom, "axis"))
    ends = {"before": (before, "before-line"), "after": (after, "after-line")}
    for values, kind in ends.values():
        parts.append(tag("path", d=_steps(values, scale, left, right), class_=kind))
    parts.append(line(left, scale(bound), right, scale(bound), "bound"))
    parts.append(words(right + 8, scale(bound) + 4, "bound", "strong"))
    parts.append(words(right + 8, scale(bound) + 19, unit.said(bound), "soft"))
    description = "Two curves over all open brokers sorted by load, before and after, and a dashed line for the bound."
    return join(
        keys(("before-line", "before"), ("after-line", "after"), ("bound", "bound: no plan has a lower maximum")),
        drawing(WIDTH, bottom + 44, "Load per broker, sorted", description, *parts),
    )


def _steps(values: list[float], scale: Scale, left: float, right: float) -> str:
    """A step for each broker; steps that would not be seen are drawn as one."""
    width = (right - left) / max(1, len(values))
    path, last = [f"M{left} {scale(values[0])}"], None
    for place, value in enumerate(values):
        y = scale(value)
        if y != last:
            path.append(f"H{round(left + width * place, 1)}V{y}")
            last = y
    path.append(f"H{right}")
    return "".join(path)
