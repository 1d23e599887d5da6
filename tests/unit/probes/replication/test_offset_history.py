"""Lag in seconds from ends of logs: what looks like lag and is none, and what is."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.core.model.cluster import Broker, Cluster, Partition, TopicPartition
from bellwether.ports.kafka import BrokerLogEnds
from bellwether.probes.replication.offset_history import MOST_POINTS, Lag, OffsetHistory

ORDERS = TopicPartition("orders", 0)


def partition(**changes: Any) -> Partition:
    known: dict[str, Any] = {
        "topic": "orders",
        "topic_id": "A",
        "index": 0,
        "replicas": (1, 2, 3),
        "isr": (1, 2, 3),
        "leader": 1,
        "leader_epoch": 5,
    }
    return Partition(**{**known, **changes})


def cluster(*partitions: Partition) -> Cluster:
    return Cluster("c", {b: Broker(b) for b in (1, 2, 3)}, partitions or (partition(),))


class Watch:
    """One partition, asked every second; None represents a broker that does not answer."""

    def __init__(self) -> None:
        self.trails = OffsetHistory()
        self.second = 0.0

    def see(self, *ends: int | None, at: Cluster | None = None, seconds: float = 1.0) -> dict[int, Lag]:
        self.second += seconds
        answers = {
            broker: BrokerLogEnds({ORDERS: end}, self.second, self.second)
            for broker, end in enumerate(ends, 1)
            if end is not None
        }
        return {lag.follower: lag for lag in self.trails.round(at or cluster(), answers)}

    def lag(self, *ends: int | None, **more: Any) -> float:
        return self.see(*ends, **more)[2].seconds


class TestLag:
    def test_a_follower_at_its_leaders_end_does_not_lag(self) -> None:
        assert Watch().see(100, 100, 100)[2] == Lag(ORDERS, 1, 2, 0.0, 0, True)

    def test_a_stuck_follower_lags_since_its_leader_went_on(self) -> None:
        watch = Watch()
        watch.see(100, 100, 100)
        assert [watch.lag(100 + 10 * n, 100, 100 + 10 * n) for n in range(1, 5)] == [0, 1, 2, 3]

    def test_follower_that_is_always_as_far_behind_has_steady_lag(self) -> None:
        watch = Watch()
        for second in range(10):
            watch.see(10 * second, max(0, 10 * (second - 3)), 10 * second)
        # Its end is the leader's of three seconds ago: the leader was first seen beyond it two seconds ago.
        assert [watch.lag(10 * s, 10 * (s - 3), 10 * s) for s in range(10, 30)] == [2.0] * 20

    def test_a_lag_has_records_and_isr_membership(self) -> None:
        lag = Watch().see(100, 60, 100, at=cluster(partition(isr=(1, 3))))[2]
        assert (lag.records, lag.in_isr) == (40, False)

    def test_follower_that_was_behind_at_start_lags_since_then_only(self) -> None:
        watch = Watch()
        assert [watch.lag(1000, 5, 1000) for _ in range(4)] == [0, 1, 2, 3]

    def test_follower_that_catches_up_lags_no_more_and_is_forgotten(self) -> None:
        watch = Watch()
        for second in range(20):
            watch.see(second, 0, second)
        assert watch.lag(30, 30, 30) == 0
        assert len(watch.trails) == 0


class TestNoLag:
    def test_an_idle_partition_never_lags_however_long_it_is_idle(self) -> None:
        watch = Watch()
        watch.see(100, 100, 100)
        assert watch.lag(100, 100, 100, seconds=3600) == 0
        assert watch.lag(101, 100, 101, seconds=3600) == 0, "the first write after an hour is no lag of an hour"

    def test_follower_asked_before_its_leader_does_not_lag_for_it(self) -> None:
        trails = OffsetHistory()
        for second in range(5):
            early, late = float(second), second + 0.9
            answers = {
                1: BrokerLogEnds({ORDERS: 100 * second + 90}, late, late),
                2: BrokerLogEnds({ORDERS: 100 * second}, early, early),
            }
            assert [lag.seconds for lag in trails.round(cluster(), answers)] == [
                0.0 if second == 0 else pytest.approx(0)
            ]

    def test_while_questions_are_under_way_doubt_is_in_followers_favour(self) -> None:
        trails = OffsetHistory()
        list(
            trails.round(
                cluster(), {1: BrokerLogEnds({ORDERS: 100}, 1.0, 4.0), 2: BrokerLogEnds({ORDERS: 90}, 1.0, 4.0)}
            )
        )
        answers = {1: BrokerLogEnds({ORDERS: 100}, 5.0, 9.0), 2: BrokerLogEnds({ORDERS: 90}, 5.0, 9.0)}
        assert [lag.seconds for lag in trails.round(cluster(), answers)] == [1.0]

    @pytest.mark.parametrize("epoch", [5, 6])
    def test_another_leader_restarts_the_measurement(self, epoch: int) -> None:
        watch = Watch()
        for second in range(30):
            watch.see(100 + second, 100, 100)
        assert watch.lag(100, 100, 130, at=cluster(partition(leader=3, leader_epoch=epoch))) == 0

    def test_a_new_epoch_of_the_same_leader_restarts_the_measurement(self) -> None:
        watch = Watch()
        for second in range(30):
            watch.see(100 + second, 100, 100)
        assert watch.lag(131, 100, 100, at=cluster(partition(leader_epoch=6))) == 0

    def test_a_log_that_went_back_restarts_the_measurement(self) -> None:
        watch = Watch()
        for second in range(30):
            watch.see(100 + second, 100, 100)
        assert watch.lag(101, 100, 101) == 0, "truncated, restarted, or re-created"

    def test_a_topic_created_again_restarts_the_measurement(self) -> None:
        watch = Watch()
        for second in range(30):
            watch.see(100 + second, 100, 100)
        assert watch.lag(200, 0, 200, at=cluster(partition(topic_id="B"))) == 0

    def test_retention_that_empties_a_log_moves_no_end(self) -> None:
        watch = Watch()
        watch.see(100, 100, 100)
        watch.see(110, 100, 110)
        assert watch.lag(110, 110, 110) == 0

    def test_a_follower_beyond_its_leader_does_not_lag(self) -> None:
        lag = Watch().see(100, 120, 100)[2]
        assert (lag.seconds, lag.records) == (0.0, 0)

    def test_replica_that_is_being_added_copies_and_does_not_lag(self) -> None:
        assert 3 not in Watch().see(100, 100, 7, at=cluster(partition(adding=(3,))))


class TestSilence:
    def test_a_silent_follower_is_not_measured_and_the_others_are(self) -> None:
        assert set(Watch().see(100, None, 100)) == {3}

    def test_the_followers_of_a_silent_leader_are_left_out(self) -> None:
        assert Watch().see(None, 100, 100) == {}

    def test_a_partition_without_a_leader_is_left_out(self) -> None:
        assert Watch().see(100, 90, 100, at=cluster(partition(leader=None))) == {}

    def test_follower_that_misses_round_or_two_keeps_its_lag(self) -> None:
        watch = Watch()
        for second in range(1, 11):
            watch.see(100 + second, 100, 100 + second)
        watch.see(111, None, 111)
        watch.see(112, None, 112)
        assert watch.lag(113, 100, 113) == 12

    def test_follower_back_after_long_lags_since_its_return(self) -> None:
        watch = Watch()
        for second in range(30):
            watch.see(100 + second, None if second > 2 else 100, 100 + second)
        assert [watch.lag(130 + n, 100, 130 + n) for n in range(3)] == [0, 1, 2]

    def test_a_leader_that_misses_a_round_is_remembered(self) -> None:
        watch = Watch()
        watch.see(100, 90, 100)
        watch.see(None, 90, 100)
        assert watch.lag(120, 90, 120) == 2


class TestMemory:
    def test_a_healthy_partition_is_not_remembered(self) -> None:
        watch = Watch()
        for second in range(100):
            watch.see(second, second, second)
        assert len(watch.trails) == 0

    def test_ends_that_every_follower_has_passed_are_forgotten(self) -> None:
        watch = Watch()
        for second in range(50):
            watch.see(second, max(0, second - 3), second)
        (trail,) = watch.trails._trails.values()
        assert [point.end for point in trail.points] == [47, 48, 49]

    def test_a_partition_that_is_gone_is_forgotten(self) -> None:
        watch = Watch()
        watch.see(100, 50, 100)
        watch.see(100, 50, 100, at=cluster(partition(topic="other", topic_id="Z")))
        assert len(watch.trails) == 0

    def test_a_dead_follower_is_not_remembered_for_ever(self) -> None:
        watch = Watch()
        watch.see(100, 50, 100)
        for second in range(5):
            watch.see(101 + second, None, 101 + second)
        assert len(watch.trails) == 0

    def test_a_lag_of_hours_is_reported_in_bounded_memory(self) -> None:
        watch = Watch()
        watch.see(100, 100, 100)
        lags = [watch.lag(100 + second, 100, 100 + second) for second in range(1, 4000)]
        assert lags == [float(second) for second in range(3999)]
        (trail,) = watch.trails._trails.values()
        assert len(trail.points) <= MOST_POINTS

    @pytest.mark.parametrize("lag", [3, 30, 300, 3000])
    def test_thinned_history_tells_three_quarters_of_lag_or_more(self, lag: int) -> None:
        watch = Watch()
        for second in range(5000):
            watch.see(second, 0, second)
        assert 0.75 * (lag - 1) <= watch.lag(5000, 5000 - lag, 5000) <= lag


def test_leader_without_writes_proves_no_follower() -> None:
    watch = Watch()
    watch.see(100, 100, 100)
    watch.see(100, 100, 100)
    assert not watch.trails.active(1, 2, 0)
    watch.see(101, 101, 101)
    assert watch.trails.active(1, 2, 3.0)
    assert not watch.trails.active(1, 2, 3.5)
    assert not watch.trails.active(2, 1, 0)
