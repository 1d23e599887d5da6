"""What outlives a process: invariants 6 (record first) and 7 (one mover), whatever dies, is lost or arrives late."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.signals import Reading
from bellwether.testing.fault_injection import Fate, Faults
from bellwether.testing.memory_cluster import MemoryCluster
from testkit.simulation.operators import GRACE_SECONDS, Operator
from testkit.simulation.scenario_driver import Play, Step, perform, scripts, trouble
from testkit.values.builders import site
from testkit.values.strategies import memory_clusters


@given(memory_clusters(), scripts(trouble()))
def test_invariant_6_whatever_dies_or_is_lost_the_baselines_come_back_exactly(
    cluster: MemoryCluster, script: list[Step]
):
    play = Play(cluster)
    baseline = play.orders
    perform(play, script)
    assert [s for s in play.watcher.violations if s.startswith("invariant 6")] == []
    play.calm()
    play.everyone(Reading.PASSING)
    play.succeed()
    play.reconciles(90)
    assert play.orders == baseline
    assert all(p.leader == p.replicas[0] for p in cluster.partitions())
    assert play.site.store.record is not None
    assert play.site.store.record.empty


@given(st.integers(0, 3), st.booleans(), st.floats(0, GRACE_SECONDS - 1), st.sampled_from(["reorder", "elect"]))
def test_invariant_7_a_batch_that_arrives_after_a_take_over_is_undone(
    after: int, healed: bool, delay: float, kind: str
):
    made = site(4, {"orders": 8, "__consumer_offsets": 4})
    for broker in made.cluster.brokers:
        made.signals.say(broker, Reading.PASSING)
    baseline = {p.key: p.replicas for p in made.cluster.partitions()}
    faults = Faults()
    old = Operator(made, identity="old", faults=faults)
    old.reconciles(1)
    made.signals.say(1, Reading.FAILING)
    faults.fail_next(kind, Fate.LATE, after=after)
    old.reconciles(1)
    made.clock.advance(20)
    if healed:
        made.signals.say(1, Reading.PASSING)
    new = Operator(made, identity="new")
    new.reconciles(3)
    made.clock.advance(delay)
    faults.deliver()
    old.reconciles(2)
    assert old.fenced
    new.reconciles(60)
    if not healed:
        assert made.cluster.snapshot().leaders()[1] == 0
        made.signals.say(1, Reading.PASSING)
        new.reconciles(60)
    assert {p.key: p.replicas for p in made.cluster.partitions()} == baseline
    assert made.cluster.snapshot().leaders()[1] == 3


@given(st.floats(0, 5))
def test_invariant_7_nothing_is_sent_when_the_lease_does_not_outlast_the_request(left: float):
    made = site()
    for broker in made.cluster.brokers:
        made.signals.say(broker, Reading.PASSING)
    operator = Operator(made)
    operator.reconciles(1)
    made.signals.say(1, Reading.FAILING)
    operator.world.leadership.seconds = left  # type: ignore[attr-defined]
    before = made.cluster.mutations
    operator.reconcile()
    assert (made.cluster.mutations == before) == (left <= operator.world.leaders.request_timeout_seconds)
