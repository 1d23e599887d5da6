"""Offers: what partitions could do for the balance, and doing it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellwether_load.planning.blocks import Block
from bellwether_load.planning.offers import Pairs, Terms, draw, offered, settle
from testkit.loads.small_problems import block

BROKERS = 3


def terms(
    *pull: int,
    heaviest: int = 2**62,
    number: int = 0,
    need: Sequence[float] = (1, 1, 1),
    direct: bool = False,
    most: int = 9,
) -> Terms:
    return Terms(number, np.array(pull, np.int64), heaviest, np.array(need, np.float64), direct, most)


def pairs(**loads: int) -> Pairs:
    """``a_b=7`` asks for a load of 7 from broker 0 to broker 1."""
    found = {("abc".index(k[0]) * BROKERS + "abc".index(k[2])): load for k, load in loads.items()}
    keys = sorted(found)
    return Pairs(np.array(keys, np.int64), np.array([found[k] for k in keys], np.int64))


def offers(whole: Block, asked: Terms) -> Pairs:
    return offered(whole, draw(whole, asked), asked)


def told(found: Pairs) -> dict[str, int]:
    return {
        f"{'abc'[int(k) // BROKERS]}_{'abc'[int(k) % BROKERS]}": int(v)
        for k, v in zip(found.keys, found.loads, strict=True)
    }


def test_load_is_offered_to_a_broker_that_draws_it():
    whole = block(BROKERS, [(10, [0, 1]), (5, [0, 1]), (7, [1, 0])])
    assert told(offers(whole, terms(0, 1, 0))) == {"a_b": 15}


def test_a_partition_offers_itself_once_however_many_may_lead_it():
    whole = block(BROKERS, [(1, [0, 1, 2])] * 400)
    found = told(offers(whole, terms(0, 3, 1)))
    assert sum(found.values()) == 400
    assert 250 < found["a_b"] < 350


def test_without_need_there_is_no_offer():
    assert told(offers(block(BROKERS, [(10, [0, 1])]), terms(1, 0, 1))) == {}


def test_loads_that_are_too_heavy_for_a_round_or_nothing_at_all_stay():
    whole = block(BROKERS, [(10, [0, 1]), (3, [0, 1]), (0, [0, 1])])
    assert told(offers(whole, terms(0, 1, 0, heaviest=5))) == {"a_b": 3}


def test_the_heaviest_that_fit_move_so_that_moves_are_few():
    whole = block(BROKERS, [(1, [0, 1]), (6, [0, 1]), (2, [0, 1]), (50, [0, 1])])
    moved = settle(whole, draw(whole, terms(0, 1, 0)), pairs(a_b=8))
    assert moved.leader.tolist() == [0, 1, 1, 0]


def test_all_that_was_offered_moves_when_all_is_asked_for():
    whole = block(BROKERS, [(4, [0, 1]), (5, [0, 2]), (6, [1, 2])])
    asked = offers(whole, terms(1, 2, 3))
    assert settle(whole, draw(whole, terms(1, 2, 3)), asked).changed == 3


def test_at_most_half_a_partition_too_much_moves():
    whole = block(BROKERS, [(10, [0, 1])])
    assert settle(whole, draw(whole, terms(0, 1, 0)), pairs(a_b=4)).changed == 0
    assert settle(whole, draw(whole, terms(0, 1, 0)), pairs(a_b=5)).changed == 1


def test_what_was_not_offered_is_not_taken():
    whole = block(BROKERS, [(10, [0, 1])])
    assert settle(whole, draw(whole, terms(0, 1, 0)), pairs(a_c=100, b_a=100)).changed == 0


def test_nothing_asked_nothing_moved():
    whole = block(BROKERS, [(10, [0, 1])])
    assert settle(whole, draw(whole, terms(0, 1, 0)), pairs()) is whole


def test_the_same_offers_are_followed_that_were_made():
    whole = block(BROKERS, [(3, [0, 1, 2])] * 50)
    for number in range(5):
        asked = terms(0, 1, 1, number=number)
        made = offers(whole, asked)
        moved = settle(whole, draw(whole, asked), made)
        assert (whole.led - moved.led)[0] == made.loads.sum()


def test_at_first_only_load_that_goes_from_excess_to_room_is_offered():
    whole = block(BROKERS, [(4, [0, 1]), (5, [0, 2]), (6, [1, 2])])
    assert told(offers(whole, terms(1, 2, 3, need=(-1, 0, 1), direct=True))) == {"a_c": 5}


def test_of_too_many_pairs_the_most_useful_are_kept():
    whole = block(BROKERS, [(4, [0, 1]), (3, [0, 2]), (5, [1, 2]), (3, [0, 1])])
    of_one_need = terms(1, 2, 3, most=2)
    assert told(offers(whole, of_one_need)) == {"a_b": 7, "b_c": 5}
    with_excess = terms(1, 2, 3, need=(-1, 0.5, 1), most=2)
    assert told(offers(whole, with_excess)) == {"a_b": 7, "a_c": 3}
