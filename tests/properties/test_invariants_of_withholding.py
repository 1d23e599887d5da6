"""Plans with brokers on their way back, for any cluster: invariants 1 to 3, and what a wave may and may not do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.model.cluster import Cluster
from bellwether.core.model.restoration_waves import ReturningBroker
from bellwether.core.planning.plan import build_plan
from testkit.values.builders import START, context, decisions, snapshot
from testkit.values.strategies import clusters

BROKERS = st.integers(1, 5)


@st.composite
def returning(draw: st.DrawFn) -> list[ReturningBroker]:
    return [ReturningBroker(b, draw(st.integers(0, 100)), START, START) for b in draw(st.sets(BROKERS, max_size=3))]


@given(clusters(), returning(), st.sets(BROKERS, max_size=2))
def test_invariant_1_and_2_a_plan_with_waves_asks_for_orders_of_the_same_replicas_and_elects_in_sync(
    seen: Cluster, back: list[ReturningBroker], demoted: set[int]
):
    plan = build_plan(
        context(snapshot(seen), {}), decisions(*demoted, back=[w for w in back if w.broker not in demoted])
    )
    for move in plan.moves:
        partition = seen.by_key[move.key]
        assert sorted(move.order) == sorted(partition.replicas)
        assert not partition.reassigning
        if move.elect:
            assert move.leads_next in partition.isr
            assert move.leads_next in seen.live


@given(clusters(), returning(), st.sets(BROKERS, max_size=2))
def test_invariant_3_waves_choose_able_leaders_that_are_not_demoted(
    seen: Cluster, back: list[ReturningBroker], demoted: set[int]
):
    waves = [w for w in back if w.broker not in demoted]
    plan = build_plan(context(snapshot(seen)), decisions(*demoted, back=waves))
    for key, target in plan.targets.items():
        partition = seen.by_key[key]
        able = (set(partition.isr) & seen.live) - demoted
        if able and not partition.reassigning and not demoted.isdisjoint(partition.replicas):
            assert target[0] in able


@given(clusters(), returning())
def test_withheld_partitions_are_led_by_others_or_stay_in_place(seen: Cluster, back: list[ReturningBroker]):
    waves = {w.broker: w for w in back}
    plan = build_plan(context(snapshot(seen)), decisions(back=back))
    for partition in seen.partitions:
        first = partition.replicas[0]
        waits = first in waves and waves[first].withholds(partition.key) and not partition.reassigning
        free = [
            b
            for b in partition.replicas
            if b in partition.isr and b in seen.live and not (b in waves and waves[b].withholds(partition.key))
        ]
        target = plan.targets.get(partition.key, partition.replicas)
        if waits and free:
            assert target[0] in free
            others = [b for b in partition.replicas if b != target[0]]
            assert list(target[1:]) == others
        else:
            assert target == partition.replicas or not free


@given(clusters(), returning())
def test_finished_waves_and_no_waves_give_the_same_plan(seen: Cluster, back: list[ReturningBroker]):
    done = [ReturningBroker(w.broker, 100, w.since, w.waved_at) for w in back]
    plain = build_plan(context(snapshot(seen)), decisions())
    assert build_plan(context(snapshot(seen)), decisions(back=done)).moves == plain.moves
