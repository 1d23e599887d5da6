"""Plans of any size for pages, and a page taken apart: its elements, and whether it needs anything from elsewhere."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from xml.etree import ElementTree

from bellwether.core.waves.approved_plan import RebalanceMove
from bellwether_load.plan.rebalance_plan import BrokerLoad, RebalancePlan
from testkit.loads.small_planner import again, loads, move_of, planned, problem, slot

RACKS = ("zone-a", "zone-b", "zone-c")


def small_plan(topic: str = "orders") -> tuple[RebalancePlan, tuple[RebalanceMove, ...]]:
    """Six partitions of one topic on three brokers, a true plan."""
    posed = problem(*(slot(i, topic=topic) for i in range(6)))
    return planned(posed, loads(posed, *(1e6 * (i + 1) for i in range(6))))


def plan_of_size(
    brokers: int, *, moves: int = 40, closed: Sequence[int] = ()
) -> tuple[RebalancePlan, list[RebalanceMove]]:
    """A plan that only looks like one: that many brokers in three racks, loads around 100 MB/s, before uneven."""
    rng = random.Random(brokers)
    rows = tuple(
        BrokerLoad(
            b, RACKS[b % 3], 100, b not in closed, 1e8 * rng.lognormvariate(0, 0.5), 1e8 * rng.uniform(0.95, 1.001)
        )
        for b in range(1, brokers + 1)
    )
    made = [
        move_of(slot(i, rng.sample(range(1, brokers + 1), 2)), 0, int(1e8 * rng.paretovariate(1.2)))
        for i in range(moves)
    ]
    made = [m._replace(order=m.replicas[::-1], to_leader=m.replicas[1]) for m in made]
    free = [b for b in rows if b.open]
    base, _ = small_plan()
    bound = 0.998 * max(b.after for b in free)
    plan = replace(
        base,
        brokers=rows,
        certificate=replace(base.certificate, weights=dict.fromkeys((b.id for b in free), 1), bound=bound),
        moved=replace(base.moved, partitions=moves, load=sum(m.load for m in made)),
    )
    return again(plan, made), made


def former(plan: RebalancePlan, days: int) -> RebalancePlan:
    """The same plan made some days earlier, under another digest."""
    return replace(plan, made_at=plan.made_at - timedelta(days=days), digest=f"{days:016x}")


def taken_apart(page: str) -> ElementTree.Element:
    """The page's root. ParseError where it is not well-formed."""
    start = "<!DOCTYPE html>\n"
    if not page.startswith(start):
        raise ElementTree.ParseError("the page does not begin with its doctype")
    return ElementTree.fromstring(page.removeprefix(start))  # noqa: S314 - our own page


def needs(page: str) -> list[str]:
    """Whatever the page would load or run: elements, attributes and styles that reach outside it, and scripts."""
    found = []
    for element in taken_apart(page).iter():
        if element.tag in {"script", "link", "iframe", "object", "embed", "img", "image", "base", "form", "use"}:
            found.append(f"<{element.tag}>")
        for name, value in element.attrib.items():
            if name.startswith("on") or name.rsplit("}")[-1] in {"src", "href", "srcset", "action", "data", "style"}:
                found.append(f"{name}={value}")
    return found + re.findall(r"url\([^)]*\)|@import[^;]*", page)


def said(root: ElementTree.Element) -> str:
    """All text of an element, white space made single."""
    return " ".join(" ".join(root.itertext()).split())
