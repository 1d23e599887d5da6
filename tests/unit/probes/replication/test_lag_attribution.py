"""Whose doing a lag is: tables of who lags behind whom, and who is blamed."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from bellwether.core.model.cluster import TopicPartition
from bellwether.probes.replication.lag_state import LagMeasurement, weigh
from bellwether.probes.replication.offset_history import Lag

THRESHOLD = 10.0


def lags(brokers: Iterable[int], late: Iterable[tuple[int, int]], seconds: float = 34.0) -> list[Lag]:
    """Every broker follows every other on one partition each; ``late`` are pairs of leader and follower."""
    named, behind = sorted(brokers), set(late)
    return [
        Lag(
            TopicPartition(f"t{leader}", follower),
            leader,
            follower,
            seconds if (leader, follower) in behind else 0.0,
            9,
            True,
        )
        for leader in named
        for follower in named
        if leader != follower
    ]


def everywhere(_leader: int, _follower: int) -> bool:
    return True


def blamed(found: dict[int, LagMeasurement]) -> list[int]:
    return [broker for broker, measurement in found.items() if measurement.blamed]


def slow(*followers: int, brokers: int) -> list[tuple[int, int]]:
    return [(leader, f) for f in followers for leader in range(1, brokers + 1) if leader != f]


def serving_slowly(*leaders: int, brokers: int) -> list[tuple[int, int]]:
    return [(led, f) for led in leaders for f in range(1, brokers + 1) if led != f]


@pytest.mark.parametrize(
    ("brokers", "late", "who", "slow_leaders"),
    [
        pytest.param(3, [], [], [], id="none-lags"),
        pytest.param(3, slow(3, brokers=3), [3], [], id="one-slow-follower-of-three"),
        pytest.param(3, slow(2, 3, brokers=3), [2, 3], [], id="two-slow-followers-of-three"),
        pytest.param(6, slow(5, 6, brokers=6), [5, 6], [], id="two-slow-followers-of-six"),
        pytest.param(3, serving_slowly(1, brokers=3), [], [1], id="one-slow-leader-of-three"),
        pytest.param(6, serving_slowly(1, 2, brokers=6), [], [1, 2], id="two-slow-leaders-of-six"),
        pytest.param(6, slow(6, brokers=6) + serving_slowly(1, brokers=6), [6], [1], id="one-slow-of-each"),
        pytest.param(3, [(1, 3)], [], [], id="behind-one-leader-alone"),
        pytest.param(6, [(1, 3), (2, 3)], [3], [], id="behind-two-of-five-leaders"),
        pytest.param(3, slow(1, 2, 3, brokers=3), [], [1, 2, 3], id="all-behind-all"),
        pytest.param(2, slow(2, brokers=2), [2], [], id="the-only-follower-of-the-only-leader"),
    ],
)
def test_who_is_blamed(brokers: int, late: list[tuple[int, int]], who: list[int], slow_leaders: list[int]) -> None:
    found = weigh(lags(range(1, brokers + 1), late), THRESHOLD, everywhere)
    assert blamed(found) == who
    assert [broker for broker, measurement in found.items() if measurement.trailed_by] == slow_leaders


@pytest.mark.parametrize(
    ("brokers", "late", "links"),
    [
        pytest.param(3, [(1, 2), (2, 1)], {1: 2, 2: 1}, id="a-pair-of-three"),
        pytest.param(6, [(4, 2), (2, 4)], {2: 4, 4: 2}, id="a-pair-of-six"),
        pytest.param(6, [(1, 2), (2, 1), (3, 4), (4, 3)], {1: 2, 2: 1, 3: 4, 4: 3}, id="two-pairs"),
        pytest.param(3, [(1, 2)], {}, id="one-way"),
        pytest.param(6, [(1, 2), (2, 1), (1, 3), (3, 1)], {}, id="one-with-two-others"),
        pytest.param(4, [(1, 2), (2, 3), (3, 1)], {}, id="in-a-circle"),
        pytest.param(3, slow(2, brokers=3), {}, id="a-slow-follower"),
        pytest.param(3, serving_slowly(1, brokers=3), {}, id="a-slow-leader"),
        pytest.param(2, [(1, 2), (2, 1)], {}, id="without-another-to-compare-with"),
    ],
)
def test_two_brokers_lagging_behind_each_other_are_not_linked(
    brokers: int, late: list[tuple[int, int]], links: dict[int, int]
) -> None:
    found = weigh(lags(range(1, brokers + 1), late), THRESHOLD, everywhere)
    assert {b: m.broken_link_to for b, m in found.items() if m.broken_link_to is not None} == links
    assert not set(blamed(found)) & set(links)


def test_slow_leader_and_its_followers_name_each_other() -> None:
    found = weigh(lags(range(1, 4), serving_slowly(1, brokers=3)), THRESHOLD, everywhere)
    assert (found[2].slow_leaders, found[3].slow_leaders) == ((1,), (1,))
    assert found[1].trailed_by == (2, 3)
    assert (found[1].lagging, found[2].lagging) == (0, 1)


def test_keeping_up_with_an_idle_leader_excuses_no_broker() -> None:
    """Broker 3 lags behind 1, and 'keeps up' with 2, which is idle."""
    late = [(1, 3)]
    assert blamed(weigh(lags(range(1, 4), late), THRESHOLD, lambda leader, _: leader == 1)) == [3]
    assert blamed(weigh(lags(range(1, 4), late), THRESHOLD, everywhere)) == []


def test_followers_of_only_writing_leader_are_not_blamed() -> None:
    found = weigh(lags(range(1, 4), [(1, 2), (1, 3)]), THRESHOLD, lambda leader, _: leader == 1)
    assert blamed(found) == []
    assert found[1].trailed_by == (2, 3)


def test_a_lag_at_the_threshold_is_none() -> None:
    assert blamed(weigh(lags(range(1, 4), slow(3, brokers=3), seconds=THRESHOLD), THRESHOLD, everywhere)) == []


def test_figures_count_partitions_and_members_of_isr_and_name_worst() -> None:
    late = [Lag(TopicPartition("orders", n), 1 + n % 2, 3, 11.0 + n, 100, n < 4) for n in range(6)]
    well = [Lag(TopicPartition("pay", n), 1, 3, 0.5, 1, True) for n in range(4)]
    measurement = weigh([*late, *well], THRESHOLD, everywhere)[3]
    assert (measurement.followed, measurement.lagging, measurement.in_isr, measurement.outside) == (10, 6, 4, 2)
    assert (measurement.worst_seconds, measurement.behind) == (16.0, (1, 2))
    assert [str(name) for name in measurement.worst] == ["orders-5", "orders-4", "orders-3"]


def test_returning_broker_may_catch_up_outside_isr_only() -> None:
    outside = [lag._replace(in_isr=False) for lag in lags(range(1, 4), slow(3, brokers=3))]
    measurement = weigh(outside, THRESHOLD, everywhere, {3})[3]
    assert (measurement.blamed, measurement.lagging, measurement.returning, measurement.worst_seconds) == (
        False,
        0,
        2,
        0.0,
    )
    assert weigh(lags(range(1, 4), slow(3, brokers=3)), THRESHOLD, everywhere, {3})[3].blamed


def test_a_broker_that_only_leads_has_a_look_too() -> None:
    found = weigh([Lag(TopicPartition("t", 0), 1, 2, 0.0, 0, True)], THRESHOLD, everywhere)
    assert found[1] == LagMeasurement()
