from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether_load.histories.sketches import ERROR, LEVELS, at_seconds, level_of, rate_of, sketched

RATES = st.one_of(st.just(0.0), st.floats(2**-10, 2**49))


@given(st.lists(RATES, min_size=1))
def test_a_level_is_within_the_stated_error(rates: list[float]):
    given_rates = np.array(rates)
    np.testing.assert_allclose(rate_of(level_of(given_rates)), given_rates, rtol=ERROR * 1.001)


def test_rates_beyond_the_levels_are_the_last_ones():
    assert level_of(np.array([0.0, 1e-9, 1e30])).tolist() == [0, 1, LEVELS - 1]


@given(st.lists(st.tuples(RATES, st.integers(1, 600)), min_size=1, max_size=60), st.integers(1, 6), st.floats(0, 1))
def test_sketches_of_parts_add_up_to_that_of_the_whole(minutes: list[tuple[float, int]], parts: int, share: float):
    rates, seconds = np.array([r for r, _ in minutes]), np.array([s for _, s in minutes])
    bounds = np.linspace(0, len(rates), parts + 1).astype(np.int64)
    together = sketched(rates, seconds, np.array([0, len(rates)])).dense(np.zeros(1, np.int64), 1)
    apart = sketched(rates, seconds, bounds).dense(np.zeros(parts, np.int64), 1)
    assert together[0] == apart[0]
    np.testing.assert_array_equal(together[1], apart[1])
    wanted = np.array([max(1.0, np.floor(seconds.sum() * share))])
    order = np.argsort(rates, kind="stable")
    exact = rates[order][np.searchsorted(np.cumsum(seconds[order]), wanted[0])]
    found = at_seconds(apart[0], np.cumsum(apart[1], axis=1), wanted)[0]
    assert found == pytest.approx(exact, rel=ERROR * 1.001)


def test_an_empty_sketch_has_no_level():
    low, dense = sketched(np.zeros(0), np.zeros(0, np.int64), np.array([0, 0])).dense(np.zeros(1, np.int64), 1)
    assert np.isnan(at_seconds(low, np.cumsum(dense, axis=1), np.ones(1))).all()


def test_rows_that_a_mask_keeps_have_their_own_levels():
    kept = sketched(np.array([1.0, 2.0, 4.0]), np.array([60, 60, 60]), np.array([0, 1, 3])).keep(
        np.array([False, True])
    )
    assert (kept.bounds.tolist(), rate_of(kept.levels.astype(np.int64)).tolist()) == ([0, 2], [2.0, 4.0])
