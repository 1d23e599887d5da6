from __future__ import annotations

import numpy as np
import pytest

from bellwether_load.histories.samples import counted, inner, summed
from testkit.loads.load_histories import Sample, samples


def test_each_row_belongs_to_its_partition():
    assert samples([Sample(0, 1), Sample(60, 2)], [], [Sample(0, 3)]).owner.tolist() == [0, 0, 2]


def test_keeping_rows_keeps_every_partition_even_an_empty_one():
    found = samples([Sample(0, 1), Sample(60, 2)], [Sample(0, 3)]).keep(np.array([False, False, True]))
    assert found.bounds.tolist() == [0, 0, 1]
    assert found.end.tolist() == [3]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [([0, 2, 4], [3, 7]), ([0, 0, 4, 4], [0, 10, 0]), ([0, 4], [10]), ([0, 1, 1, 4], [1, 0, 9])],
)
def test_sums_are_of_each_group_and_nothing_for_an_empty_one(bounds: list[int], expected: list[int]):
    assert summed(np.array([1, 2, 3, 4]), np.array(bounds)).tolist() == expected


def test_the_sums_of_no_values_are_nothing():
    assert summed(np.zeros(0, dtype=np.int64), np.array([0, 0, 0])).tolist() == [0, 0]


def test_true_counts_as_one():
    assert summed(np.array([True, False, True]), np.array([0, 2, 3])).tolist() == [1, 1]


def test_large_numbers_are_added_exactly():
    values = np.array([2**60 + 1, 2**60 + 1, 1])
    assert summed(values, np.array([0, 2, 3])).tolist() == [2**61 + 2, 1]


def test_bounds_of_what_a_mask_leaves():
    assert counted(np.array([True, False, False, True, True]), np.array([0, 2, 3, 3, 5])).tolist() == [0, 1, 1, 1, 3]


@pytest.mark.parametrize(
    ("bounds", "length", "expected"),
    [
        ([0, 2, 5], 5, [True, False, True, True]),
        ([0, 0, 2, 2, 3, 3], 3, [True, False]),
        ([0, 3], 3, [True, True]),
        ([0, 1], 1, []),
        ([0, 0], 0, []),
    ],
)
def test_a_step_from_one_group_to_the_next_is_no_step_within(bounds: list[int], length: int, expected: list[bool]):
    assert inner(np.array(bounds), length).tolist() == expected
