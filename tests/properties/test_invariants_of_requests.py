"""Requests to Kafka: invariants 1 (only the order), 2 (only in-sync leaders), 3 (availability first), on any cluster.

Invariant 10 is only watched here (no reassignment is touched); ``test_invariants_of_giving_way`` has the rest.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.reasons import Reason
from bellwether.core.signals import Reading
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.simulation.scenario_driver import Play, Step, befalling, perform, racing, scripts, trouble
from testkit.values.strategies import memory_clusters


@given(memory_clusters(), scripts(befalling(), trouble()))
def test_invariant_1_no_request_asks_for_another_set_than_the_one_just_read(cluster: MemoryCluster, script: list[Step]):
    play = Play(cluster)
    perform(play, script)
    assert [s for s in play.watcher.violations if s.startswith("invariant 1")] == []
    assert [s for s in play.watcher.violations if s.startswith("invariant 10")] == []


@given(memory_clusters(), scripts(racing()))
def test_invariant_1_a_set_that_changes_between_check_and_request_is_undone_or_named(
    cluster: MemoryCluster, script: list[Step]
):
    play = Play(cluster)
    for _, act in script:
        act(play)
        before = {p.key: p for p in play.site.cluster.partitions()}
        sent = play.operator.reconcile()
        after = {p.key: p for p in play.site.cluster.partitions()}
        touched = {h.key for h in sent.result.touched} if sent else set()
        named = {(h.topic, h.key.partition) for h in sent.result.touched} if sent else set()
        ours = set(play.watcher.read)
        for key, partition in after.items():
            old = before.get(key)
            if old is not None and partition.reassigning and not old.reassigning and partition.name in ours:
                foreign = set(partition.replicas) - set(partition.removing)
                assert key in touched or partition.name in named or foreign != set(old.replicas), (old, partition)
        play.site.clock.advance(1)


@given(memory_clusters(), scripts(befalling(), trouble()))
def test_invariant_2_no_election_of_a_replica_outside_the_isr(cluster: MemoryCluster, script: list[Step]):
    play = Play(cluster)
    perform(play, script)
    assert [s for s in play.watcher.violations if s.startswith("invariant 2")] == []
    assert all(p.leader is None or p.leader in p.isr for p in cluster.partitions())


@given(memory_clusters(), scripts(befalling(), trouble()), st.integers(0, 4))
def test_invariant_3_a_demoted_broker_leads_only_where_a_named_reason_holds_the_move(
    cluster: MemoryCluster, script: list[Step], sick: int
):
    play = Play(cluster)
    perform(play, script)
    play.hear()
    play.say(sick, Reading.FAILING)
    # Long enough for a contested order to be written again.
    play.reconciles(40, seconds=30.0)
    said = play.operator.reports[-1] if play.operator.reports else None
    if not any(b.active for b in cluster.brokers.values()) or said is None:
        return
    held = {h.key: h.reason for h in said.held}
    for p in cluster.partitions():
        if p.leader in said.plan.decisions.demoted:
            assert p.key in held, p
            healthy = [
                b
                for b in p.isr
                if cluster.brokers[b].active and b not in said.plan.decisions.demoted and not p.reassigning
            ]
            assert not healthy or held[p.key] in (Reason.ORDER_OVERWRITTEN, Reason.REASSIGNING), (p, held[p.key])
    assert sum(said.blocked_by_reason.values()) == len(said.held)
