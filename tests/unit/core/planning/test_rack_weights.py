"""Weighted racks: who is furthest from its share, who would come nearer."""

from __future__ import annotations

import pytest

from bellwether.core.model.rack_ranking import RackRanking
from bellwether.core.planning.rack_weights import RackShares
from bellwether.core.settings.placement import Preference
from testkit.values.builders import cluster, partition

RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}


def ranking(**weights: int) -> RackRanking:
    return RackRanking.of(Preference(weights=tuple(weights.items())), cluster(partition(), brokers=5, racks=RACKS))


def led(by: RackRanking, **counts: int) -> RackShares:
    shares = RackShares()
    first = {"a": 1, "b": 3, "c": 5}
    for rack, count in counts.items():
        for _ in range(count):
            shares.add(by, first[rack])
    return shares


def test_the_rack_furthest_from_its_share_gets_the_next_leader():
    by = ranking(a=3, b=1)
    assert led(by, a=2, b=1).wanting(by, (1, 3)) == [1]
    assert led(by, a=6, b=1).wanting(by, (1, 3)) == [3]


def test_all_candidates_of_that_rack_are_offered():
    by = ranking(a=1, b=1)
    assert led(by, b=4).wanting(by, (2, 3, 1)) == [2, 1]


def test_a_rack_without_a_weight_leads_only_where_no_other_can():
    by = ranking(a=1, b=1)
    assert led(by, a=50, b=50).wanting(by, (5, 3)) == [3]
    assert led(by).wanting(by, (5,)) == (5,)


def test_without_weights_all_are_wanted_alike():
    plain = RackRanking.of(Preference(("a",)), cluster(partition(), brokers=5, racks=RACKS))
    shares = RackShares()
    shares.add(plain, 1)
    shares.add(None, 1)
    assert shares.wanting(plain, (3, 1)) == (3, 1)
    assert shares.wanting(None, (3, 1)) == (3, 1)
    assert list(shares.uneven()) == []


@pytest.mark.parametrize(
    ("counts", "uneven"),
    [
        pytest.param({"a": 70, "b": 30}, False, id="as the weights ask for"),
        pytest.param({"a": 68, "b": 31}, False, id="near enough"),
        pytest.param({"a": 60, "b": 40}, True, id="a third too many"),
        pytest.param({"a": 67, "b": 33}, True, id="off by a tenth of the smaller share"),
        pytest.param({"a": 1, "b": 1}, False, id="too few to tell"),
        pytest.param({"a": 3, "b": 3}, False, id="off by less than two leaders"),
        pytest.param({"a": 100}, True, id="one has them all"),
    ],
)
def test_racks_are_uneven_when_one_is_visibly_off_its_share(counts: dict[str, int], uneven: bool):
    by = ranking(a=70, b=30)
    assert led(by, **counts).is_uneven(by) is uneven


def test_a_partition_goes_to_another_rack_only_where_that_brings_both_nearer():
    by = ranking(a=70, b=30)
    assert led(by, a=60, b=40).better(by, 3, (1, 3)) == [1]
    assert led(by, a=70, b=30).better(by, 3, (1, 3)) == ()
    assert led(by, a=60, b=40).better(by, 1, (1, 3)) == ()
    equal = ranking(a=1, b=1)
    assert led(equal, a=2, b=1).better(equal, 1, (1, 3)) == (), "that would only exchange them"


def test_who_is_in_no_weighted_rack_is_no_part_of_the_account():
    by = ranking(a=1, b=1)
    shares = led(by, a=1, b=1, c=9)
    assert not shares.is_uneven(by)
    assert shares.better(by, 5, (5, 1)) == ()


def test_who_leads_for_a_weighted_rack_goes_on_where_all_candidates_are_elsewhere():
    by = ranking(a=1, b=1)
    shares = led(by, a=9, b=1)
    assert shares.is_uneven(by)
    assert shares.better(by, 1, (5,)) == ()
    assert shares.better(by, 1, (9,)) == ()  # in an unknown rack
