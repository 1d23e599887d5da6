"""What brokers can carry: limits by number and by load, and how much would not fit."""

from __future__ import annotations

from datetime import UTC, datetime

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.loads import (
    LOADS_PENDING,
    LeaderLoads,
    Loads,
    count_unplaceable,
    loads_missing_message,
    measured_at_suffix,
)
from bellwether.core.settings.policy import UNBOUNDED, Capacity
from testkit.messages import assert_wording

KEYS = [PartitionKey("t", i) for i in range(9)]


def test_without_a_limit_everything_fits():
    assert LeaderLoads({1: 10**9}).fits(1, KEYS[0])
    assert not UNBOUNDED.bounded


def test_a_broker_takes_leaders_up_to_its_limit():
    account = LeaderLoads({1: 1}, Capacity(max_leaders=2))
    assert account.fits(1, KEYS[0])
    account.add(1, KEYS[0])
    assert not account.fits(1, KEYS[1])


def test_a_leader_that_goes_makes_room():
    account = LeaderLoads({1: 2, 2: 0}, Capacity(max_leaders=2))
    account.move(KEYS[0], 1, 2)
    assert account.fits(1, KEYS[1])
    assert account.counts == {1: 1, 2: 1}


def test_a_broker_takes_load_in_proportion_to_its_capacity():
    loads = Loads({KEYS[0]: 60, KEYS[1]: 60}, {2: 200})
    account = LeaderLoads({1: 0, 2: 0}, Capacity(max_load=100), loads)
    account.add(1, KEYS[0])
    account.add(2, KEYS[0])
    assert not account.fits(1, KEYS[1])
    assert account.fits(2, KEYS[1])


def test_what_was_never_measured_is_limited_by_number_alone():
    account = LeaderLoads({1: 0}, Capacity(max_leaders=1, max_load=1), Loads({KEYS[0]: 1}))
    account.carry(1, KEYS[0])
    assert account.fits(1, KEYS[5])
    account.add(1, KEYS[5])
    assert not account.fits(1, KEYS[6])


def test_load_moves_with_the_leader():
    account = LeaderLoads({1: 1, 2: 0}, Capacity(max_load=10), Loads({KEYS[0]: 10, KEYS[1]: 1}))
    account.carry(1, KEYS[0])
    assert not account.fits(1, KEYS[1])
    account.move(KEYS[0], 1, 2)
    assert account.fits(1, KEYS[1])
    assert not account.fits(2, KEYS[1])


def test_it_is_foreseen_how_many_leaders_find_no_room():
    account = LeaderLoads({2: 3, 3: 3}, Capacity(max_leaders=5))
    assert count_unplaceable(account, [(key, (2, 3)) for key in KEYS[:6]]) == 2


def test_those_with_one_candidate_are_placed_before_those_with_two():
    account = LeaderLoads({2: 0, 3: 0}, Capacity(max_leaders=1))
    assert count_unplaceable(account, [(KEYS[0], (2, 3)), (KEYS[1], (2,))]) == 0


def test_a_partition_without_other_candidates_counts_as_unplaceable():
    assert count_unplaceable(LeaderLoads({}, Capacity(max_leaders=9)), [(KEYS[0], ())]) == 1


def test_followed_bytes_take_room_under_any_leader():
    account = LeaderLoads({1: 0}, Capacity(max_load=100), Loads({KEYS[0]: 30, KEYS[1]: 31}, following={1: 70}))
    assert account.fits(1, KEYS[0])
    assert not account.fits(1, KEYS[1])


def test_account_uses_up_its_own_figures_and_not_loads():
    loads = Loads({KEYS[0]: 30}, following={1: 70})
    LeaderLoads({1: 0}, Capacity(max_load=100), loads).add(1, KEYS[0])
    assert loads.following == {1: 70}


def test_while_loads_are_pending_a_limit_by_load_admits_nothing():
    assert not LeaderLoads({1: 0}, Capacity(max_load=100), LOADS_PENDING).fits(1, KEYS[0])


def test_a_limit_by_number_alone_awaits_nothing():
    assert LeaderLoads({1: 0}, Capacity(max_leaders=1), LOADS_PENDING).fits(1, KEYS[0])


def test_without_loads_replacement_of_limit_by_load_is_said():
    said = loads_missing_message(Capacity(max_load=1), None)
    assert said is not None
    assert_wording(said)
    assert_wording(str(loads_missing_message(Capacity(max_load=1, max_leaders=2), None)))


def test_nothing_is_said_where_loads_are_known_awaited_or_unused():
    assert loads_missing_message(Capacity(max_load=1), Loads()) is None
    assert loads_missing_message(Capacity(max_load=1), LOADS_PENDING) is None
    assert loads_missing_message(Capacity(max_leaders=1), None) is None


def test_age_of_loads_behind_a_limit_is_said():
    loads = Loads(measured_at=datetime(2026, 11, 21, 4, tzinfo=UTC))
    assert measured_at_suffix(Capacity(max_load=1), loads) == " (loads as of 2026-11-21T04:00:00Z)"
    assert measured_at_suffix(Capacity(max_leaders=1), loads) == ""
    assert measured_at_suffix(Capacity(max_load=1), None) == ""


def test_broker_is_as_full_as_its_load_with_known_loads():
    loads = Loads({KEYS[0]: 500, KEYS[1]: 100}, {3: 50}, {2: 300})
    account = LeaderLoads({1: 0, 2: 0, 3: 0}, Capacity(max_load=10_000), loads)
    account.add(1, KEYS[0])
    account.add(3, KEYS[1])
    assert loads.least == 30
    assert {b: account.fullness(b) for b in (1, 2, 3)} == {1: 530, 2: 300, 3: 260}


def test_broker_is_as_full_as_its_leaders_without_loads():
    loads = Loads({KEYS[0]: 500})
    for account in (
        LeaderLoads({1: 4}, Capacity(max_load=10_000)),
        LeaderLoads({1: 4}, Capacity(max_load=10_000), LOADS_PENDING),
        LeaderLoads({1: 4}, Capacity(max_leaders=10), loads),
    ):
        assert account.fullness(1) == 4
        assert account.fullness(2) == 0


def test_what_is_idle_counts_all_the_same():
    """Else a thousand idle partitions would go to the one broker that carries a byte less."""
    loads = Loads(dict.fromkeys(KEYS, 0))
    account = LeaderLoads({1: 0, 2: 0}, Capacity(max_load=10_000), loads)
    for key in KEYS[:3]:
        account.add(1, key)
    assert (account.fullness(1), account.fullness(2)) == (3, 0)
