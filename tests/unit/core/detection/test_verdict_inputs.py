"""Inputs of a Healthy verdict: which of them, when they change, cause a broker to be judged again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict, judge
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.settings.detection import Detection, Reachability
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import ListenerReading, Reading, Signal, SignalType
from testkit.messages import assert_wording
from testkit.values.builders import after, cluster, demoted, partition, record, signal, snapshot
from testkit.values.vantage_signals import BAD, DUNNO, GOOD, POLICY, words


def disks(*latencies: float) -> list[Signal]:
    kind = SignalType.STORAGE_LATENCY
    return [signal(b, GOOD, kind=kind, source="d", latency_seconds=s) for b, s in enumerate(latencies, 1)]


def said(*signals: Signal, seconds: float = 1.0) -> Snapshot:
    """A later turn; its signals were read once more."""
    return snapshot(cluster(partition()), *map(replace, signals), now=after(seconds))


WELL = [*words(GOOD, GOOD), *disks(0.001, 0.002, 0.003)]


@pytest.fixture
def before() -> dict[int, Verdict]:
    return judge(snapshot(None, *WELL), POLICY, {})


def test_healthy_broker_of_which_nothing_is_new_keeps_very_verdict(before: dict[int, Verdict]):
    found = judge(said(*WELL, seconds=86_400), replace(POLICY, detection=replace(POLICY.detection)), before)
    assert [found[b] is before[b] for b in (1, 2, 3)] == [True] * 3


def test_an_age_within_its_limits_is_nothing_new(before: dict[int, Verdict]):
    older = [replace(s, age_seconds=9.9) for s in WELL]
    assert judge(said(*older), POLICY, before)[1] is before[1]


def test_a_change_of_one_broker_leaves_the_verdicts_of_others(before: dict[int, Verdict]):
    found = judge(said(*words(BAD, GOOD), *disks(0.001, 0.002, 0.003)), POLICY, before)
    assert found[1].state is HealthState.SUSPECT
    assert [found[b] is before[b] for b in (2, 3)] == [True, True]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda s: replace(s, reading=BAD), id="another reading"),
        pytest.param(lambda s: replace(s, message="slower"), id="another message"),
        pytest.param(lambda s: replace(s, since=after(1)), id="another time"),
        pytest.param(lambda s: replace(s, age_seconds=10.5), id="it has gone stale"),
        pytest.param(lambda s: replace(s, age_seconds=None), id="it was never seen"),
        pytest.param(lambda s: replace(s, control=DUNNO), id="another control"),
        pytest.param(lambda s: replace(s, listeners=(ListenerReading("X", DUNNO),)), id="a listener more"),
        pytest.param(lambda s: replace(s, directory="/b"), id="another log directory"),
        pytest.param(lambda s: replace(s, metadata_log=True), id="the metadata log in it"),
    ],
)
def test_a_changed_signal_is_judged_again(change: Callable[[Signal], Signal], before: dict[int, Verdict]):
    assert judge(said(change(WELL[0]), *WELL[1:]), POLICY, before)[1] is not before[1]


def test_controlled_shutdown_is_noted_though_signals_stay_same(before: dict[int, Verdict]):
    leaving = snapshot(cluster(partition(isr=(2, 3), leader=2)), *WELL, now=after(1))
    assert judge(leaving, POLICY, before)[1].away == after(1)


def test_the_price_of_syncs_follows_how_much_a_broker_leads():
    kind = SignalType.STORAGE_LATENCY
    syncs = [replace(signal(b, GOOD, kind=kind, source="d"), value=2.0) for b in (1, 2, 3)]
    few = judge(snapshot(cluster(partition()), *words(GOOD, GOOD), *syncs), POLICY, {})
    many = cluster(*(partition(index=n) for n in range(4)))
    now = judge(snapshot(many, *words(GOOD, GOOD), *syncs, now=after(1)), POLICY, few)
    assert now[1].change == judge(snapshot(many, *words(GOOD, GOOD), *syncs), POLICY, {})[1].change


def test_vantage_removed_from_the_policy_is_ignored_for_all_brokers(before: dict[int, Verdict]):
    policy = Policy(name="main", detection=Detection(external_reachability=Reachability(vantages=("a",))))
    found = judge(said(*WELL), policy, before)
    assert_wording({f.ignored_because for f in found[2].facts})


def test_a_new_vantage_raises_the_quorum_for_all_brokers(before: dict[int, Verdict]):
    found = judge(said(*WELL, *(signal(3, GOOD, source=v) for v in "cd")), POLICY, before)
    assert found[1].state is HealthState.UNKNOWN


def test_a_vantage_that_reaches_another_broker_counts_for_all_again():
    blind = [signal(b, BAD, source="c") for b in (1, 2, 3)]
    well = judge(snapshot(None, *WELL, *blind), POLICY, {})
    assert (well[1].state, well[1].inputs is None) == (HealthState.HEALTHY, False)
    seeing = [*blind[:2], replace(blind[2], reading=GOOD)]
    assert judge(said(*WELL, *seeing), POLICY, well)[1].state is HealthState.SUSPECT


def test_quiet_broker_is_judged_again_when_its_peers_get_traffic():
    def sockets(*heard: Reading) -> list[Signal]:
        kind = SignalType.SELF_REACHABILITY
        return [signal(b, r, kind=kind, source=f"broker-{b}") for b, r in enumerate(heard, 1)]

    night = judge(snapshot(None, *sockets(BAD, BAD, BAD)), POLICY, {})
    assert night[1].state is HealthState.HEALTHY
    assert judge(said(*sockets(BAD, GOOD, GOOD)), POLICY, night)[1].state is HealthState.SUSPECT


@pytest.mark.parametrize("state", [s for s in HealthState if s is not HealthState.HEALTHY])
def test_no_other_verdict_stands_by_itself(state: HealthState):
    found = {
        HealthState.SUSPECT: snapshot(None, *words(BAD, GOOD)),
        HealthState.SICK: snapshot(None, *words(BAD, BAD)),
        HealthState.DOWN: snapshot(cluster(partition(), fenced=[1]), *words(GOOD, GOOD)),
        HealthState.RECOVERING: snapshot(None, *words(GOOD, GOOD), undo=record(None, demoted(1))),
        HealthState.UNKNOWN: snapshot(None, *words(GOOD, DUNNO)),
    }[state]
    verdict = judge(found, POLICY, {})[1]
    assert (verdict.state, verdict.inputs) == (state, None)


def test_nor_does_that_of_well_broker_that_waits_for_person():
    undo = record(None, demoted(1))
    found: dict[int, Verdict] = {}
    for seconds in range(0, 61, 10):
        found = judge(snapshot(None, *WELL, undo=undo, now=after(seconds)), POLICY, found)
    well = judge(snapshot(None, *WELL, undo=undo, now=after(70)), POLICY, found)
    assert (well[1].state, well[1].inputs) == (HealthState.HEALTHY, None)


def test_metadata_is_judged_even_if_the_inputs_are_equal(before: dict[int, Verdict]):
    fenced = snapshot(cluster(partition(), fenced=[1]), *WELL)
    assert judge(fenced, POLICY, before)[1].state is HealthState.DOWN
