"""Rows of the benchmark: medians, the ratio to the floor, and what a later run replaces."""

from __future__ import annotations

from evacuation.__main__ import in_order
from evacuation.figures import markdown, merged, rows

SECONDS = {"floor": [1.0, 3.0, 2.0], "operator": [3.0, 5.0, 2.5]}


def test_the_ratio_is_that_of_the_medians():
    floor, operator = rows("evacuate", 1000, SECONDS)
    assert (floor["median"], floor["min"], floor["max"], floor["ratio"]) == (2.0, 1.0, 3.0, 1.0)
    assert (operator["who"], operator["median"], operator["rounds"], operator["ratio"]) == ("operator", 3.0, 3, 1.5)


def test_without_a_floor_there_is_no_ratio():
    (row,) = rows("start", 1000, {"by hand": [0.3]})
    assert row["ratio"] is None


def test_the_floor_is_first_whoever_began():
    assert list(in_order({"operator": [1.0], "by hand": [1.0], "floor": [1.0]})) == ["floor", "by hand", "operator"]


def test_a_run_replaces_the_rows_of_its_own_work_and_size_and_keeps_the_others():
    before = rows("evacuate", 1000, SECONDS) + rows("evacuate", 3000, SECONDS) + [{"work": "plan", "partitions": 1000}]
    after = merged(before, rows("evacuate", 1000, {"floor": [9.0]}))
    assert [(r["work"], r["partitions"], r.get("median")) for r in after] == [
        ("plan", 1000, None),
        ("evacuate", 1000, 9.0),
        ("evacuate", 3000, 2.0),
        ("evacuate", 3000, 3.0),
    ]


def test_the_table_has_a_line_for_each_row():
    found = [{**row, "load": 1.2} for row in rows("evacuate", 10_000, SECONDS)]
    assert markdown(found).splitlines()[2:] == [
        "| evacuate | 10,000 | floor | 3 | 2.0 | 1.0 | 3.0 | 1.0 | 1.2 |",
        "| evacuate | 10,000 | operator | 3 | 3.0 | 2.5 | 5.0 | 1.5 | 1.2 |",
    ]
