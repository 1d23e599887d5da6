"""Which brokers a rebalance gives no leaders, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.detection.health_states import HealthState
from bellwether.core.waves.ineligible_brokers import ineligible_brokers
from testkit.values.builders import cluster, demoted, partition, record, verdicts


def test_healthy_brokers_are_open_and_others_closed_with_the_reason() -> None:
    seen = cluster(partition(replicas=(1, 9), isr=(1,)), brokers=8, fenced=(8,))
    undo = record(None, demoted(7))
    judged = verdicts(seen, sick=[2], suspect=[3], recovering=[4], unknown=[5], down=[9])
    assert ineligible_brokers(seen, undo, judged) == {
        2: "Sick",
        3: "Suspect",
        4: "Recovering",
        5: "Unknown",
        7: "Demoted",
        8: "Fenced",
        9: "NotRegistered",
    }


def test_without_any_healthy_broker_unknown_ones_stay_open() -> None:
    seen = cluster(partition())
    assert ineligible_brokers(seen, record(), verdicts(seen, unknown=[1, 2, 3])) == {}
    assert ineligible_brokers(seen, record(), {}) == {}


def test_where_probers_run_what_they_do_not_say_closes_a_broker() -> None:
    seen = cluster(partition())
    unknown = verdicts(seen, unknown=[1, 2, 3])
    assert ineligible_brokers(seen, record(), unknown, probed=True) == dict.fromkeys([1, 2, 3], "Unknown")


def test_a_broker_in_maintenance_gets_no_leaders_however_healthy() -> None:
    assert ineligible_brokers(cluster(partition()), record(), {}, maintenance=[2]) == {2: "InMaintenance"}


@pytest.mark.parametrize("last", [s for s in HealthState if s not in (HealthState.HEALTHY, HealthState.UNKNOWN)])
def test_a_broker_last_seen_failing_stays_closed_without_evidence(last: HealthState) -> None:
    seen = cluster(partition())
    judged = verdicts(seen, unknown=[1, 2, 3])
    judged[2] = replace(judged[2], last_known=last)
    assert ineligible_brokers(seen, record(), judged) == {2: "Unknown"}


def test_a_broker_that_is_gone_from_everywhere_is_not_named() -> None:
    assert ineligible_brokers(cluster(partition()), record(None, demoted(42)), {}) == {}


def test_a_broker_without_the_asked_listener_is_closed_for_that() -> None:
    seen = cluster(partition(replicas=(1, 8)))
    assert ineligible_brokers(seen, record(), verdicts(seen)) == {8: "ListenerMissing"}
