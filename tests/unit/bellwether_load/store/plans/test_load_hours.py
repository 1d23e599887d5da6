from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.load_hours import (
    ACCOUNT,
    LISTS,
    hour_blocks,
    known_hours,
    load_files,
    load_table,
    of_hours,
)
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing


def write(
    store: Store,
    name: str,
    hours: Sequence[int],
    rows: Sequence[tuple[int, list[int], list[int] | None]],
    requests: list[int] | None = None,
) -> None:
    columns = {
        "topic": ["orders" for _ in rows],
        "topic_id": ["id" for _ in rows],
        "partition": pa.array([number for number, _, _ in rows], pa.int32()),
        "produce_p95": pa.array([1.0 for _ in rows], pa.float64()),
        "consume_p95": pa.array([None for _ in rows], pa.float64()),
        LISTS[0].name: pa.array([ins for _, ins, _ in rows], LISTS[0].type),
        LISTS[1].name: pa.array([outs for _, _, outs in rows], LISTS[1].type),
        LISTS[2].name: pa.array([requests for _ in rows], LISTS[2].type),
    }
    store.write_table(name, pa.table(columns).replace_schema_metadata(of_hours(hours)))
    store.write_bytes(ACCOUNT, b'{"format": 2}')


def test_loads_come_file_by_file_with_the_numbers_of_every_hour(store: Store):
    write(store, "part-1.parquet", (3, 167), [(2, [5, 6], [7, 8])], [9, 0])
    write(store, "part-0.parquet", (3, 167), [(0, [1, 2], None), (1, [2**45, 0], [3, 4])])
    files = load_files(store)
    assert known_hours(store, files) == (3, 167)
    table = load_table(store, files, "P95").to_pylist()
    assert [tuple(row.values()) for row in table] == [("orders", "id", n, 1.0, None) for n in range(3)]
    blocks = list(hour_blocks(store, files, 2, requests=True))
    assert [of.tolist() for of in blocks[0] if of is not None] == [
        [[1, 2], [2**45, 0]], [[0, 0], [3, 4]], [[0, 0], [0, 0]], [False, False]
    ]  # fmt: skip
    assert [of.tolist() for of in blocks[1] if of is not None] == [[[5, 6]], [[7, 8]], [[9, 0]], [True]]
    assert next(hour_blocks(store, files, 2, requests=False))[2:] == (None, None)
    assert (next(hour_blocks(store, files, 3, requests=False))[0] == -1).all()


def test_loads_without_lists_know_no_hour(store: Store):
    store.write_table("part-0.parquet", pa.table({"topic": ["orders"]}))
    store.write_bytes(ACCOUNT, b'{"format": 2}')
    assert known_hours(store, load_files(store)) == ()


def test_files_with_different_hours_are_refused(store: Store):
    write(store, "part-0.parquet", (3,), [])
    write(store, "part-1.parquet", (4,), [])
    with pytest.raises(StoreDamaged, match="its files have different hours of the week"):
        known_hours(store, load_files(store))


@pytest.mark.parametrize("hours", [(168,), (-1,), (4, 3), (3, 3), (10**30,)])
def test_hours_that_no_week_has_are_refused(store: Store, hours: tuple[int, ...]):
    write(store, "part-0.parquet", hours, [])
    with pytest.raises(StoreDamaged, match="expected numbers from 0 to 167, ascending"):
        known_hours(store, load_files(store))


def test_hours_without_columns_and_null_lists_are_refused(store: Store):
    store.write_table("a.parquet", pa.table({"topic": ["orders"]}).replace_schema_metadata(of_hours((3,))))
    with pytest.raises(StoreDamaged, match="has no column"):
        list(hour_blocks(store, ["a.parquet"], 1, requests=False))
    columns = {"topic": ["o"], "topic_id": ["id"], "partition": pa.array([0], pa.int32())}
    columns |= {f"{what}_p95": pa.array([1.0]) for what in ("produce", "consume")}
    nulls = {LISTS[0].name: pa.array([None], LISTS[0].type), LISTS[1].name: pa.array([[1]], LISTS[1].type)}
    nulls[LISTS[2].name] = pa.array([None], LISTS[2].type)
    store.write_table("b.parquet", pa.table({**columns, **nulls}))
    with pytest.raises(StoreDamaged, match="column produce_hours contains nulls"):
        list(hour_blocks(store, ["b.parquet"], 1, requests=False))


def test_a_folder_without_loads_is_missing(store: Store):
    with pytest.raises(StoreMissing, match="contains no Parquet files"):
        load_files(store)
