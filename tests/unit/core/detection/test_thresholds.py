"""Signals judged by their readings alone: who counts, how many must agree, and what silence means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict, judge
from bellwether.core.model.undo_record import DemotedBroker
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection, ReplicationLag
from bellwether.core.settings.policy import Policy
from bellwether.core.settings.source_settings import OnFailing, Plugin, PrometheusRule
from bellwether.core.signals import Reading, Signal, SignalType
from testkit.messages import assert_wording
from testkit.values.builders import demoted, record, signal, snapshot

GOOD, BAD = Reading.PASSING, Reading.FAILING
RULE = PrometheusRule(name="flush", query="q", threshold=1)
DETECTION = Detection(
    prometheus_rules=(RULE, replace(RULE, name="produce", leaders_only=True)),
    plugins=(Plugin(type="MoonPhase", sources=2, on_failing=OnFailing.SUSPECT), Plugin(type="DiskFailure")),
)


def said(kind: str, source: str, reading: Reading = BAD, age: float | None = 0.0) -> Signal:
    made = signal(1, reading, source=source, age_seconds=age)
    return replace(made, type=kind, message=f"{source} says so")


def of_one(*signals: Signal, by: DemotedBroker | None = None, detection: Detection = DETECTION) -> Verdict:
    policy = Policy(name="main", detection=detection)
    undo = record(None, by) if by else record()
    return judge(snapshot(None, *signals, undo=undo), policy, {})[1]


def demoted_by(type_: str) -> DemotedBroker:
    return replace(demoted(1), reason=Reason.SIGNAL_FAILING, signal=type_)


DISK = said("DiskFailure", "zone-a")
FLUSH = said(SignalType.PROMETHEUS, "flush")
LAG = said(SignalType.REPLICATION_LAG, "replication")


@pytest.mark.parametrize(
    ("signals", "state", "reason"),
    [
        pytest.param([DISK], HealthState.SICK, Reason.SIGNAL_FAILING, id="a plug-in of one source"),
        pytest.param([FLUSH], HealthState.SICK, Reason.SIGNAL_FAILING, id="a rule of the policy"),
        pytest.param([LAG], HealthState.SUSPECT, Reason.REPLICATION_LAGGING, id="replication lag only names"),
        pytest.param(
            [said("MoonPhase", "a")], HealthState.SUSPECT, Reason.SIGNAL_FAILING, id="one of two sources is a doubt"
        ),
        pytest.param(
            [said("MoonPhase", "a"), said("MoonPhase", "b")],
            HealthState.SUSPECT,
            Reason.SIGNAL_FAILING,
            id="two of two",
        ),
        pytest.param([replace(DISK, reading=GOOD)], HealthState.HEALTHY, Reason.SIGNALS_PASSING, id="it passes"),
    ],
)
def test_a_failing_reading_is_all_there_is_to_judge(signals: list[Signal], state: HealthState, reason: Reason):
    found = of_one(*signals)
    assert (found.state, found.reason) == (state, reason)


def test_remedy_of_failure_depends_on_needed_sources():
    assert of_one(FLUSH).change == "Prometheus/flush passing"
    assert_wording(of_one(said("MoonPhase", "a"), said("MoonPhase", "b")).change)


@pytest.mark.parametrize(
    "stranger",
    [
        pytest.param(said(SignalType.PROMETHEUS, "removed"), id="a rule that the policy does not have"),
        pytest.param(said("StarSign", "a"), id="a kind that the policy does not have"),
    ],
)
def test_what_the_policy_does_not_watch_says_nothing(stranger: Signal):
    assert of_one(stranger).reason is Reason.NO_EVIDENCE
    assert of_one(stranger, replace(DISK, reading=GOOD)).state is HealthState.HEALTHY


def test_who_wants_lagging_brokers_demoted_gets_them_sick():
    detection = Detection(replication_lag=ReplicationLag(on_failing=OnFailing.DEMOTE))
    assert of_one(LAG, detection=detection).state is HealthState.SICK


def test_what_is_switched_off_says_nothing():
    detection = Detection(replication_lag=ReplicationLag(enabled=False))
    assert of_one(LAG, detection=detection).state is HealthState.UNKNOWN


def test_figure_that_only_leaders_have_does_not_judge_demoted_broker():
    produce, flush = said(SignalType.PROMETHEUS, "produce"), replace(FLUSH, reading=GOOD)
    assert of_one(produce, flush).state is HealthState.SICK
    by = demoted_by(SignalType.PROMETHEUS)
    assert of_one(produce, flush, by=by).state is HealthState.RECOVERING


def test_a_silent_probe_is_ignored_and_others_still_judge():
    silent = replace(DISK, age_seconds=999.0)
    found = of_one(silent, replace(FLUSH, reading=GOOD))
    assert found.state is HealthState.HEALTHY
    assert_wording(found.facts[-1].ignored_because)


def test_silence_keeps_a_demoted_broker_from_being_promoted():
    silent, by = replace(DISK, reading=GOOD, age_seconds=999.0), demoted_by(SignalType.PROMETHEUS)
    assert of_one(replace(DISK, reading=GOOD), replace(FLUSH, reading=GOOD), by=by).state is HealthState.RECOVERING
    assert of_one(silent, replace(FLUSH, reading=GOOD), by=by).state is HealthState.UNKNOWN


def test_evidence_that_has_vanished_does_not_promote_whom_it_demoted():
    healthy = replace(FLUSH, reading=GOOD)
    assert of_one(healthy, by=demoted_by("DiskFailure")).state is HealthState.UNKNOWN
    assert of_one(healthy, by=demoted_by("MoonPhase")).state is HealthState.UNKNOWN


def test_a_verdict_names_the_type_of_the_signal_that_fails():
    assert (of_one(DISK).signal, of_one(replace(DISK, reading=GOOD)).signal) == ("DiskFailure", "")
