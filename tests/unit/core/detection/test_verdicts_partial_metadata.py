"""Verdicts where metadata shows a part: a broker without the asked listener, one with a failed log directory."""

from __future__ import annotations

import pytest

from bellwether.core.detection.health_states import HealthState
from bellwether.core.reasons import Reason
from bellwether.core.signals import Reading
from testkit.values.builders import cluster, partition, snapshot
from testkit.values.vantage_signals import BAD, GOOD, of_one, words


@pytest.mark.parametrize("reading", [GOOD, BAD])
def test_a_broker_without_the_asked_listener_is_unknown_not_down(reading: Reading):
    seen = cluster(partition(leader_unknown=True), partition(index=1, replicas=[2, 1, 3]), brokers=[2, 3])
    found = of_one(snapshot(seen, *words(reading, reading)))
    assert (found.state, found.reason) == (HealthState.UNKNOWN, Reason.LISTENER_MISSING)
    assert found.message == seen.without_listener(1)


def test_an_offline_log_directory_is_named_and_demotes_no_broker():
    good = of_one(snapshot(None, *words(GOOD, GOOD)))
    seen = cluster(partition(), partition(index=1, replicas=[2, 1, 3], isr=[2, 3], offline=[1]))
    found = of_one(snapshot(seen, *words(GOOD, GOOD)), before=good)
    assert (found.state, found.reason) == (HealthState.HEALTHY, Reason.LOG_DIR_OFFLINE)
    assert found.message == seen.offline_message(1)
    assert of_one(snapshot(seen, *words(BAD, BAD))).reason is Reason.EXTERNALLY_UNREACHABLE
    assert of_one(snapshot(seen)).reason is Reason.NO_EVIDENCE
