"""Write loads to the store: ``loads/<name>/part-NNNNN.parquet``, and ``_loads.json`` with their inputs.

In: a DataFrame of loads. Each executor writes a part. When loads are overwritten, the JSON is deleted first and written
last, so loads that have it are complete. Spark and the readers of the store ignore its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from bellwether.adapters.store.filesystems import Store

FOLDER = "loads"
ACCOUNT = "_loads.json"
PART_ROWS = 500_000
ORDER = ["topic", "topic_id", "partition"]

SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("topic_id", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("produce_median", pa.float64(), nullable=False),
        pa.field("produce_p95", pa.float64(), nullable=False),
        pa.field("produce_peak", pa.float64(), nullable=False),
        pa.field("consume_median", pa.float64()),
        pa.field("consume_p95", pa.float64()),
        pa.field("consume_peak", pa.float64()),
        pa.field("messages_median", pa.float64(), nullable=False),
        pa.field("samples", pa.int32(), nullable=False),
        pa.field("covered_seconds", pa.int64(), nullable=False),
    ]
)


def write_loads(uri: str, name: str, loads: DataFrame | None, count: int, account: Mapping[str, Any]) -> str:
    """Write ``count`` loads, replacing existing ones; returns their folder. None: no loads. Raises StoreError."""
    store = Store.open(uri)
    folder = f"{FOLDER}/{name}"
    store.delete(f"{folder}/{ACCOUNT}")
    written = {_part(folder, 0)}
    if loads is None or not count:
        _write(store, _part(folder, 0), [])
    else:
        written = set(_write_parts(uri, folder, loads, -(-count // PART_ROWS)))
    for stored in store.list(folder):
        if stored.path not in written:
            store.delete(stored.path)
    store.write_bytes(f"{folder}/{ACCOUNT}", json.dumps(account, indent=1).encode())
    return folder


def _write_parts(uri: str, folder: str, loads: DataFrame, parts: int) -> list[str]:
    def write(batches: Iterator[Any]) -> Iterator[Any]:
        held = [batch for batch in batches if batch.num_rows]
        if held:
            path = _part(folder, TaskContext.get().partitionId())  # type: ignore[union-attr]
            _write(Store.open(uri), path, held)
            yield pa.RecordBatch.from_pydict({"path": [path]})

    spread = loads.coalesce(1) if parts == 1 else loads.repartitionByRange(parts, *ORDER)
    return [row.path for row in spread.sortWithinPartitions(*ORDER).mapInArrow(write, "path string").collect()]


def _write(store: Store, path: str, batches: list[Any]) -> None:
    table = pa.Table.from_batches(batches).cast(SCHEMA) if batches else SCHEMA.empty_table()
    store.write_table(path, table, compression="zstd", row_group_size=100_000)


def _part(folder: str, number: int) -> str:
    return f"{folder}/part-{number:05}.parquet"
