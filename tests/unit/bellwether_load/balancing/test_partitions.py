"""Partitions next to their rates: joined, and put into the lines of the digest."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from bellwether_load.balancing.choices import Refused
from bellwether_load.balancing.partitions import lines, with_loads
from bellwether_load.plan.documents import header_line, problem_digest
from bellwether_load.plan.problem import PartitionInput
from bellwether_load.plan.rebalance_plan import digest_of_lines
from testkit.loads.small_planner import problem


def partitions(*keys: tuple[str, int]) -> pa.Table:
    rows = [
        {"topic": topic, "topic_id": f"id-{topic}", "partition": number, "replicas": [1, 2], "isr": [2], "leader": 2,
         "held": ""}
        for topic, number in keys
    ]  # fmt: skip
    schema = pa.schema(
        [
            ("topic", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32()),
            ("replicas", pa.list_(pa.int32())), ("isr", pa.list_(pa.int32())), ("leader", pa.int32()),
            ("held", pa.string()),
        ]
    )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=schema)


def loads(*rows: tuple[str, int, float | None, float | None]) -> pa.Table:
    schema = pa.schema(
        [
            ("topic", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32()),
            ("produce", pa.float64()), ("consume", pa.float64()),
        ]
    )  # fmt: skip
    named = [{"topic": t, "topic_id": f"id-{t}", "partition": n, "produce": p, "consume": c} for t, n, p, c in rows]
    return pa.Table.from_pylist(named, schema=schema)


def rates(table: pa.RecordBatch) -> list[tuple[Any, Any]]:
    return list(zip(table.column("produce").to_pylist(), table.column("consume").to_pylist(), strict=True))


def test_partitions_keep_their_order_and_get_their_rates():
    rows = loads(("b", 0, 3.0, None), ("gone", 0, 9.0, 9.0), ("a", 0, 1.0, 2.0))
    found, places = with_loads(partitions(("a", 0), ("a", 1), ("b", 0)), rows)
    assert places.tolist() == [2, -1, 0]
    assert rates(found) == [(1.0, 2.0), (None, None), (3.0, None)]
    assert found.column("topic").to_pylist() == ["a", "a", "b"]


@pytest.mark.parametrize(("first", "second"), [(1, 0), (1, 1)], ids=["disorder", "twice"])
def test_disorder_is_refused(first: int, second: int):
    with pytest.raises(Refused, match=f"a-{second} comes after a-{first}: they must be sorted"):
        with_loads(partitions(("a", first), ("a", second)), loads())


def test_two_rows_for_a_partition_are_refused():
    with pytest.raises(Refused, match="partition 1 of topic id id-a has two rows"):
        with_loads(partitions(("a", 1)), loads(("a", 1, 1.0, 1.0), ("a", 1, 2.0, 1.0)))


def test_the_lines_make_the_digest_that_the_verifier_knows():
    slots = [
        PartitionInput("a", "id-a", 0, (1, 2), (2,), 2, ""),
        PartitionInput("a", "id-a", 1, (1, 2), (2,), 2, ""),
        PartitionInput("b", "id-b", 0, (1, 2), (2,), 2, ""),
    ]
    known = [(2, 3), None, (4, 0)]
    terms = problem().header
    table, _ = with_loads(partitions(("a", 0), ("a", 1), ("b", 0)), loads(("a", 0, 2.5, 3.4), ("b", 0, 3.5, None)))
    wanted = problem_digest(terms, zip(slots, known, strict=True))
    assert digest_of_lines(header_line(terms), lines(table)) == wanted


def test_no_partitions_make_no_line():
    assert not list(lines(with_loads(partitions(), loads())[0]))
