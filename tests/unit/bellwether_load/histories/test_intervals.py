from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from bellwether_load.histories.samples import Intervals, between
from testkit.loads.load_histories import MIDNIGHT, History, Sample, led, samples, steady


def intervals(*histories: History, longest: int = 600) -> Intervals:
    return between(samples(*histories), longest)


def spans(found: Intervals) -> list[tuple[int, int]]:
    """When each interval began and ended, in minutes."""
    ends = ((found.ended - MIDNIGHT) / 60).astype(int)
    return list(zip((ends - found.seconds // 60).tolist(), ends.tolist(), strict=True))


def test_each_sample_but_the_first_ends_an_interval():
    found = intervals(steady(4, messages=7, each=10))
    assert spans(found) == [(0, 1), (1, 2), (2, 3)]
    assert found.messages.tolist() == [7, 7, 7]
    assert found.grown.tolist() == [70, 70, 70]
    assert found.sized.all()
    assert int(found.bounding.sum()) == 4


def test_no_interval_reaches_from_one_partition_to_the_next():
    found = intervals(steady(3), [], steady(1), steady(2))
    assert found.bounds.tolist() == [0, 2, 2, 2, 3]
    assert int(found.bounding.sum()) == 5


def test_a_gap_is_one_interval_with_its_true_length():
    found = intervals([Sample(0, 0), Sample(420, 70)])
    assert (found.seconds.tolist(), found.messages.tolist()) == ([420], [70])


def test_over_a_gap_that_is_too_long_nothing_is_said():
    found = intervals([Sample(0, 0), Sample(60, 1), Sample(661, 9), Sample(721, 10)])
    assert spans(found) == [(0, 1), (11, 12)]
    assert int(found.bounding.sum()) == 4


def test_a_gap_as_long_as_is_allowed_counts():
    assert intervals([Sample(0, 0), Sample(600, 9)]).seconds.tolist() == [600]


def test_an_end_that_goes_back_excludes_that_and_neighbouring_intervals():
    history = [Sample(60 * m, end) for m, end in enumerate([100, 110, 120, 50, 60, 70, 80])]
    assert spans(intervals(history)) == [(0, 1), (4, 5), (5, 6)]


def test_samples_that_bound_no_interval_are_no_evidence():
    assert intervals([Sample(0, 9), Sample(60, 5)]).bounding.any() == np.False_


def test_an_end_that_goes_back_in_one_partition_is_nothing_to_its_neighbours():
    found = intervals(steady(3), [Sample(0, 9), Sample(60, 5)], steady(3))
    assert found.bounds.tolist() == [0, 2, 2, 4]


def test_two_histories_that_interleave_are_not_believed():
    # The same minutes twice: once as they were, once by a clock that was set back by an hour.
    before = [Sample(60 * m, 100 * m) for m in range(10)]
    after = [Sample(60 * m + 30, 100 * (m + 60)) for m in range(10)]
    assert len(intervals(sorted([*before, *after], key=lambda s: s.at)).seconds) == 0


def test_sizes_of_two_leaders_are_not_compared():
    found = intervals(led(steady(5), 2, leader=2, larger=10**9))
    assert found.sized.tolist() == [True, False, True, True]


def test_sizes_of_one_leader_in_two_epochs_are_not_compared():
    history = [replace(s, epoch=1 + (s.at >= 120)) for s in steady(4)]
    assert intervals(history).sized.tolist() == [True, False, True]


def test_sizes_are_compared_only_where_both_are_known():
    history = [replace(s, size=None if s.at == 60 else s.size) for s in steady(4)]
    found = intervals(history)
    assert found.sized.tolist() == [False, False, True]
    assert found.messages.tolist() == [100, 100, 100]


def test_what_consumers_got_is_that_of_the_sample_that_ends_the_interval():
    history = [replace(s, consume=float(i)) for i, s in enumerate(steady(3))]
    assert intervals(history).consume.tolist() == [1.0, 2.0]


def test_one_sample_and_none_have_no_interval():
    for histories in ([], [[]], [steady(1)], [steady(1), steady(1)]):
        found = intervals(*histories)
        assert found.bounds.tolist() == [0] * (len(histories) + 1)
        assert not found.bounding.any()


def test_lengths_add_up_to_the_time_that_is_covered():
    moments = [0, 60, 119, 181, 240]
    found = intervals([Sample(at, at) for at in moments])
    assert found.seconds.tolist() == [b - a for a, b in itertools.pairwise(moments)]
    assert int(np.sum(found.seconds)) == 240
