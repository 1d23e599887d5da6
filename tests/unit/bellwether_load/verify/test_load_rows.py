from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether_load.verify.checks import Faults
from bellwether_load.verify.load_rows import LOADS, Load, LoadRows


def found(*rows: tuple[str, int, float | None, float | None], at: tuple[str, int] = ("a", 0)) -> Load | str | None:
    """The load of a partition, or why there is none; a topic's id is its name."""
    faults = Faults()
    load = LoadRows(((row[0], *row, None, None, None) for row in rows), faults).of((at[0], *at))
    return faults.of(LOADS)[0] if faults.any(LOADS) else load


def test_a_partition_without_a_row_has_no_load() -> None:
    rows = (("a", 1, 5.0, 1.0), ("a", 3, 5.0, 1.0))
    assert [found(*rows, at=at) for at in (("a", 0), ("a", 2), ("a", 4), ("b", 1))] == [None] * 4


def test_rates_are_rounded_and_halves_go_to_the_even_number() -> None:
    loads = [found(("a", 0, rate, None)) for rate in (0.5, 1.5, 2.5, 2.4999)]
    assert loads == [Load(p, 0, consume_known=False) for p in (0, 2, 2, 2)]


def test_consumption_that_is_not_measured_is_known_from_none() -> None:
    assert found(("a", 0, 7.0, None)) == Load(7, 0, consume_known=False)
    assert found(("a", 0, 7.0, 0.0)) == Load(7, 0, consume_known=True)


@pytest.mark.parametrize(
    ("produce", "consume", "said"),
    [
        (math.nan, 0.0, "produce_p95 is not a number"),
        (math.inf, 0.0, "produce_p95 is inf"),
        (-1.0, 0.0, "produce_p95 is -1"),
        (1.0, math.nan, "consume_p95 is not a number"),
        (1.0, -0.25, "consume_p95 is -0.25"),
        (2.0**46, 0.0, "produce_p95 is 7.03687e"),
        (None, 0.0, "produce_p95 is null"),
    ],
)
def test_what_is_no_load_is_refused_by_column(produce: float | None, consume: float, said: str) -> None:
    assert str(found(("a", 0, produce, consume))).startswith(f"a-0: {said}")


def test_a_bad_row_that_is_not_used_is_not_judged() -> None:
    rows = (("a", 0, math.nan, 0.0), ("a", 1, 2.0, 0.0))
    assert found(*rows, at=("a", 1)) == Load(2, 0, consume_known=True)


@pytest.mark.parametrize("numbers", [[0, 0], [0, 0, 1], [0, 2, 1]])
def test_rows_that_come_twice_or_out_of_order_are_refused(numbers: list[int]) -> None:
    said = found(*(("a", n, 1.0, 0.0) for n in numbers), at=("a", max(numbers)))
    assert "must be in the order of topic, topic id and partition, each once" in str(said)


@given(st.dictionaries(st.tuples(st.sampled_from("abc"), st.integers(0, 2**31 - 1)), st.integers(0, 1000)))
def test_every_row_is_found_whatever_the_gaps(rows: dict[tuple[str, int], int]) -> None:
    faults = Faults()
    loads = LoadRows(((t, t, n, float(rate), 0.0, None, None, None) for (t, n), rate in sorted(rows.items())), faults)
    asked = sorted({*rows, *((t, n + 1) for t, n in rows)})
    given_loads = {(t, n): loads.of((t, t, n)) for t, n in asked}
    assert {key: load.produce for key, load in given_loads.items() if load is not None} == rows
