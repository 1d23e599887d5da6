"""Partitions next to their rates: joined, cut at borders, put into the lines of the digest."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from bellwether_load.plan.documents import problem_digest, problem_digest_of_chunks
from bellwether_load.plan.line_digest import chunk_digests
from bellwether_load.plan.problem import PartitionInput
from bellwether_load.planning.choices import Refused
from bellwether_load.planning.tables import Key, first_key, from_bytes, lines, routed, to_bytes, with_loads
from bellwether_load.transforms.problem_partitions import encoded
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


def rates(table: pa.Table) -> list[tuple[Any, Any]]:
    return list(zip(table.column("produce").to_pylist(), table.column("consume").to_pylist(), strict=True))


def test_partitions_keep_their_order_and_get_their_rates():
    found = with_loads(partitions(("a", 0), ("a", 1), ("b", 0)), loads(("b", 0, 3.0, None), ("a", 0, 1.0, 2.0)))
    assert rates(found) == [(1.0, 2.0), (None, None), (3.0, None)]
    assert found.column("topic").to_pylist() == ["a", "a", "b"]


def test_loads_of_partitions_that_are_gone_are_left_out():
    assert rates(with_loads(partitions(("a", 0)), loads(("a", 0, 1.0, 1.0), ("gone", 0, 9.0, 9.0)))) == [(1.0, 1.0)]


@pytest.mark.parametrize(
    ("keys", "border", "said"),
    [
        pytest.param([("a", 1), ("a", 0)], None, "a-0 comes after a-1", id="disorder"),
        pytest.param([("a", 1), ("a", 1)], None, "a-1 comes after a-1", id="twice"),
        pytest.param([("a", 1)], Key("a", "id-a", 0), "a-0 comes after a-1", id="disorder between pieces"),
    ],
)
def test_disorder_is_refused(keys: list[tuple[str, int]], border: Key | None, said: str):
    with pytest.raises(Refused, match=said):
        with_loads(partitions(*keys), loads(), border)


def test_two_rows_for_a_partition_are_refused():
    with pytest.raises(Refused, match="partition 1 of topic id id-a has two rows"):
        with_loads(partitions(("a", 1)), loads(("a", 1, 1.0, 1.0), ("a", 1, 2.0, 1.0)))


def test_loads_find_the_piece_of_their_partition():
    borders = [Key("a", "id-a", 0), Key("a", "id-a", 5), Key("c", "id-c", 0)]
    rows = [("c", 3), ("a", 4), ("b", 9), ("a", 5), ("a", 0), ("c", 0)]
    found = {
        piece: list(zip(part.column("topic").to_pylist(), part.column("partition").to_pylist(), strict=True))
        for piece, part in routed(loads(*((t, n, 1.0, 1.0) for t, n in rows)), borders)
    }
    assert found == {0: [("a", 0), ("a", 4)], 1: [("a", 5), ("b", 9)], 2: [("c", 0), ("c", 3)]}


def test_loads_before_all_partitions_go_to_the_first_piece():
    ((piece, part),) = routed(loads(("a", 0, 1.0, 1.0)), [Key("b", "id-b", 0)])
    assert (piece, part.num_rows) == (0, 1)


def test_a_table_reads_back_as_it_was_written():
    table = partitions(("a", 0), ("b", 1))
    assert from_bytes(to_bytes(table)).equals(table)
    assert first_key(table) == Key("a", "id-a", 0)


def test_the_lines_make_the_digest_that_the_verifier_knows():
    slots = [
        PartitionInput("a", "id-a", 0, (1, 2), (2,), 2, ""),
        PartitionInput("a", "id-a", 1, (1, 2), (2,), 2, ""),
        PartitionInput("b", "id-b", 0, (1, 2), (2,), 2, ""),
    ]
    known = [(2, 3), None, (4, 0)]
    terms = problem().header
    table = with_loads(partitions(("a", 0), ("a", 1), ("b", 0)), loads(("a", 0, 2.5, 3.4), ("b", 0, 3.5, None)))
    wanted = problem_digest(terms, zip(slots, known, strict=True))
    assert problem_digest_of_chunks(terms, chunk_digests(encoded(lines(table)))) == wanted


def test_no_partitions_make_no_line():
    assert len(lines(with_loads(partitions(), loads()))) == 0
