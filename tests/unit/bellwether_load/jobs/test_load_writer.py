"""The packed hours of loads become lists; tests/spark has the rest."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from bellwether_load.histories.hours import of_masks
from bellwether_load.histories.rules import Rules
from bellwether_load.jobs.load_writer import SCHEMA, with_hours
from bellwether_load.transforms.loads import COLUMNS, measure_batches
from bellwether_load.transforms.stretches import pack
from testkit.loads.load_histories import Sample, steady
from testkit.loads.sample_files import Histories, samples_table

CONSUMED = [Sample(60 * m, 60 * m, 600 * m, consume=25.0) for m in range(130)]
HISTORIES: Histories = {
    ("apples", 0): steady(130, messages=60, each=10),
    ("apples", 1): steady(40, messages=60, each=30),
    ("pears", 0): CONSUMED,
}


def measured() -> Any:
    found = pa.Table.from_batches(list(measure_batches([pack(samples_table(HISTORIES), sort=True)], Rules())))
    return found.sort_by([("topic", "ascending"), ("partition", "ascending")])


def test_every_row_has_a_rate_for_each_known_hour():
    found = measured()
    days = [
        sum(1 << bit for bit in range(24) if any(row[day] >> bit & 1 for row in found["days"].to_pylist()))
        for day in range(7)
    ]
    hours = of_masks(days)
    assert len(hours) == 2
    table = with_hours(found.select([*COLUMNS, "hours"]), hours).cast(SCHEMA)
    assert table.column("produce_hours").to_pylist() == [[10, 10], [30, 30], [10, 10]]
    assert table.column("consume_hours").to_pylist() == [None, None, [25, 25]]


def test_without_known_hours_the_lists_are_empty():
    table = with_hours(measured().select([*COLUMNS, "hours"]), ()).cast(SCHEMA)
    assert table.column("produce_hours").to_pylist() == [[], [], []]
