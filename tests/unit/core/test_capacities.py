"""What brokers can carry: limits by number and by load, and how much would not fit."""

from __future__ import annotations

from bellwether.core.capacities import UNBOUNDED, Account, Capacity, Loads, too_many
from bellwether.core.clusters import PartitionKey

KEYS = [PartitionKey("t", i) for i in range(9)]


def test_without_a_limit_everything_fits():
    assert Account({1: 10**9}).fits(1, KEYS[0])
    assert not UNBOUNDED.bounded


def test_a_broker_takes_leaders_up_to_its_limit():
    account = Account({1: 1}, Capacity(max_leaders=2))
    assert account.fits(1, KEYS[0])
    account.add(1, KEYS[0])
    assert not account.fits(1, KEYS[1])


def test_a_leader_that_goes_makes_room():
    account = Account({1: 2, 2: 0}, Capacity(max_leaders=2))
    account.move(KEYS[0], 1, 2)
    assert account.fits(1, KEYS[1])
    assert account.counts == {1: 1, 2: 1}


def test_a_broker_takes_load_in_proportion_to_its_capacity():
    loads = Loads({KEYS[0]: 60, KEYS[1]: 60}, {2: 200})
    account = Account({1: 0, 2: 0}, Capacity(max_load=100), loads)
    account.add(1, KEYS[0])
    account.add(2, KEYS[0])
    assert not account.fits(1, KEYS[1])
    assert account.fits(2, KEYS[1])


def test_what_was_never_measured_is_limited_by_number_alone():
    account = Account({1: 0}, Capacity(max_leaders=1, max_load=1), Loads({KEYS[0]: 1}))
    account.carry(1, KEYS[0])
    assert account.fits(1, KEYS[5])
    account.add(1, KEYS[5])
    assert not account.fits(1, KEYS[6])


def test_load_moves_with_the_leader():
    account = Account({1: 1, 2: 0}, Capacity(max_load=10), Loads({KEYS[0]: 10, KEYS[1]: 1}))
    account.carry(1, KEYS[0])
    assert not account.fits(1, KEYS[1])
    account.move(KEYS[0], 1, 2)
    assert account.fits(1, KEYS[1])
    assert not account.fits(2, KEYS[1])


def test_it_is_foreseen_how_many_leaders_find_no_room():
    account = Account({2: 3, 3: 3}, Capacity(max_leaders=5))
    assert too_many(account, [(key, (2, 3)) for key in KEYS[:6]]) == 2


def test_those_with_one_candidate_are_placed_before_those_with_two():
    account = Account({2: 0, 3: 0}, Capacity(max_leaders=1))
    assert too_many(account, [(KEYS[0], (2, 3)), (KEYS[1], (2,))]) == 0


def test_whoever_nobody_else_could_lead_finds_no_room():
    assert too_many(Account({}, Capacity(max_leaders=9)), [(KEYS[0], ())]) == 1
