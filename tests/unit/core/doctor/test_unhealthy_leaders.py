"""Unhealthy brokers that lead, and what clients lose by them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.doctor.remediation import Remediation
from bellwether.core.doctor.unhealthy_leaders import (
    JudgedBrokers,
    SlowBroker,
    SlowDiskForecast,
    UnhealthyBroker,
    slow_disk_forecast,
    slow_followers,
    unhealthy_leaders,
)
from bellwether.core.model.cluster import TopicPartition
from bellwether.core.reasons import Reason
from testkit.messages import assert_wording
from testkit.values.builders import cluster, partition


def broker(number: int, reason: str = "StorageSlow") -> UnhealthyBroker:
    return UnhealthyBroker(number, "Sick", reason, "so it is")


def test_only_leading_brokers_count_most_partitions_first() -> None:
    seen = cluster(
        partition("a", index=0, leader=1),
        partition("b", index=0, leader=2, replicas=(2, 1, 3)),
        partition("b", index=1, leader=2, replicas=(2, 1, 3)),
        partition("c", index=0, leader=None),
    )
    found = unhealthy_leaders(seen, JudgedBrokers((broker(1), broker(2), broker(3))))
    assert [(leader.broker, dict(leader.topics)) for leader in found] == [(2, {"b": 2}), (1, {"a": 1})]
    assert unhealthy_leaders(seen, JudgedBrokers()) == ()


LET_LEAD = Remediation("let broker 3 lead again", "nothing")
BY_HAND = Remediation("demote it by an override", "nothing", ("bellwether demote 2",))
CUT = replace(
    broker(2, Reason.EXTERNALLY_UNREACHABLE), remediations=(Remediation("repair it", "nothing"),), by_hand=BY_HAND
)
LED_BY_2 = cluster(*(partition("a", index=i, leader=2, replicas=(2, 1, 3)) for i in range(2)))


def steps(judged: JudgedBrokers) -> list[str]:
    (leader,) = unhealthy_leaders(LED_BY_2, judged)
    return [step.action for step in leader.remediations]


def test_healthy_idle_broker_that_may_lead_is_the_first_remedy() -> None:
    judged = JudgedBrokers((CUT,), frozenset({1, 3}), {3: LET_LEAD})
    assert_wording(steps(judged))


def test_demotion_by_hand_is_advised_where_it_moves_leader() -> None:
    judged = JudgedBrokers((CUT,), frozenset({3}), {3: LET_LEAD})
    assert_wording(steps(judged))


def test_acks_all_waits_for_slow_broker_in_isr_of_others() -> None:
    seen = cluster(
        partition("a", index=0, leader=2, replicas=(2, 1, 3)),
        partition("a", index=1, leader=2, replicas=(2, 1, 3), isr=(2, 3)),
        partition("a", index=2, leader=1),
        partition("a", index=3, leader=None),
    )
    slow = tuple(SlowBroker(b, "StorageSlow", "quarantine is off") for b in (1, 4))
    assert [(s.broker, s.partitions) for s in slow_followers(seen, JudgedBrokers(slow=slow))] == [(1, 1)]


@pytest.mark.parametrize(
    ("reason", "lost"),
    [
        (Reason.EXTERNALLY_UNREACHABLE, "no reads, no writes through the external listener: so it is"),
        (Reason.STORAGE_SLOW, "writes fail or are slow: so it is"),
        (Reason.READS_SLOW, "reads fail or are slow: so it is"),
        ("AReasonOfALaterVersion", "requests fail or are slow: so it is"),
    ],
)
def test_what_clients_lose_follows_from_the_reason(reason: str, lost: str) -> None:
    assert broker(1, reason).clients == lost


def test_slow_disk_hurts_first_where_one_fetcher_appends_most() -> None:
    seen = cluster(
        partition("a", index=0, leader=1), partition("a", index=1, leader=2, replicas=(2, 1, 3), isr=(2, 3)),
        partition("quiet", leader=2, replicas=(2, 1, 3)),
    )  # fmt: skip
    first, second = seen.partitions[0].name, seen.partitions[1].name
    found = slow_disk_forecast(seen, {first: 20.0, second: 50.0}, {1: 1, 2: 1, 3: 1})
    assert found == SlowDiskForecast(3, {(1, first): 20.0, (2, second): 50.0}, 1), "1 is not in the ISR of the second"
    assert (found.appends_per_second, found.sources) == (70.0, 2)
    assert found.keeps_up_seconds() == found.keeps_up_seconds(8) == pytest.approx(0.7 / 50)
    least = slow_disk_forecast(seen, {first: 20.0, second: 50.0}, {2: 1})
    assert least == SlowDiskForecast(2, {(1, first): 20.0}, 1)
    assert slow_disk_forecast(seen, {}, {1: 1, 2: 1}) is None, "nothing was appended"
    assert slow_disk_forecast(seen, {first: 20.0}, {}) is None, "no fetchers are known"


def test_partitions_share_fetchers_as_kafka_spreads_them() -> None:
    appends = {(2 + p % 2, TopicPartition("orders", p)): 1.0 for p in range(40)}
    by_fetchers = [0.7 / SlowDiskForecast(1, appends, fetchers).keeps_up_seconds() for fetchers in (1, 3, 8)]
    assert by_fetchers == pytest.approx([20, 7, 5]), "8 fetchers of 2 leaders: only even, or only odd partitions each"
    assert SlowDiskForecast(1, {(2, TopicPartition("a-topic-with-a-long-name", 2)): 1.0}, 8).sources == 1
