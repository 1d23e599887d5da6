"""Invariant 9: other people's topics, replica sets and orders are respected, and fought over ever more rarely."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.execution.recovery import project_baseline
from bellwether.core.signals import Reading
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.simulation.invariant_watcher import Watcher
from testkit.simulation.operators import Operator
from testkit.simulation.scenario_driver import Play
from testkit.values.builders import site


@given(st.permutations([1, 2, 3]), st.integers(0, 5), st.integers(0, 30), st.booleans())
def test_invariant_9_a_foreign_order_becomes_the_baseline(foreign: list[int], index: int, wait: int, suspended: bool):
    made = site(3, {"orders": 6}).well()
    operator = Operator(made).reconciles(1)
    made.signals.say(1, Reading.FAILING)
    operator.reconciles(3)
    assert made.store.record is not None
    p = made.cluster.partition("orders", index)
    entry = made.store.record.entries.get(p.key)
    known = entry is not None and tuple(foreign) in (entry.baseline, entry.written, entry.replaced)
    known = known or (entry is not None and entry.may_arrive(tuple(foreign)))
    before = entry.baseline if entry is not None else p.replicas
    acting, operator.policy = operator.policy, replace(operator.policy, suspend=suspended)
    made.cluster.foreign_reorder(p.name, foreign)
    operator.reports.clear()
    operator.reconciles(wait)
    assert not suspended or sum(len(r.notes) for r in operator.reports) <= 1
    operator.policy = acting
    made.signals.say(1, Reading.PASSING)
    operator.reconciles(90, seconds=5)
    wanted = before if known else tuple(foreign)
    assert made.cluster.partition("orders", index).replicas == wanted


@given(st.integers(0, 5), st.sampled_from([(4, 2, 3), (1, 4, 3), (2, 4, 1), (3, 2, 4), (4, 3, 2, 1)]))
def test_invariant_9_another_replica_set_is_projected_never_forced(index: int, target: tuple[int, ...]):
    made = MemoryCluster(4)
    made.create_topic("orders", assignment=[(1, 2, 3), (2, 3, 1), (3, 1, 2)] * 2)
    play = Play(made)
    play.reconciles(1)
    play.site.signals.say(1, Reading.FAILING)
    play.reconciles(3)
    p = made.partition("orders", index)
    assert play.site.store.record is not None
    entry = play.site.store.record.entries.get(p.key)
    made.foreign_reassign(p.name, target)
    play.reconciles(2)
    made.finish_reassignments()
    placed = made.partition("orders", index).replicas
    play.reconciles(3)
    play.site.signals.say(1, Reading.PASSING)
    play.reconciles(60)
    after = made.partition("orders", index)
    assert set(after.replicas) == set(target)
    assert after.replicas == (placed if entry is None else project_baseline(entry.baseline, placed))


@given(st.sampled_from(["delete", "recreate"]), st.integers(0, 10))
def test_invariant_9_another_topic_id_drops_baseline_and_names_it(what: str, wait: int):
    made = site(3, {"orders": 6, "others": 3}).well()
    operator = Operator(made).reconciles(1)
    made.signals.say(1, Reading.FAILING)
    operator.reconciles(wait)
    old = {p.key for p in made.cluster.partitions(["orders"])}
    assert made.store.record is not None
    had = old & set(made.store.record.entries)
    if what == "delete":
        made.cluster.delete_topic("orders")
    else:
        made.cluster.recreate_topic("orders")
    operator.reconciles(40)
    assert not old & set(made.store.record.entries)
    named = {n.partition for r in operator.reports for n in r.notes if n.topic == "orders"}
    assert named >= {k.partition for k in had}
    assert made.cluster.snapshot().leaders()[1] == 0


@pytest.mark.parametrize("every", [1, 2, 5])
def test_invariant_9_contested_orders_are_written_again_ever_more_rarely(every: int):
    made = site(3, {"orders": 1}).well()
    operator = Operator(made)
    watcher = Watcher(made.store)
    operator.world = watcher.around(operator.world)
    operator.reconciles(1)
    made.signals.say(1, Reading.FAILING)
    operator.reconciles(2)
    contested = False
    for _ in range(300):
        made.cluster.foreign_reorder(made.cluster.partition("orders").name, (1, 2, 3))
        operator.reconciles(every)
        contested = contested or bool(operator.reports[-1].condition("Contested").status)
    assert contested
    assert watcher.reorders <= 16
