"""Invariant 10, for any brokers, verdicts, demotions and overrides: what waits while others work on the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.demotion.decisions import HARD_FAULTS, Decisions, decide
from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.strimzi import Strimzi
from bellwether.core.model.undo_record import Cause
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Demotion, Mode, Policy, Promotion, PromotionMode
from bellwether.core.signals import Override, OverrideState
from testkit.values.builders import cluster, demoted, override, partition, record, snapshot, verdict

SICK = (
    *sorted(HARD_FAULTS),
    Reason.REPLICATION_LAGGING,
    Reason.SIGNAL_FAILING,
)
BUSY = st.one_of(
    st.just(Strimzi(namespace="kafka", name="c", listener="tls", paused=True)),
    st.just(Strimzi(namespace="kafka", name="c", listener="tls", rebalancing=("full",))),
)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Snapshot, dict[int, Verdict], Policy]:
    """A cluster of 3 to 9 brokers, some demoted by signals or people, some overridden, some gone, in any health."""
    count = draw(st.integers(3, 9))
    ids = list(range(1, count + 1))
    seen = _ring(ids)
    judged = {
        b: verdict(b, state, draw(st.sampled_from(SICK)) if state is HealthState.SICK else None)
        for b in ids
        for state in [draw(st.sampled_from(HealthState))]
    }
    before = [demoted(b, draw(st.sampled_from(Cause))) for b in draw(st.sets(st.sampled_from([*ids, count + 1])))]
    words: list[Override] = [
        override(b, draw(st.sampled_from(OverrideState)), "a person says so")
        for b in draw(st.sets(st.sampled_from(ids), max_size=3))
    ]
    policy = Policy(
        name="main",
        mode=Mode.ENFORCE,
        demotion=Demotion(dwell_seconds=0, max_brokers=draw(st.integers(1, 5))),
        promotion=Promotion(mode=draw(st.sampled_from(PromotionMode))),
    )
    return snapshot(seen, undo=record(None, *before), overrides=words), judged, policy


def _ring(ids: Sequence[int]) -> Cluster:
    rings = [partition(index=i, replicas=[ids[(i + k) % len(ids)] for k in range(3)]) for i in range(len(ids))]
    return cluster(*rings, brokers=list(ids))


def both(scene: tuple[Snapshot, dict[int, Verdict], Policy], busy: Strimzi) -> tuple[Decisions, Decisions]:
    """What is decided without and with an external operation."""
    facts, judged, policy = scene
    return decide(Context(facts, judged, policy)), decide(Context(replace(facts, strimzi=busy), judged, policy))


@given(scenes(), BUSY)
def test_only_a_person_promotes_whom_the_cluster_still_has(
    scene: tuple[Snapshot, dict[int, Verdict], Policy], busy: Strimzi
):
    _, giving_way = both(scene, busy)
    asked = {o.broker for o in scene[0].overrides if o.state is OverrideState.PROMOTED}
    assert set(giving_way.promoted) <= asked | (set(scene[0].record.demoted) - set(scene[1]))


@given(scenes(), BUSY)
def test_during_external_operations_only_hard_faults_or_people_demote(
    scene: tuple[Snapshot, dict[int, Verdict], Policy], busy: Strimzi
):
    facts, judged, _ = scene
    _, giving_way = both(scene, busy)
    asked = {o.broker for o in facts.overrides if o.state is OverrideState.DEMOTED}
    for broker in set(giving_way.demoted) - set(facts.record.demoted) - asked:
        assert judged[broker].reason in HARD_FAULTS


@given(scenes(), BUSY)
def test_every_word_of_person_has_effect_that_it_has_otherwise(
    scene: tuple[Snapshot, dict[int, Verdict], Policy], busy: Strimzi
):
    at_rest, giving_way = both(scene, busy)
    for word in scene[0].overrides:
        assert (word.broker in giving_way.demoted) == (word.broker in at_rest.demoted)


@given(scenes(), BUSY)
def test_broker_that_waits_for_it_has_hold_with_its_reason(
    scene: tuple[Snapshot, dict[int, Verdict], Policy], busy: Strimzi
):
    at_rest, giving_way = both(scene, busy)
    lack = busy.external_operation
    assert lack is not None
    for broker in set(at_rest.promoted) & set(giving_way.demoted):
        hold = giving_way.hold_of(broker)
        assert hold is not None
        assert hold.reason is lack.reason


@given(scenes())
def test_a_strimzi_at_rest_changes_nothing(scene: tuple[Snapshot, dict[int, Verdict], Policy]):
    at_rest, still = both(scene, Strimzi(namespace="kafka", name="c", listener="tls"))
    assert at_rest == still
