"""A large cluster in memory, step by step: racks preferred, at rest, a broker demoted, at rest, promoted, at rest.

In: how many brokers and partitions. Out: for each step how long one plan takes, what the turns that follow ask Kafka
for, and how many partitions are held. The operator's own turn runs on the memory adapter.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bellwether.core.demotion.decisions import decide
from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import judge
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.planning.plan import build_plan
from bellwether.core.settings.placement import Placement, Preference, TopicRule
from bellwether.core.settings.policy import Election, Policy
from bellwether.core.signals import OverrideState
from bellwether.testing.memory_cluster import MemoryCluster
from bellwether.testing.memory_world import MemorySite
from testkit.simulation.operators import POLICY, Operator

RACKS = ("a", "b", "c")
TOPIC_SIZE = 100
SICK = 4
"""Of rack b: brokers are dealt to the racks in turn, from 1 on."""

MOST_TURNS = 10


@dataclass(frozen=True, slots=True)
class Step:
    """One step's figures: seconds of one plan and of one turn, turns until settled, mutations asked for, and holds."""

    name: str
    moves: int
    plan_seconds: float
    turn_seconds: float
    turns: int
    mutations: int
    held: int


def wanted() -> Policy:
    """Leaders in rack b, then a; of every tenth topic in c."""
    rules = (TopicRule("topic-*0", Preference(("c", "a"))),)
    placement = Placement(Preference(("b", "a")), rules)
    return replace(POLICY, placement=placement, election=Election(batch_size=5000))


def large(brokers: int, partitions: int) -> MemorySite:
    """Three replicas each, one a rack, in turn over the brokers."""
    cluster = MemoryCluster({b: RACKS[(b - 1) % len(RACKS)] for b in range(1, brokers + 1)})
    at = 0
    for topic in range(partitions // TOPIC_SIZE):
        assignment = []
        for _ in range(TOPIC_SIZE):
            assignment.append(tuple(1 + (at + i) % brokers for i in range(3)))
            at += 1
        cluster.create_topic(f"topic-{topic:04}", assignment=assignment)
        at += 1  # so that a topic's size and the number of brokers share no measure
    return MemorySite(cluster)


def steps(brokers: int, partitions: int) -> Iterator[Step]:
    """Every step in its turn; each one settles before the next begins."""
    site = large(brokers, partitions)
    operator = Operator(site, POLICY)
    operator.reconcile()
    operator.policy = wanted()
    yield _step("racks preferred", site, operator)
    yield _step("at rest", site, operator)
    site.signals.override(SICK, OverrideState.DEMOTED)
    yield _step("one demoted", site, operator)
    yield _step("at rest, one demoted", site, operator)
    site.signals.lift(SICK)
    yield _step("promoted", site, operator)
    yield _step("at rest again", site, operator)


def _step(name: str, site: MemorySite, operator: Operator) -> Step:
    moves, plan_seconds = _plan(site, operator)
    before = site.cluster.mutations
    for turns in range(1, MOST_TURNS + 1):
        began = time.process_time()
        said = operator.reconcile()
        turn_seconds = time.process_time() - began
        assert said is not None
        site.clock.advance(30)
        if said.plan.empty:
            return Step(name, moves, plan_seconds, turn_seconds, turns, site.cluster.mutations - before, len(said.held))
    raise AssertionError(f"{name}: not settled after {MOST_TURNS} turns")


def _plan(site: MemorySite, operator: Operator) -> tuple[int, float]:
    """The moves of the plan that the next turn makes, and how long that takes."""
    assert operator.memory is not None
    now, cluster = site.clock.now(), site.cluster.snapshot()
    overrides = tuple(operator.world.signals.overrides())
    facts = Snapshot(now, cluster, operator.memory.record, (), overrides)
    context = Context(facts, judge(facts, operator.policy, operator.memory.verdicts), operator.policy)
    decisions = decide(context)
    began = time.process_time()
    plan = build_plan(context, decisions)
    return len(plan.moves), time.process_time() - began
