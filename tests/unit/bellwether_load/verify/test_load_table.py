from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether_load.verify.load_table import LoadTable, Unusable


def test_a_partition_without_a_row_has_no_load() -> None:
    table = LoadTable([("a", 0, 5.0, 1.0), ("a", 3, 5.0, 1.0)])
    assert [table.of("a", 1), table.of("a", 4), table.of("b", 0), LoadTable().of("a", 0)] == [None] * 4


def test_rates_are_rounded_and_halves_go_to_the_even_number() -> None:
    table = LoadTable([("a", i, rate, None) for i, rate in enumerate((0.5, 1.5, 2.5, 2.4999))])
    assert [table.of("a", i) for i in range(4)] == [(0, None), (2, None), (2, None), (2, None)]


def test_consumption_that_is_not_measured_is_known_from_none() -> None:
    table = LoadTable([("a", 0, 7.0, None), ("a", 1, 7.0, 0.0)])
    assert (table.of("a", 0), table.of("a", 1)) == ((7, None), (7, 0))


@pytest.mark.parametrize(
    ("produce", "consume", "said"),
    [
        (math.nan, 0.0, "produce is not a number"),
        (math.inf, 0.0, "produce is inf"),
        (-1.0, 0.0, "produce is -1"),
        (1.0, math.nan, "consume is not a number"),
        (1.0, -0.25, "consume is -0.25"),
        (2.0**46, 0.0, "produce is 7.03687e"),
        (None, 0.0, "produce is null"),
    ],
)
def test_what_is_no_load_is_refused_by_column(produce: float | None, consume: float, said: str) -> None:
    with pytest.raises(Unusable, match=said):
        LoadTable([("a", 0, produce, consume)]).of("a", 0)


def test_a_bad_row_that_is_not_used_is_not_judged() -> None:
    assert LoadTable([("a", 0, math.nan, 0.0), ("a", 1, 2.0, 0.0)]).of("a", 1) == (2, 0)


def test_two_rows_for_one_partition_are_refused_at_any_position() -> None:
    for numbers in ([0, 0], [0, 1, 1], [5, 9, 9], [3, 3, 4]):
        twice = next(n for n in numbers if numbers.count(n) > 1)
        with pytest.raises(Unusable, match="more than one row"):
            LoadTable([("a", n, 1.0, 0.0) for n in numbers]).of("a", twice)


def test_rows_out_of_order_are_a_mistake_of_the_reader() -> None:
    with pytest.raises(ValueError, match="order"):
        LoadTable([("a", 0, 1.0, 0.0), ("b", 0, 1.0, 0.0), ("a", 1, 1.0, 0.0)])


def test_rows_may_come_in_pieces() -> None:
    table = LoadTable([("a", 0, 1.0, 0.0)])
    table.extend([("a", 1, 2.0, 0.0), ("b", 0, 3.0, 0.0)])
    assert [table.of("a", 1), table.of("b", 0), len(table)] == [(2, 0), (3, 0), 3]


@given(st.dictionaries(st.tuples(st.sampled_from("abc"), st.integers(0, 2**31 - 1)), st.integers(0, 1000)))
def test_every_row_is_found_whatever_the_gaps(rows: dict[tuple[str, int], int]) -> None:
    table = LoadTable((*key, float(rate), 0.0) for key, rate in sorted(rows.items()))
    assert {key: (table.of(*key) or (None,))[0] for key in rows} == rows
    assert all(table.of(topic, number + 1) is None for topic, number in rows if (topic, number + 1) not in rows)
