"""Signals that failed and passed again between two reconciles."""

from __future__ import annotations

from datetime import datetime

import pytest

from bellwether.core.detection.findings import NOT_REPORTED, EvidenceItem
from bellwether.core.detection.verdicts import passing_since
from bellwether.core.model.known_good import KnownGood
from bellwether.core.signals import Reading
from testkit.values.builders import after


def item(
    since: datetime, reading: Reading = Reading.PASSING, *, source: str = "a", ignored_because: str = ""
) -> EvidenceItem:
    return EvidenceItem("ExternalReachability", source, reading, since, ignored_because=ignored_because)


@pytest.mark.parametrize(
    ("last", "now", "failed"),
    [
        pytest.param([item(after(0))], [item(after(0))], False, id="it passes since the same time"),
        pytest.param([item(after(0))], [item(after(9))], True, id="it passes since a later time"),
        pytest.param([item(after(9))], [item(after(0))], True, id="the prober's clock was set back in between"),
        pytest.param([], [item(after(9))], False, id="the source is new"),
        pytest.param([item(after(0))], [], False, id="the source is gone"),
        pytest.param([item(after(0), Reading.FAILING)], [item(after(9))], False, id="the last verdict saw it fail"),
        pytest.param([item(after(0))], [item(after(9), Reading.FAILING)], False, id="this verdict sees it fail"),
        pytest.param([item(after(0))], [item(after(9), ignored_because="not named")], False, id="it does not count"),
        pytest.param([item(after(0), ignored_because=NOT_REPORTED)], [item(after(9))], True, id="it was stale"),
        pytest.param([item(after(0))], [item(after(9), ignored_because=NOT_REPORTED)], True, id="it is stale"),
        pytest.param(
            [item(after(0)), item(after(1), source="b")],
            [item(after(1), source="b"), item(after(0))],
            False,
            id="another source passes since another time",
        ),
    ],
)
def test_a_passing_signal_that_began_at_another_time_failed_in_between(
    last: list[EvidenceItem], now: list[EvidenceItem], failed: bool
):
    assert KnownGood(passing=passing_since(last)).failed_since(passing_since(now)) is failed


def test_that_a_demoted_broker_had_no_clients_for_a_while_is_no_failure():
    assert passing_since([EvidenceItem("SelfReachability", "a", Reading.PASSING, after(0))]) == {}
