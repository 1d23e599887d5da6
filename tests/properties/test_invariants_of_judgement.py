"""Who may be demoted on which evidence: invariant 5 (unknown moves nothing), and a person's request."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import judge
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.undo_record import EntryState
from bellwether.core.planning.plan import build_plan
from bellwether.core.reasons import Reason
from bellwether.core.signals import ListenerReading, OverrideState, Reading, Signal, SignalType
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.simulation.operators import POLICY, Operator
from testkit.simulation.scenario_driver import Play
from testkit.values.builders import context, decisions, demoted, record, signal, site, snapshot
from testkit.values.strategies import clusters, memory_clusters


@given(st.data())
def test_invariant_5_without_fresh_evidence_from_a_quorum_nothing_moves(data: st.DataObject):
    made = site(4, {"orders": 8})
    now = made.clock.now()
    readings = st.sampled_from([Reading.FAILING, Reading.UNKNOWN, Reading.PASSING])
    stale = st.sampled_from([None, POLICY.detection.external_reachability.stale_after_seconds + 1.0, 1000.0])
    blind = data.draw(st.booleans())
    for broker in made.cluster.brokers:
        for source in ("a", "b", "c"):
            # One vantage is fresh, and may be one that reaches no broker; the others have gone silent.
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


@given(st.dictionaries(st.sampled_from("abc"), st.sets(st.sampled_from(["X", "Y", "Z"])), min_size=3))
def test_a_quorum_agrees_on_one_listener(failing: dict[str, set[str]]):
    said = []
    for source, names in failing.items():
        listeners = tuple(ListenerReading(name, Reading.FAILING) for name in sorted(names))
        own = signal(1, Reading.FAILING if names else Reading.PASSING, source=source)
        said += [replace(own, listeners=listeners), *(signal(b, Reading.PASSING, source=source) for b in (2, 3))]
    lost = [name for name in "XYZ" if sum(name in names for names in failing.values()) >= 2]
    found = judge(snapshot(None, *said), POLICY, {})[1]
    assert (found.reason is Reason.EXTERNALLY_UNREACHABLE) == bool(lost)
    if lost:
        named = found.message.split(":")[0].removeprefix("listeners ").removeprefix("listener ").split(", ")
        assert set(named) <= set(lost)


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


@given(clusters(), st.sets(st.integers(1, 5), max_size=2), st.sampled_from(["", "no elections are offered"]))
def test_what_metadata_does_not_show_is_never_moved(seen: Cluster, away: set[int], immovable: str):
    seen = replace(seen, immovable=immovable)
    found = snapshot(seen, undo=record(None, *(demoted(b) for b in away)))
    plan = build_plan(context(found, judge(found, POLICY, {})), decisions(*away))
    moved = [seen.by_key[move.key] for move in plan.moves]
    assert not any(p.leader_unknown for p in moved)
    assert not (immovable and moved)
    assert not any(m.elect and m.leads_next in seen.unlisted for m in plan.moves)
    states = {broker: v.state for broker, v in judge(found, POLICY, {}).items()}
    assert all(states[broker] is HealthState.UNKNOWN for broker in seen.unlisted)
