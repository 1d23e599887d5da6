"""Who may be demoted on which evidence: invariant 5 (unknown moves nothing), and a person's word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.model.undo_record import EntryState
from bellwether.core.signals import OverrideState, Reading, Signal, SignalType
from bellwether.testing.memory_cluster import MemoryCluster
from testkit.simulation.operators import POLICY, Operator
from testkit.simulation.scenario_driver import Play
from testkit.values.builders import site
from testkit.values.strategies import memory_clusters


@given(st.data())
def test_invariant_5_without_fresh_evidence_from_a_quorum_nothing_moves(data: st.DataObject):
    made = site(4, {"orders": 8})
    now = made.clock.now()
    readings = st.sampled_from([Reading.FAILING, Reading.UNKNOWN, Reading.PASSING])
    stale = st.sampled_from([None, POLICY.detection.reachability.stale_after_seconds + 1.0, 1000.0])
    blind = data.draw(st.booleans())
    for broker in made.cluster.brokers:
        for source in ("a", "b", "c"):
            # One vantage is fresh, and may be one that sees nobody; the others have gone silent.
            age = 0.0 if source == "a" else data.draw(stale)
            reading = Reading.FAILING if blind and source == "a" else data.draw(readings)
            made.signals.put(
                Signal(broker, SignalType.EXTERNAL_REACHABILITY, source, reading, now, age, control=Reading.PASSING)
            )
    before = made.cluster.mutations
    Operator(made).reconciles(20)
    assert made.cluster.mutations == before
    assert made.store.record is not None
    assert made.store.record.empty


@given(memory_clusters(), st.integers(0, 4), st.integers(0, 40))
def test_an_override_demotes_and_its_end_promotes_exactly(cluster: MemoryCluster, pick: int, wait: int):
    play = Play(cluster)
    baseline = play.orders
    known = sorted(cluster.brokers)
    broker = known[pick % len(known)]
    play.site.signals.override(broker, OverrideState.DEMOTED, "disk swap")
    play.reconciles(4)
    alone = sum(1 for p in cluster.partitions() if p.replicas == (broker,))
    assert cluster.snapshot().leaders()[broker] == alone
    play.reconciles(wait)
    play.site.signals.lift(broker)
    play.reconciles(60)
    assert play.orders == baseline
    assert play.site.store.record is not None
    assert not [e for e in play.site.store.record.entries.values() if e.state is EntryState.DISPLACED]
