"""Charts of load per broker before and after a plan: a row per broker, or two sorted curves for many brokers."""

from __future__ import annotations

from collections.abc import Collection

from bellwether_load.page.charts import (
    PROVING,
    WIDTH,
    Scale,
    across,
    drawing,
    for_both_widths,
    keys,
    line,
    short,
    up,
    words,
)
from bellwether_load.page.figures import Unit
from bellwether_load.page.markup import Child, Markup, join, tag
from bellwether_load.plan.rebalance_plan import BrokerLoad, RebalancePlan

MOST_ROWS = 48
"""More brokers than these are drawn as curves."""

_ROW, _NARROW_ROW = 24, 40
_TOP = 26


def broker_chart(plan: RebalancePlan, unit: Unit, label: str, proving: Collection[int] = ()) -> Markup:
    """The chart that suits the number of brokers, with its key. ``proving``: brokers that prove the bound."""
    if len(plan.brokers) > MOST_ROWS:
        marks = [("before-line", "before"), ("after-line", "after"), ("bound", "bound: no plan has a lower maximum")]
        return join(keys(*marks), for_both_widths(lambda width: _curves(plan, unit, label, width)))
    marks = [("before-dot", "before"), ("after-bar", "after"), ("bound", "bound: no plan has a lower maximum")]
    if any(not b.open for b in plan.brokers):
        marks.append(("shut", "closed: must not lead, and does not count"))
    if proving:
        marks.append(("proving", "a broker that proves the bound"))
    return join(keys(*marks), for_both_widths(lambda width: _rows(plan, unit, label, width, proving)))


def _rows(plan: RebalancePlan, unit: Unit, label: str, width: int, proving: Collection[int]) -> Markup:
    wide = width == WIDTH
    left, right = (196, width - 150) if wide else (10, width - 24)
    row = _ROW if wide else _NARROW_ROW
    bottom = _TOP + row * len(plan.brokers)
    most = max((max(b.before, b.after) for b in plan.brokers), default=0.0)
    scale = Scale.of(max(most, plan.certificate.bound), unit, left, right, 6 if wide else 4)
    parts: list[Child] = [across(scale, unit, _TOP, bottom, label)]
    bound = scale(plan.certificate.bound)
    for place, broker in enumerate(plan.brokers):
        middle = _TOP + row * place + (row / 2 if wide else row - 10)
        parts.append(_row(broker, unit, scale, middle, wide, broker.id in proving))
        if not wide:  # past the bars alone: the figures are above them
            parts.append(line(bound, middle - 9, bound, middle + 9, "bound"))
    parts.append(line(bound, _TOP - 6, bound, bottom if wide else _TOP, "bound"))
    side = "end" if bound > (left + right) / 2 else ""
    parts.append(words(bound, _TOP - 11, f"bound {unit.said(plan.certificate.bound)}", f"strong {side}".strip()))
    parts.append(line(left, _TOP, left, bottom, "axis"))
    description = "One row a broker: a bar for its load after, a ring for its load before, a dashed line for the bound."
    return drawing(width, bottom + 42, "Load per broker", description, *parts)


def _row(broker: BrokerLoad, unit: Unit, scale: Scale, y: float, wide: bool, proves: bool) -> Markup:
    name = tag("tspan", f"{PROVING if proves else ''}broker {broker.id}", class_="strong" if proves else None)
    rack = tag("tspan", f"  {short(broker.rack)}", class_="soft", fill="var(--soft)") if broker.rack else None
    start, end = scale(broker.before), scale(broker.after)
    figures = f"{unit.bare(broker.before)} → {unit.bare(broker.after)}"
    label = f"broker {broker.id}: {unit.said(broker.before)} before, {unit.said(broker.after)} after"
    return tag(
        "g",
        tag("title", label),
        tag("text", name, rack, x=scale.start - 10, y=y + 4, class_="end")
        if wide
        else tag("text", name, rack, x=scale.start, y=y - 12),
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
        words(scale.end + 14, y + 4, figures) if wide else words(scale.end, y - 12, figures, "end"),
    )


def _curves(plan: RebalancePlan, unit: Unit, label: str, width: int) -> Markup:
    wide, top, bottom = width == WIDTH, 34, 330
    left, right = (70, width - 110) if wide else (48, width - 12)
    free = [b for b in plan.brokers if b.open]
    before, after = (sorted((getattr(b, when) for b in free), reverse=True) for when in ("before", "after"))
    bound = plan.certificate.bound
    scale = Scale.of(max([*before[:1], *after[:1], bound]), unit, bottom, top)
    parts: list[Child] = [up(scale, unit, left, right, label)]
    for share in (0, 0.25, 0.5, 0.75, 1) if wide else (0, 0.5, 1):
        x = left + (right - left) * share
        rank = max(1, round(share * len(free)))
        parts += [line(x, bottom, x, bottom + 4, "axis"), words(x, bottom + 18, f"{rank:,}", "soft middle")]
    parts.append(words((left + right) / 2, bottom + 36, "open brokers, the busiest first", "soft middle"))
    parts.append(line(left, bottom, right, bottom, "axis"))
    ends = {"before": (before, "before-line"), "after": (after, "after-line")}
    for values, kind in ends.values():
        parts.append(tag("path", d=_steps(values, scale, left, right), class_=kind))
    parts.append(line(left, scale(bound), right, scale(bound), "bound"))
    if wide:
        parts.append(words(right + 8, scale(bound) + 4, "bound", "strong"))
        parts.append(words(right + 8, scale(bound) + 19, unit.said(bound), "soft"))
    else:
        parts.append(words(right, scale(bound) - 5, f"bound {unit.said(bound)}", "strong end"))
    description = "Two curves over all open brokers sorted by load, before and after, and a dashed line for the bound."
    return drawing(width, bottom + 44, "Load per broker, sorted", description, *parts)


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
