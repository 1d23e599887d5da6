"""What limits are held against is what plans are made of, for any small problem, by way of a real store."""

from __future__ import annotations

from collections import Counter
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.model.cluster import PartitionKey
from bellwether_load.plan.problem import NO_BROKER, Problem
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.plan_store import FilePlanStore
from testkit.loads.approved_plans import write_plan
from testkit.loads.plan_verification import load_problems
from testkit.loads.small_planner import planned, write_loads

NAME = "kafka.main.at-1"

Posed = tuple[Problem, dict[PartitionKey, tuple[float, float | None]]]


@given(load_problems())
def test_the_operator_counts_the_same_loads_as_a_rechecked_plan(drawn: Posed) -> None:
    """Less than a byte/s more for each load, which are rounded up: none is taken for unmeasured."""
    posed, known = drawn
    with TemporaryDirectory() as folder:
        store = Store.open(folder)
        shelf = FilePlanStore(store, posed.header.cluster_id, posed.header.policy)
        digest = shelf.put_problem(NAME, posed)
        write_loads(store, NAME, known)
        write_plan(store, *planned(posed, known))
        plan = shelf.plan_for(NAME, digest).plan  # rechecked
        capacities = {b.id: b.capacity for b in posed.header.brokers}
        found = shelf.measured(NAME, posed.header.objective, capacities)
    led: Counter[int] = Counter()
    for slot in posed.partitions:
        if slot.leader != NO_BROKER:
            led[slot.leader] += found.partitions.get(slot.key, 0)
    for broker in plan.brokers:
        said = round(broker.before * broker.capacity)
        carried = 100 * (found.following.get(broker.id, 0) + led[broker.id])
        assert said <= carried < said + 100 * (1 + len(posed.partitions))
        assert found.capacities[broker.id] == broker.capacity


@given(load_problems())
def test_exactly_what_was_measured_is_known(drawn: Posed) -> None:
    posed, known = drawn
    with TemporaryDirectory() as folder:
        store = Store.open(folder)
        shelf = FilePlanStore(store, posed.header.cluster_id, posed.header.policy)
        shelf.put_problem(NAME, posed)
        write_loads(store, NAME, known)
        found = shelf.measured(NAME, posed.header.objective, {})
    assert set(found.partitions) == {s.key for s in posed.partitions if s.key in known}
    assert found.measured_at == posed.header.made_at


@given(load_problems(), st.integers(1, 5))
def test_load_of_move_is_what_it_is_held_against(drawn: Posed, more: int) -> None:
    posed, known = drawn
    heavier = {key: (rate * more, consumed) for key, (rate, consumed) in known.items()}
    with TemporaryDirectory() as folder:
        store = Store.open(folder)
        shelf = FilePlanStore(store, posed.header.cluster_id, posed.header.policy)
        shelf.put_problem(NAME, posed)
        write_loads(store, NAME, heavier)
        found = shelf.measured(NAME, posed.header.objective, {})
    _, moves = planned(posed, heavier)
    assert {m.key: -(-m.load // 100) for m in moves} == {m.key: found.partitions[m.key] for m in moves}
