"""The canary's verdict: what a quorum of vantages lost against the cost of a move, and what missing evidence means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.detection.canary import canary
from bellwether.core.detection.findings import Finding, SignalIndex, passing
from bellwether.core.detection.health_states import Evidence, HealthState
from bellwether.core.detection.verdicts import judge
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Canary, Detection, Reachability
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Harm, Reading, Signal, SignalType
from testkit.messages import assert_wording
from testkit.values.builders import cluster, demoted, partition, record, signal, snapshot

GOOD, BAD, DUNNO = Reading.PASSING, Reading.FAILING, Reading.UNKNOWN
DETECTION = Detection(canary=Canary(enabled=True), external_reachability=Reachability(vantages=("a", "b", "c")))


def lost(broker: int, *seconds: float) -> list[Signal]:
    """Signals of vantages a, b, c... by which clients of a broker lost so much; 0 is a passing one."""
    found = []
    for letter, one in zip("abc", seconds, strict=False):
        made = signal(broker, BAD if one else GOOD, kind=SignalType.CANARY, source=letter)
        message = f"probes lost {one} s"
        found.append(replace(made, message=message, harm=Harm(one, 1.0, made.since) if one else None))
    return found


def said(*readings: Reading, age: float | None = 0.0, others: Reading = GOOD) -> list[Signal]:
    """Signals of vantages a, b, c... about broker 1, and ``others`` about brokers 2 and 3."""
    found = []
    for letter, reading in zip("abcd", readings, strict=False):
        for broker, one in ((1, reading), (2, others), (3, others)):
            made = signal(broker, one, source=letter, age_seconds=age)
            found.append(replace(made, type=SignalType.CANARY, message="produce fails"))
    return found


def finding(
    *signals: Signal, reached: Finding | None = None, asked: bool = False, detection: Detection = DETECTION
) -> Finding | None:
    return canary(1, SignalIndex.of(snapshot(None, *signals), detection), reached, asked=asked)


@pytest.mark.parametrize(
    ("signals", "evidence", "reason"),
    [
        pytest.param(said(GOOD, GOOD, GOOD), Evidence.GOOD, Reason.SIGNALS_PASSING, id="all pass"),
        pytest.param(said(BAD, GOOD, GOOD), Evidence.DOUBTFUL, Reason.VANTAGES_DISAGREE, id="one of three"),
        pytest.param(said(BAD, BAD, GOOD), Evidence.BAD, Reason.CANARY_FAILING, id="a quorum"),
        pytest.param(said(BAD, BAD, BAD, age=99), Evidence.GOOD, Reason.SIGNALS_PASSING, id="stale"),
        pytest.param(said(DUNNO, DUNNO, DUNNO), Evidence.GOOD, Reason.SIGNALS_PASSING, id="not measured"),
        pytest.param(said(BAD, BAD, BAD, others=BAD), Evidence.GOOD, Reason.SIGNALS_PASSING, id="blind vantages"),
        pytest.param(said(GOOD, GOOD, GOOD, BAD), Evidence.GOOD, Reason.SIGNALS_PASSING, id="a vantage not named"),
    ],
)
def test_a_quorum_of_vantages_decides(signals: list[Signal], evidence: Evidence, reason: Reason) -> None:
    found = finding(*signals)
    assert found is not None
    assert (found.evidence, found.reason) == (evidence, reason)


def test_a_failing_quorum_names_its_vantages_and_what_they_saw() -> None:
    found = finding(*said(BAD, BAD, GOOD))
    assert found is not None
    assert_wording(found.message)


def test_without_a_canary_there_is_no_finding() -> None:
    assert finding() is None


@pytest.mark.parametrize("evidence", [Evidence.GONE, Evidence.DOUBTFUL])
def test_what_reachability_explains_is_not_judged_twice(evidence: Evidence) -> None:
    found = finding(*said(BAD, BAD, BAD), reached=Finding(evidence, Reason.UNREACHABLE, "waiting"))
    assert found is not None
    assert found.evidence is Evidence.DOUBTFUL
    found = finding(*said(BAD, BAD, BAD), reached=passing())
    assert found is not None
    assert found.evidence is Evidence.BAD


@pytest.mark.parametrize(
    ("seconds", "evidence", "reason"),
    [
        pytest.param((0.9, 0.9, 0.9), Evidence.GOOD, Reason.SIGNALS_PASSING, id="less than a third of the cost"),
        pytest.param((2.0, 2.0, 2.0), Evidence.DOUBTFUL, Reason.HARM_BELOW_COST, id="less than the cost"),
        pytest.param((9.0, 2.0, 0.0), Evidence.DOUBTFUL, Reason.HARM_BELOW_COST, id="a quorum agrees on the smaller"),
        pytest.param((9.0, 9.0, 0.0), Evidence.BAD, Reason.CANARY_FAILING, id="a quorum agrees on more than the cost"),
    ],
)
def test_the_harm_on_which_a_quorum_agrees_is_weighed(
    seconds: tuple[float, ...], evidence: Evidence, reason: Reason
) -> None:
    found = finding(*lost(1, *seconds), *lost(2, 0, 0, 0), *lost(3, 0, 0, 0))
    assert found is not None
    assert (found.evidence, found.reason) == (evidence, reason)


@pytest.mark.parametrize(
    ("peers", "reason"),
    [
        pytest.param([(0, 0, 0), (9, 9, 9)], Reason.CANARY_FAILING, id="one peer loses as much, the other nothing"),
        pytest.param([(9, 9, 0), (9, 9, 0), (0, 0, 0)], Reason.SYSTEMIC_CAUSE, id="most of its peers lose as much"),
        pytest.param(
            [(9, 0, 0), (9, 0, 0), (0, 0, 0)], Reason.CANARY_FAILING, id="its peers lose as much at one vantage"
        ),
        pytest.param([], Reason.SYSTEMIC_CAUSE, id="no peer to compare with"),
    ],
)
def test_the_peers_decide_whose_fault_it_is(peers: list[tuple[float, ...]], reason: Reason) -> None:
    others = [one for broker, seconds in enumerate(peers, 2) for one in lost(broker, *seconds)]
    scene = snapshot(cluster(partition(), brokers=4), *lost(1, 10, 10, 0), *others)
    found = canary(1, SignalIndex.of(scene, DETECTION), None, asked=False)
    assert found is not None
    assert found.reason is reason


def test_harm_that_has_ended_demotes_no_broker() -> None:
    over = [replace(s, harm=replace(s.harm, ongoing=False)) for s in lost(1, 9, 9, 9) if s.harm is not None]
    found = finding(*over, *lost(2, 0, 0, 0), *lost(3, 0, 0, 0))
    assert found is not None
    assert found.reason is Reason.HARM_BELOW_COST
    assert_wording(found.change)


def test_a_demoted_broker_whose_canary_still_fails_is_not_well_however_little_its_clients_lose() -> None:
    scene = snapshot(None, *lost(1, 0.5, 0.5, 0.5), *lost(2, 0, 0, 0), undo=record(None, demoted(1)))
    found = canary(1, SignalIndex.of(scene, DETECTION), None, asked=False)
    assert found is not None
    assert found.evidence is Evidence.DOUBTFUL


@pytest.mark.parametrize(("readings", "missing"), [((DUNNO, GOOD, DUNNO), True), ((GOOD, GOOD, DUNNO), False)])
def test_broker_that_canary_demoted_needs_quorum_that_passes(readings: tuple[Reading, ...], missing: bool) -> None:
    found = finding(*said(*readings), asked=True)
    assert found is not None
    assert (found.evidence is Evidence.MISSING) is missing


def test_failing_canary_makes_broker_sick_only_if_policy_uses_it() -> None:
    reach = [signal(b, GOOD, source=s) for b in (1, 2, 3) for s in "abc"]
    scene = snapshot(None, *said(BAD, BAD, BAD), *reach)
    verdict = judge(scene, Policy(name="main", detection=DETECTION), {})[1]
    assert (verdict.state, verdict.reason) == (HealthState.SICK, Reason.CANARY_FAILING)
    without = replace(DETECTION, canary=Canary(enabled=False))
    assert judge(scene, Policy(name="main", detection=without), {})[1].state is HealthState.HEALTHY


def test_blind_vantage_that_sees_again_is_counted_for_every_broker() -> None:
    policy = Policy(name="main", detection=DETECTION)
    reach = [signal(b, GOOD, source=s) for b in (1, 2, 3) for s in "abc"]
    before = judge(snapshot(None, *said(BAD, BAD, BAD, others=BAD), *reach), policy, {})
    assert before[1].state is HealthState.HEALTHY
    after = judge(snapshot(None, *said(BAD, BAD, BAD, others=GOOD), *reach), policy, before)
    assert after[1].state is HealthState.SICK


def test_missing_canary_does_not_keep_other_demotions() -> None:
    undo = record(None, replace(demoted(1), reason=Reason.STORAGE_SLOW))
    reach = [signal(b, GOOD, source=s) for b in (1, 2, 3) for s in "abc"]
    scene = snapshot(None, *said(DUNNO, DUNNO, DUNNO), *reach, undo=undo)
    facts = judge(scene, Policy(name="main", detection=DETECTION), {})[1]
    assert facts.reason is not Reason.CANARY_FAILING
