"""The order in which leaders move, for any cluster: what clients wait for comes first, and no move is lost by it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from bellwether.core.execution.reorder_checks import batches
from bellwether.core.model.cluster import Cluster
from bellwether.core.planning.plan import MoveKind, build_plan
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Election
from bellwether.ports.kafka import Reorder
from bellwether.simulation.memory_kafka import MemoryMover
from bellwether.simulation.replayed_cluster import ReplayedCluster
from testkit.values.builders import context, decisions, snapshot
from testkit.values.strategies import clusters

DEMOTED = st.sets(st.integers(1, 5), min_size=1, max_size=2)
SIZES = st.builds(Election, batch_size=st.integers(1, 5), internal_batch_size=st.integers(1, 3))


@given(clusters(), DEMOTED, SIZES)
def test_every_leader_moves_before_first_partition_that_is_only_reordered(
    seen: Cluster, demoted: set[int], sizes: Election
):
    plan = build_plan(context(snapshot(seen), {}), decisions(*demoted))
    sent = [move for batch in batches(plan, sizes) for move in batch]
    elections = sum(move.elect for move in sent)
    assert all(move.elect for move in sent[:elections])
    assert sent == list(plan.moves), "nothing is dropped or sent twice"
    assert len({move.key for move in sent}) == len(sent)


@given(clusters(), DEMOTED, SIZES)
def test_no_batch_is_larger_than_the_policy_allows_or_lets_a_leader_wait_for_another_order(
    seen: Cluster, demoted: set[int], sizes: Election
):
    for batch in batches(build_plan(context(snapshot(seen), {}), decisions(*demoted)), sizes):
        assert len({move.elect for move in batch}) == 1
        coordinators = any(move.internal and move.elect for move in batch)
        assert (
            0 < len(batch) <= (min(sizes.batch_size, sizes.internal_batch_size) if coordinators else sizes.batch_size)
        )


@given(clusters(), DEMOTED)
def test_a_demoted_broker_loses_leaders_before_another_one_gets_its_own_back(seen: Cluster, demoted: set[int]):
    kinds = [m.kind for m in build_plan(context(snapshot(seen), {}), decisions(*demoted)).moves if m.elect]
    assert kinds == sorted(kinds, key=[MoveKind.DISPLACE, MoveKind.RESTORE].index)


@settings(max_examples=200)
@given(clusters(), DEMOTED, st.sets(st.integers(1, 5), min_size=2))
def test_a_plan_has_no_order_that_kafka_refuses_and_holds_only_what_it_refuses(
    seen: Cluster, demoted: set[int], gone: set[int]
):
    seen = replace(seen, removed=frozenset(gone).difference(seen.brokers))
    plan = build_plan(context(snapshot(seen), {}), decisions(*demoted))
    mover = MemoryMover(ReplayedCluster(seen))
    names = {p.key: p.name for p in seen.partitions}
    for move in plan.moves:
        if move.reorders:
            assert mover.reorder([Reorder(move.name, move.order)])[move.name].ok, move
    for hold in plan.holds:
        if hold.reason is Reason.REMOVED_BROKER:
            name = names[hold.key]
            assert mover.reorder([Reorder(name, plan.targets[hold.key])])[name].error == "INVALID_REPLICA_ASSIGNMENT"
