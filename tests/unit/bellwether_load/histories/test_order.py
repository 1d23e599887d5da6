from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from bellwether_load.histories.samples import usable
from testkit.loads.load_histories import MIDNIGHT, Sample, samples, steady


def kept(*histories: list[Sample], restart: int = 1200) -> list[list[tuple[int, int]]]:
    """For each partition the moments, from midnight, and the ends of what is left."""
    found = usable(samples(*histories), 30, restart)
    rows = list(zip((found.at - MIDNIGHT).tolist(), found.end.tolist(), strict=True))
    return [rows[a:b] for a, b in itertools.pairwise(found.bounds.tolist())]


def test_samples_in_order_stay_as_they_are():
    given = samples(steady(5), steady(3))
    assert usable(given, 30, 1200) is given


def test_unanswered_samples_go():
    assert kept([Sample(0, 1), Sample(60, None), Sample(120, 3)]) == [[(0, 1), (120, 3)]]


def test_a_partition_of_which_nothing_is_known_stays_as_an_empty_one():
    assert kept([Sample(0, None)], [Sample(0, 1)]) == [[], [(0, 1)]]


def test_samples_out_of_order_are_put_into_order():
    assert kept([Sample(120, 3), Sample(0, 1), Sample(60, 2)]) == [[(0, 1), (60, 2), (120, 3)]]


def test_a_later_partition_may_be_earlier_in_time():
    assert kept([Sample(600, 1), Sample(660, 2)], [Sample(0, 8), Sample(60, 9)]) == [
        [(600, 1), (660, 2)],
        [(0, 8), (60, 9)],
    ]


def test_the_same_sample_twice_counts_once():
    assert kept([Sample(0, 1), Sample(0, 1), Sample(60, 2), Sample(60, 2)]) == [[(0, 1), (60, 2)]]


def test_of_two_close_rounds_by_two_samplers_one_is_skipped():
    one, other = steady(4), [replace(s, at=s.at + 20) for s in steady(4)]
    assert kept([*one, *other]) == [[(0, 0), (60, 100), (120, 200), (180, 300)]]


def test_two_samplers_whose_rounds_are_far_apart_both_count():
    one, other = steady(2), [replace(s, at=s.at + 30) for s in steady(2)]
    assert [at for at, _ in kept([*one, *other])[0]] == [0, 30, 60, 90]


def test_steps_are_counted_from_the_last_sample_that_was_kept():
    assert [at for at, _ in kept([Sample(at, at) for at in (0, 20, 40, 50, 70, 75, 200)])[0]] == [0, 40, 70, 200]


def test_samples_close_to_the_next_stretch_make_way_for_its_first():
    at = (0, 20, 40, 50, 80, 90, 95, 105, 125)
    assert [at for at, _ in kept([Sample(at, at) for at in at], restart=100)[0]] == [0, 40, 105]
    assert [at for at, _ in kept([Sample(at, at) for at in (0, 99, 101, 190, 219)], restart=100)[0]] == [0, 101, 219]


def test_partitions_next_to_a_crowded_one_keep_all_samples():
    crowded = [Sample(at, at) for at in (0, 10, 20, 30)]
    assert kept(steady(2), crowded, steady(2)) == [[(0, 0), (60, 100)], [(0, 0), (30, 30)], [(0, 0), (60, 100)]]


BEST = [
    Sample(0, 5, 50, leader=2, epoch=4, consume=1.0),
    Sample(0, 5, 40, leader=2, epoch=4, consume=1.0),
    Sample(0, 4, 90, leader=2, epoch=4, consume=1.0),
    Sample(0, 9, 90, leader=3, epoch=3, consume=1.0),
    Sample(0, 9, None, leader=3, epoch=3, consume=None),
]


@pytest.mark.parametrize("order", list(itertools.permutations(range(len(BEST)), len(BEST)))[::7])
def test_of_samples_at_one_moment_the_best_informed_counts_in_whatever_order_they_come(order: tuple[int, ...]):
    found = usable(samples([BEST[i] for i in order]), 30, 1200)
    assert (found.end.tolist(), found.size.tolist(), found.epoch.tolist()) == ([5], [50], [4])


def test_no_samples_at_all_are_in_order():
    assert kept() == []
    assert kept([], []) == [[], []]


def test_the_latest_moment_and_the_last_partition_are_not_mixed_up():
    late = 2**32 - 1 - MIDNIGHT
    assert kept([Sample(late, 2), Sample(late - 60, 1)], [Sample(60 - MIDNIGHT, 2), Sample(-MIDNIGHT, 1)]) == [
        [(late - 60, 1), (late, 2)],
        [(-MIDNIGHT, 1), (60 - MIDNIGHT, 2)],
    ]


def test_missing_values_in_ties_keep_the_order_deterministic():
    rows = [Sample(0, 5, consume=None), Sample(0, 5, consume=2.0), Sample(0, 5, consume=1.0)]
    found = [usable(samples(list(p)), 30, 1200).consume.tolist() for p in itertools.permutations(rows)]
    assert found == [[np.float32(2.0)]] * 6
