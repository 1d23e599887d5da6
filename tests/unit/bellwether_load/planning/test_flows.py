"""Flows: how much load to send from which broker to which."""

from __future__ import annotations

import numpy as np

from bellwether_load.planning.flows import route
from bellwether_load.planning.offers import Pairs


def flow(offers: dict[tuple[int, int], int], excess: list[int], room: list[int]) -> dict[tuple[int, int], int]:
    count = len(excess)
    keys = sorted(a * count + b for a, b in offers)
    loads = [offers[k // count, k % count] for k in keys]
    found = route(Pairs(np.array(keys, np.int64), np.array(loads, np.int64)), np.array(excess), np.array(room))
    return {(int(k) // count, int(k) % count): int(v) for k, v in zip(found.keys, found.loads, strict=True)}


def test_excess_goes_where_there_is_room():
    assert flow({(0, 1): 100, (0, 2): 100}, [50, 0, 0], [0, 30, 30]) in (
        {(0, 1): 30, (0, 2): 20},
        {(0, 1): 20, (0, 2): 30},
    )


def test_no_more_than_is_offered_goes_along_a_pair():
    assert flow({(0, 1): 20}, [50, 0], [0, 100]) == {(0, 1): 20}


def test_load_flows_through_a_third_broker_where_it_must():
    assert flow({(0, 1): 100, (1, 2): 100}, [40, 0, 0], [0, 0, 100]) == {(0, 1): 40, (1, 2): 40}


def test_the_direct_way_is_taken_first():
    offers = {(0, 1): 100, (1, 2): 100, (0, 2): 100}
    assert flow(offers, [60, 0, 0], [0, 0, 60]) == {(0, 2): 60}


def test_nothing_flows_without_excess_room_or_offers():
    assert flow({(0, 1): 5}, [0, 0], [0, 9]) == {}
    assert flow({(0, 1): 5}, [5, 0], [0, 0]) == {}
    assert flow({}, [5, 0], [0, 9]) == {}


def test_loads_beyond_the_solvers_integers_are_scaled():
    large = 2**50
    found = flow({(0, 1): large}, [large // 2, 0], [0, large])
    assert abs(found[0, 1] - large // 2) <= large / 2**29
