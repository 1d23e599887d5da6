"""Which racks are to lead: ranks, orders that may stay, and preferences that do not fit a cluster."""

from __future__ import annotations

import pytest

from bellwether.core.model.cluster import Cluster
from bellwether.core.model.rack_ranking import (
    RackRanking,
    RackRankings,
    placement_warnings,
    uneven,
)
from bellwether.core.reasons import Reason
from bellwether.core.settings.placement import Placement, Preference, TopicRule
from testkit.values.builders import cluster, partition

RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
"""Six brokers in three racks."""


def stretched(*partitions, racks=RACKS) -> Cluster:
    return cluster(*(partitions or (partition(),)), brokers=6, racks=racks)


def ordered(*racks: str, of: Cluster | None = None) -> RackRanking:
    return RackRanking.of(Preference(racks), of or stretched())


def weighted(**weights: int) -> RackRanking:
    return RackRanking.of(Preference(weights=tuple(weights.items())), stretched())


def test_rank_is_place_of_rack_and_unnamed_racks_come_last():
    assert ordered("b", "a").ranks == {1: 1, 2: 1, 3: 0, 4: 0, 5: 2, 6: 2}


def test_weighted_racks_are_equally_preferred():
    assert weighted(a=70, c=30).ranks == {1: 0, 2: 0, 3: 2, 4: 2, 5: 0, 6: 0}


def test_a_broker_without_a_rack_has_no_rank():
    assert 3 not in ordered("a", of=stretched(racks={1: "a"})).ranks


def test_fenced_brokers_keep_their_rank():
    seen = cluster(partition(), brokers=6, racks=RACKS, fenced=[1])
    assert ordered("a", of=seen).ranks[1] == 0


@pytest.mark.parametrize(
    ("replicas", "orderly"),
    [
        pytest.param((1, 3, 5), True, id="by rank"),
        pytest.param((2, 1, 3), True, id="two of a rack in any order"),
        pytest.param((3, 1, 5), False, id="a better rack behind"),
        pytest.param((1, 5, 3), False, id="those behind in disorder"),
        pytest.param((9, 1, 3), True, id="an unknown rack disturbs nothing in front"),
        pytest.param((1, 9, 3), True, id="nor in between"),
    ],
)
def test_an_order_is_sorted_when_better_racks_come_first(replicas: tuple[int, ...], orderly: bool):
    assert ordered("a", "b").orderly(replicas) is orderly


@pytest.mark.parametrize(
    ("brokers", "best"),
    [
        pytest.param((5, 3, 1, 2), (1, 2), id="of the first rack, as they are"),
        pytest.param((5, 4, 3), (4, 3), id="of the next where the first has no broker"),
        pytest.param((9, 5), (5,), id="whose rack is unknown yields"),
        pytest.param((9, 8), (9, 8), id="all where no rack is known"),
        pytest.param((), (), id="no broker"),
    ],
)
def test_the_best_are_those_of_the_most_preferred_rack(brokers: tuple[int, ...], best: tuple[int, ...]):
    assert ordered("a", "b").best(brokers) == best


def test_tiers_hold_all_replicas_by_rack_preference():
    assert ordered("a", "b").tiers((9, 5, 4, 2, 3)) == ((2,), (4, 3), (5,), (9,))


def test_demoted_replicas_are_arranged_by_rack_and_baseline_order():
    assert ordered("b", "a").arrange((6, 1, 4, 3)) == [4, 3, 1, 6]


def test_with_an_unknown_rack_nothing_is_arranged():
    assert ordered("b").arrange((6, 9, 4)) == [6, 9, 4]


class TestGoingHome:
    def test_it_goes_home_to_a_rack_as_preferred(self):
        assert ordered("a", "b").may_return_home(home=1, first=2)

    def test_it_stays_away_from_a_less_preferred_home(self):
        assert not ordered("a", "b").may_return_home(home=3, first=1)

    def test_with_weights_it_goes_home_within_its_rack_only(self):
        assert weighted(a=1, b=1).may_return_home(home=1, first=2)
        assert not weighted(a=1, b=1).may_return_home(home=1, first=3)

    def test_where_a_rack_is_unknown_nothing_moves(self):
        assert not ordered("a").may_return_home(home=9, first=1)
        assert not ordered("a").may_return_home(home=1, first=9)


