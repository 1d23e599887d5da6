"""Which links are broken, which are known to be well, and what is known of the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.links import LinkEvidence
from bellwether.core.detection.verdicts import judge
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import BrokenLink, Cause, Link
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection, ReplicationLag
from bellwether.core.signals import Reading, Signal, SignalType
from testkit.messages import assert_wording
from testkit.values.builders import after, cluster, demoted, drain, partition, record, signal, snapshot
from testkit.values.vantage_signals import POLICY

PAIR = Link(1, 2)


def lag(broker: int, other: int | None = None, reading: Reading = Reading.PASSING, age: float = 0.0) -> Signal:
    said = signal(broker, reading, kind=SignalType.REPLICATION_LAG, source="replication", age_seconds=age)
    return replace(said, broken_link_to=other)


def facts(*signals: Signal) -> Snapshot:
    return snapshot(cluster(partition(replicas=(1, 2, 3))), *signals)


def evidence(*signals: Signal, **detection: ReplicationLag) -> LinkEvidence:
    return LinkEvidence.of(facts(*signals), Detection(**detection))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("signals", "broken", "well"),
    [
        pytest.param([lag(1, 2), lag(2, 1)], True, False, id="both ends report it"),
        pytest.param([lag(1, 2), lag(2)], False, False, id="one end reports it"),
        pytest.param([lag(1, 2), lag(2, 3), lag(3, 2)], False, False, id="the other end reports another"),
        pytest.param([lag(1), lag(2)], False, True, id="neither end reports it"),
        pytest.param([lag(1), lag(2, 3)], False, True, id="it is about another"),
        pytest.param([lag(1)], False, False, id="one end is silent"),
        pytest.param([lag(1, 2), lag(2, 1, age=600)], False, False, id="one end is stale"),
        pytest.param([lag(1), lag(2, reading=Reading.UNKNOWN)], False, False, id="one end is unknown"),
        pytest.param([lag(1), lag(2, reading=Reading.FAILING)], False, False, id="one end lags behind several"),
        pytest.param([lag(1, 1), lag(2)], False, True, id="itself"),
        pytest.param([lag(1, 9), lag(9, 1), lag(2)], False, True, id="a broker that does not exist"),
        pytest.param([], False, False, id="nothing"),
    ],
)
def test_link_is_broken_or_well_only_by_both_ends(signals: list[Signal], broken: bool, well: bool):
    found = evidence(*signals)
    assert (PAIR in found.broken, found.well(PAIR)) == (broken, well)
    assert all(end in (1, 2, 3) for link in found.broken for end in link)


def test_a_policy_that_measures_no_lag_knows_nothing_of_links():
    off = evidence(lag(1, 2), lag(2, 1), replication_lag=ReplicationLag(enabled=False))
    assert not off.broken
    assert not off.well(PAIR)


def test_a_drained_broker_is_no_evidence():
    asked = replace(facts(lag(1, 2), lag(2, 1)), overrides=(drain(2),))
    assert LinkEvidence.of(asked, Detection()).broken, "its drain is not in force yet"
    drained = replace(asked, record=record(None, demoted(2, Cause.MAINTENANCE)))
    found = LinkEvidence.of(drained, Detection())
    assert not found.broken
    assert not found.well(PAIR)


def test_both_ends_are_suspect_though_only_one_signal_changed():
    before = judge(facts(lag(1, 2), lag(2), lag(3)), POLICY, {})
    assert before[1].state is HealthState.HEALTHY
    found = judge(facts(lag(1, 2), lag(2, 1), lag(3)), POLICY, before)
    for broker, other in ((1, 2), (2, 1)):
        assert (found[broker].state, found[broker].reason) == (HealthState.SUSPECT, Reason.BROKEN_LINK)
        assert_wording(found[broker].message)
        assert found[broker].links == {other}
    assert found[3].state is HealthState.HEALTHY
    again = judge(facts(lag(1), lag(2), lag(3)), POLICY, found)
    assert again[1].state is again[2].state is HealthState.HEALTHY


def test_recorded_link_is_reported_until_leaders_return_if_evidence_exists():
    known = replace(record(), links={PAIR: BrokenLink(PAIR, after(0))})
    found = judge(replace(facts(lag(1), lag(2), lag(3)), record=known), POLICY, {})
    assert (found[1].reason, found[1].links) == (Reason.BROKEN_LINK, frozenset())
    assert_wording(found[1].message)
    unknown = judge(replace(facts(lag(1), lag(3)), record=known), POLICY, {})
    assert unknown[1].reason is Reason.SIGNALS_PASSING


def test_a_demoted_broker_is_judged_without_its_links():
    known = replace(record(None, demoted(1)), links={PAIR: BrokenLink(PAIR, after(0))})
    found = judge(replace(facts(lag(1, 2), lag(2, 1), lag(3)), record=known), POLICY, {})
    assert found[1].reason is not Reason.BROKEN_LINK
