from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from bellwether_load.histories.quantiles import at_weights

Groups = Sequence[Sequence[tuple[float, int]]]


def found(groups: Groups, *wanted: list[int]) -> list[list[float]]:
    """Of groups of values and their weights, the value at each of the weights that are wanted."""
    flat = [pair for group in groups for pair in group]
    values = np.array([value for value, _ in flat], dtype=np.float64)
    weights = np.array([weight for _, weight in flat], dtype=np.int64)
    bounds = np.cumsum([0, *map(len, groups)])
    return [a.tolist() for a in at_weights(values, weights, bounds, [np.array(w, dtype=np.int64) for w in wanted])]


def plainly(group: Sequence[tuple[float, int]], weight: int) -> float:
    """The same, one value after the other."""
    reached = 0
    for value, own in sorted(group):
        reached += own
        if reached >= weight:
            return value
    return max((value for value, _ in group), default=math.nan)


def test_the_value_is_the_first_that_reaches_the_weight():
    group = [(3.0, 2), (1.0, 1), (2.0, 4)]
    assert found([group], [1], [2], [5], [6], [7]) == [[1.0], [2.0], [2.0], [3.0], [3.0]]


def test_beyond_the_total_it_is_the_greatest_and_below_one_the_least():
    assert found([[(3.0, 2), (1.0, 1)]], [99], [0], [-5]) == [[3.0], [1.0], [1.0]]


def test_equal_values_weigh_together():
    assert found([[(2.0, 1), (2.0, 1), (9.0, 1)]], [2]) == [[2.0]]


def test_an_empty_group_has_no_value():
    (values,) = found([[], [(1.0, 1)], []], [1, 1, 1])
    assert math.isnan(values[0])
    assert values[1] == 1.0
    assert math.isnan(values[2])


def test_no_groups_have_no_values():
    assert found([]) == []
    assert found([], []) == [[]]


def test_weights_are_added_exactly_even_where_they_are_large():
    large = 2**55
    assert found([[(1.0, large), (2.0, 1)]], [large], [large + 1]) == [[1.0], [2.0]]


@pytest.mark.parametrize("seed", range(8))
def test_groups_of_all_lengths_give_what_is_found_one_by_one(seed: int):
    draw = np.random.default_rng(seed)
    lengths = draw.choice([0, 1, 2, 3, 7, 50, 51, 52, 1000], 60)
    groups = [
        list(zip(draw.integers(0, 20, n).astype(float).tolist(), draw.integers(1, 9, n).tolist(), strict=True))
        for n in lengths.tolist()
    ]
    wanted = [draw.integers(1, 1 + max(1, sum(w for _, w in group))) for group in groups]
    expected = [plainly(group, int(w)) for group, w in zip(groups, wanted, strict=True)]
    np.testing.assert_array_equal(found(groups, [int(w) for w in wanted])[0], expected)


def test_a_group_larger_than_a_matrix_is_found_too():
    draw = np.random.default_rng(1)
    values = draw.random(300_000)
    bounds = np.array([0, 300_000])
    (median,) = at_weights(values, np.ones(300_000, dtype=np.int64), bounds, [np.array([150_000])])
    assert median[0] == np.sort(values)[149_999]


def test_neighbours_do_not_change_a_groups_value():
    draw = np.random.default_rng(2)
    groups = [[(float(v), 3) for v in draw.random(n)] for n in (5, 6, 7, 40)]
    together = found(groups, [9] * 4)[0]
    assert together == [found([group], [9])[0][0] for group in groups]
