"""Loads find their partitions, and what is no load is refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether_load.plan.checks import Faults
from bellwether_load.plan.partition_rows import LOADS, PROBLEM, Table, keys_of, rates_of
from testkit.loads.small_planner import loads_of, partition_table, slot

Row = tuple[str, int, float | None, float | None]


def found(*rows: Row, at: tuple[str, int] = ("a", 0)) -> tuple[int, int, bool] | str | None:
    """The rates of a partition and whether both are known, or why there are none; a topic's id is made of its name."""
    return every(rows, [at])[0]


def every(rows: tuple[Row, ...], at: list[tuple[str, int]]) -> list[tuple[int, int, bool] | str | None]:
    faults = Faults()
    wanted = partition_table([slot(number, topic=topic) for topic, number in at])
    given = loads_of([(row[0], f"id-of-{row[0]}", *row[1:]) for row in rows])
    keys = keys_of(wanted, given)
    rates = rates_of(Table(given, keys[1], LOADS, faults), Table(wanted, keys[0], PROBLEM, faults), "P95")
    if faults.any(LOADS):
        return [faults.of(LOADS)[0]] * len(at)
    known = zip(rates.produce.tolist(), rates.consume.tolist(), rates.known, rates.consumed, strict=True)
    return [(p, c, bool(both)) if there else None for p, c, there, both in known]


def test_a_partition_without_a_row_has_no_load() -> None:
    rows = (("a", 1, 5.0, 1.0), ("a", 3, 5.0, 1.0))
    assert [found(*rows, at=at) for at in (("a", 0), ("a", 2), ("a", 4), ("b", 1))] == [None] * 4
    assert found() is None


def test_rates_are_rounded_and_halves_go_to_the_even_number() -> None:
    loads = [found(("a", 0, rate, None)) for rate in (0.5, 1.5, 2.5, 2.4999)]
    assert loads == [(p, 0, False) for p in (0, 2, 2, 2)]


def test_consumption_that_is_not_measured_is_known_from_none() -> None:
    assert found(("a", 0, 7.0, None)) == (7, 0, False)
    assert found(("a", 0, 7.0, 0.0)) == (7, 0, True)


@pytest.mark.parametrize(
    ("produce", "consume", "said"),
    [
        (math.nan, 0.0, "produce_p95 of nan"),
        (math.inf, 0.0, "produce_p95 of inf"),
        (-1.0, 0.0, "produce_p95 of -1"),
        (1.0, math.nan, "consume_p95 of nan"),
        (1.0, -0.25, "consume_p95 of -0.25"),
        (2.0**46, 0.0, "produce_p95 of 7.03687e"),
        (None, 0.0, "produce_p95 of nan"),
    ],
)
def test_what_is_no_load_is_refused_by_column(produce: float | None, consume: float, said: str) -> None:
    assert str(found(("a", 0, produce, consume))).startswith(f"a-0 has a {said}")


def test_a_bad_row_that_is_not_used_is_not_judged() -> None:
    rows = (("a", 0, math.nan, 0.0), ("a", 1, 2.0, 0.0))
    assert found(*rows, at=("a", 1)) == (2, 0, True)


@pytest.mark.parametrize("numbers", [[0, 0], [0, 0, 1], [0, 2, 1]])
def test_rows_that_come_twice_or_out_of_order_are_refused(numbers: list[int]) -> None:
    said = found(*(("a", n, 1.0, 0.0) for n in numbers), at=("a", max(numbers)))
    assert "occurs twice" in str(said) or "out of order" in str(said)


@given(st.dictionaries(st.tuples(st.sampled_from("abc"), st.integers(0, 2**31 - 2)), st.integers(0, 1000)))
def test_every_row_is_found_whatever_the_gaps(rows: dict[tuple[str, int], int]) -> None:
    asked = sorted({*rows, *((t, n + 1) for t, n in rows)})
    given_loads = every(tuple((t, n, float(rate), 0.0) for (t, n), rate in sorted(rows.items())), asked)
    assert {key: load[0] for key, load in zip(asked, given_loads, strict=True) if load is not None} == rows
