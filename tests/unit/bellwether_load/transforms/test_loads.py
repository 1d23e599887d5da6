"""The part of the transform that works on Arrow batches; tests/spark has the rest."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from bellwether_load.histories.rules import Rules
from bellwether_load.transforms.loads import COLUMNS, measure_batches
from bellwether_load.transforms.stretches import pack
from testkit.loads.load_histories import deleted, led, steady
from testkit.loads.sample_files import samples_table

HISTORIES = {
    ("apples", 0): steady(60, messages=100, each=10),
    ("apples", 1): led(steady(60, messages=7, each=900), 30, leader=2, larger=10**6),
    ("pears", 0): deleted(steady(60, messages=1000), 30, size=10**5),
    ("pears", 1): steady(1),
}


def measured(*batches: Any) -> list[dict[str, Any]]:
    found = [row for batch in measure_batches(batches, Rules()) for row in batch.to_pylist()]
    return sorted(found, key=lambda row: (row["topic"], row["partition"]))


def test_each_partition_has_a_row_with_its_load():
    found = measured(pack(samples_table(HISTORIES), sort=True))
    assert [(row["topic"], row["topic_id"], row["partition"]) for row in found] == [
        ("apples", "apples________________", 0),
        ("apples", "apples________________", 1),
        ("pears", "pears_________________", 0),
        ("pears", "pears_________________", 1),
    ]
    assert [row["produce_median"] for row in found] == [
        pytest.approx(1000 / 60),
        105.0,
        pytest.approx(10_000 / 60),
        None,
    ]
    assert [row["samples"] for row in found] == [60, 60, 60, 0]
    assert [row["given"] for row in found] == [60, 60, 60, 1]
    assert set(found[0]) == {*COLUMNS, "hours", "sized", "given", "refused", "days"}


def test_what_is_unknown_is_null():
    row = measured(pack(samples_table(HISTORIES), sort=True))[0]
    assert (row["consume_median"], row["consume_p95"], row["consume_peak"]) == (None, None, None)


def test_however_the_samples_are_cut_into_stretches_the_loads_are_the_same():
    whole = samples_table(HISTORIES)
    expected = measured(pack(whole, sort=True))
    for size in (1, 7, 50, 1000):
        pieces = [pack(whole.slice(at, size), sort=True) for at in range(0, whole.num_rows, size)]
        assert measured(*pieces) == expected
        assert measured(*reversed(pieces)) == expected


def test_samples_that_come_twice_change_nothing_but_their_count():
    whole = samples_table(HISTORIES)
    once, twice = measured(pack(whole, sort=True)), measured(*itertools.repeat(pack(whole, sort=True), 2))
    assert [row["given"] for row in twice] == [2 * row["given"] for row in once]
    assert [{**row, "given": 0} for row in twice] == [{**row, "given": 0} for row in once]


def test_nothing_is_measured_of_nothing():
    assert measured() == []
    assert measured(pack(samples_table({}), sort=True)) == []