class TestResting:
    """A baseline of rack b, while rack a is preferred."""

    BASELINE = (3, 1, 5)

    def test_an_order_that_the_racks_want_rests(self):
        assert ordered("a", "b").rests(partition(replicas=(1, 3, 5)), self.BASELINE)

    def test_what_is_led_by_another_does_not(self):
        assert not ordered("a", "b").rests(partition(replicas=(1, 3, 5), leader=3), self.BASELINE)

    def test_an_order_with_a_better_rack_behind_does_not_rest(self):
        assert not ordered("a", "b").rests(partition(replicas=(3, 1, 5)), self.BASELINE)

    def test_what_could_go_home_does_not(self):
        assert not ordered("b", "a").rests(partition(replicas=(4, 3, 1)), (3, 4, 1))

    def test_what_is_being_reassigned_does_not(self):
        assert not ordered("a", "b").rests(partition(replicas=(1, 3, 5), adding=[5]), self.BASELINE)


def test_topics_without_rule_stay_without_general_preference():
    rankings = RackRankings(Placement(rules=(TopicRule("orders", Preference(("a",))),)), stretched())
    assert rankings.of("orders") is rankings.of("orders")
    assert rankings.of("payments") is None


def test_leaders_outside_preferred_racks_are_counted_and_first_is_named():
    seen = stretched(
        partition("x", 1, (3, 1), leader=3), partition("x", 0, (5, 1), leader=5), partition("x", 2, (1, 3)),
        partition("x", 3, (3, 5)), partition("x", 4, (1, 3), isr=[], leader=None), partition("y", 0, (3, 1)),
    )  # fmt: skip
    found = RackRankings(Placement(rules=(TopicRule("x", Preference(("a", "b"))),)), seen).leaders_outside
    assert (found.leaders, found.of, found.first) == (2, 4, "x-0")


@pytest.mark.parametrize(
    ("placement", "reasons"),
    [
        pytest.param(Placement(Preference(("a", "b"))), [], id="racks that are there"),
        pytest.param(Placement(Preference(("a", "z"))), [Reason.PLACEMENT_UNSUITABLE], id="a rack without brokers"),
        pytest.param(
            Placement(Preference(weights=(("z", 1),))), [Reason.PLACEMENT_UNSUITABLE], id="a weighted one, too"
        ),
        pytest.param(
            Placement(rules=(TopicRule("none-*", Preference(("a",))),)), [Reason.PLACEMENT_UNSUITABLE], id="no topic"
        ),
        pytest.param(
            Placement(rules=(TopicRule("?*", Preference(("a",))),)), [Reason.PLACEMENT_UNSUITABLE], id="every topic"
        ),
        pytest.param(
            Placement(rules=(TopicRule("o*", Preference(("a",))), TopicRule("or*", Preference(("b",))))),
            [Reason.PLACEMENT_UNSUITABLE],
            id="a rule behind a wider one",
        ),
        pytest.param(
            Placement(rules=(TopicRule("or*", Preference(("a",))), TopicRule("o*", Preference(("b",))))),
            [Reason.PLACEMENT_UNSUITABLE],
            id="whatever the patterns say: it is the topics that count",
        ),
        pytest.param(
            Placement(rules=(TopicRule("orders", Preference(("a",))), TopicRule("pay*", Preference(("b",))))),
            [],
            id="two that share no topic",
        ),
    ],
)
def test_preferences_without_effect_are_reported_with_reasons(placement: Placement, reasons: list[Reason]):
    seen = stretched(partition("orders"), partition("payments"))
    found = placement_warnings(placement, seen)
    assert [m.reason for m in found] == reasons
    assert all(m.message for m in found)


def test_topic_of_kafkas_own_keeps_no_pattern_from_matching_all():
    seen = stretched(partition("orders"), partition("oil"), partition("__consumer_offsets", internal=True))
    found = placement_warnings(Placement(rules=(TopicRule("o*", Preference(("a",))),)), seen)
    assert [m.reason for m in found] == [Reason.PLACEMENT_UNSUITABLE]


@pytest.mark.parametrize(
    ("counts", "seen"),
    [([], False), ([5], False), ([5, 6], False), ([5, 7], True), ([100, 109], False), ([100, 111], True)],
)
def test_brokers_lead_unequally_from_two_leaders_and_a_tenth_on(counts: list[int], seen: bool):
    assert uneven(counts) is seen
