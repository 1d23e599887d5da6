"""Scenarios: what happens to a cluster over time, and a timeline of what the operator made of it.

In: the YAML of ``tests/scenarios`` (a cluster, a policy with its sources, a load plan, events by second). Out: for
every second in which something changed, what changed: verdicts, who is demoted, the plan, leaders, what is held,
conditions, notes. A turn is taken every second, so the timeline is also the measure of how soon things happen.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.reporting.report import Report
from bellwether.core.waves.approved_plan import ApprovedPlan, RebalanceInput
from bellwether.simulation.cluster_description import cluster_of
from bellwether.simulation.fault_script import VERBS, Stage
from testkit.kubernetes import api_objects
from testkit.loads.approved_plans import accepted, loadmove
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import Operator

GOLDEN = "golden:\n"

Said = dict[str, Any]


def read(path: Path) -> tuple[str, Said]:
    """A scenario's text above its golden part, and the whole as values."""
    text = path.read_text()
    head, found, _ = text.partition(f"\n{GOLDEN}")
    return (f"{head}\n" if found else text), yaml.safe_load(text)


def write(path: Path, head: str, timeline: list[Said]) -> None:
    """The scenario with another golden part; what people wrote above it stays as it is."""
    golden = yaml.safe_dump(timeline, sort_keys=False, width=10_000, allow_unicode=True)
    path.write_text(f"{head}{GOLDEN}{golden}")


def play(scenario: Mapping[str, Any]) -> list[Said]:
    """The timeline of a scenario. Raises KeyError for an unknown event."""
    site = site_of(scenario["cluster"])
    policy = LeadershipPolicy.read(api_objects.policy(**{"mode": "Enforce", **scenario.get("policy", {})}))
    rebalances = [api_objects.rebalance(**scenario["rebalance"])] if "rebalance" in scenario else []
    operator = Operator(site, policy.with_sources(sources_of(scenario)).with_rebalances(rebalances).policy())
    plan = _plan(site, scenario.get("plan", {}))
    standing: Said = {
        key: {}
        for key in ("demoted", "logDirs", "links", "returning", "held", "flapping", "slow", "drained", "quarantined")
    } | {
        "plan": [],
        "notes": [],
    }
    events = {int(second): happening for second, happening in scenario["events"].items()}
    timeline: list[Said] = []
    for second in range(int(scenario["seconds"]) + 1):
        for what in events.get(second, []):
            for verb, about in what.items():
                if verb not in APPROVALS:
                    VERBS[verb](Stage(site), about)
                else:
                    operator.rebalance_input = RebalanceInput(plan if APPROVALS[verb] else None)
        report = operator.reconcile()
        now = _observed(report, site) if report is not None else {"turn": "none: the world did not answer"}
        if "plan" in scenario:
            now["rebalance"] = _rebalance(report)
        changed = {key: _changed(standing.get(key), value) for key, value in now.items() if standing.get(key) != value}
        if changed:
            timeline.append({"at": second, **changed})
        standing = now
        site.clock.advance(1)
    return timeline


def sources_of(scenario: Mapping[str, Any]) -> list[api_objects.Body]:
    """The SignalSources of a scenario."""
    return [api_objects.source(name, **spec) for name, spec in scenario.get("sources", {}).items()]


def site_of(said: Mapping[str, Any]) -> MemorySite:
    """The site that a scenario begins with."""
    return MemorySite(cluster_of(said), pods={})


def _changed(before: Any, now: Any) -> Any:
    """Of a table only the rows that changed; a row that is gone is None."""
    if not isinstance(now, dict):
        return now
    rows = before if isinstance(before, dict) else {}
    return {**{k: None for k in rows if k not in now}, **{k: v for k, v in now.items() if rows.get(k) != v}}


def _observed(report: Report, site: MemorySite) -> Said:
    leaders = site.cluster.snapshot().leaders()
    conditions = {}
    for condition in report.conditions:
        conditions[condition.type] = f"{condition.status} {condition.reason}: {condition.message}"
    return {
        "verdicts": {b.broker: f"{b.verdict.state}, {b.verdict.reason}" for b in report.brokers},
        "demoted": {b.broker: f"{b.demoted.cause}: {b.demoted.message}" for b in report.brokers if b.demoted},
        "logDirs": {
            f"{b.broker} {one.demoted.log_dir.path}": f"{one.partitions} partitions: {one.demoted.message}"
            for b in report.brokers
            for one in b.log_dirs
        },
        "links": {
            f"{b.broker} {one.peer}": f"{one.partitions} partitions are led by others"
            for b in report.brokers
            for one in b.links
        },
        "returning": {
            b.broker: f"{b.restoration.message}; {b.restoration.withheld} wait"
            for b in report.brokers
            if b.restoration is not None
        },
        "flapping": {
            b.broker: f"{b.flaps.demotions} demotions: {b.stabilization_seconds} s to be well for"
            for b in report.brokers
            if b.flaps is not None and b.flaps.demotions > 1
        },
        "drained": {
            b.broker: f"{b.drained.status} {b.drained.reason}: {b.drained.message}"
            for b in report.brokers
            if b.drained is not None
        },
        "quarantined": {
            b.broker: f"{c.status} {c.reason}: {c.message}"
            for b in report.brokers
            for c in b.conditions
            if c.type == "Quarantined"
        },
        "slow": {
            b.broker: c.message for b in report.brokers for c in b.conditions if c.type == "HoldsBackISR" and c.status
        },
        "plan": [
            f"{m.name} {list(m.seen)} -> {list(m.order)}, leader {m.leader} -> {m.leads_next if m.elect else m.leader}"
            for m in report.plan.moves
        ],
        "leaders": {broker: leaders[broker] for broker in sorted(leaders)},
        "held": {f"{h.topic}-{h.key.partition}": str(h.reason) for h in report.held_sample},
        "conditions": conditions,
        "notes": [f"{n.topic}-{n.partition} {n.reason}: {n.message}" for n in report.notes],
    }


def _plan(site: MemorySite, orders: Mapping[str, Any]) -> ApprovedPlan:
    """An approved load plan: the order that each partition is to have, taken up in the scenario's order."""
    named = {str(p.name): p for p in site.cluster.partitions()}
    return accepted(*(loadmove(named[name], order[0]) for name, order in orders.items()))


def _rebalance(report: Report | None) -> str:
    """How far the plan has come, and what the next wave waits for."""
    progress = report.progress if report is not None else None
    if progress is None or progress.application is None:
        return "" if progress is None or progress.waits is None else f"waits: {progress.waits.message}"
    application = progress.application
    text = f"{application.taken_up} of {application.moves} taken up"
    if application.left:
        text += ", left out: " + ", ".join(f"{n} {reason}" for reason, n in application.left.items())
    if application.ended is not None:
        return f"{text}; {application.ended}: {application.message}"
    return text if progress.waits is None else f"{text}; {progress.waits.reason}: {progress.waits.message}"


APPROVALS = {"approve": True, "withdraw": False}
"""Verbs of people who approve the scenario's load plan, or take that back: they reach the operator alone."""
