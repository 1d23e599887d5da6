"""Write loads to the store: ``loads/<name>/part-NNNNN.parquet``, and ``_loads.json`` with their inputs.

In: a frame of loads with their packed hours, and the hours that the history knows. Each task writes a part.
When loads are overwritten, the JSON is deleted first and written last, so loads that have it are complete. Spark and
the readers of the store ignore its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bellwether_load.engines.frames import Batches, Frame
from bellwether_load.histories.hours import RECORD, Hours, filled
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.load_hours import ACCOUNT, LISTS, of_hours, write_account

FOLDER = "loads"
PART_ROWS = 500_000
PART_CELLS = 4_000_000
"""Hours of partitions in a part: each takes 16 bytes while it is written."""
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
        *LISTS,
    ]
)


def write_loads(
    uri: str, name: str, loads: Frame | None, count: int, hours: Sequence[int], account: Mapping[str, Any]
) -> str:
    """Write ``count`` loads, replacing existing ones; returns their folder. None: no loads. Raises StoreError.

    ``hours``: the hours of the week that the history knows; every row gets a rate for each of them.
    """
    store = Store.open(uri)
    folder = f"{FOLDER}/{name}"
    store.delete(f"{folder}/{ACCOUNT}")
    written = {_part(folder, 0)}
    if loads is None or not count:
        _write(store, _part(folder, 0), [], hours)
    else:
        rows = min(PART_ROWS, PART_CELLS // max(1, len(hours)))
        written = set(_write_parts(uri, folder, loads, -(-count // rows), hours))
    for stored in store.list(folder):
        if stored.path not in written:
            store.delete(stored.path)
    write_account(store, folder, account)
    return folder


def _write_parts(uri: str, folder: str, loads: Frame, parts: int, hours: Sequence[int]) -> list[str]:
    def write(number: int, batches: Batches) -> Batches:
        held = [batch for batch in batches if batch.num_rows]
        if held:
            path = _part(folder, number)
            _write(Store.open(uri), path, held, hours)
            yield pa.RecordBatch.from_pydict({"path": [path]})

    written = loads.ordered(parts, *ORDER).numbered(write, "path string")
    return [path for batch in written.batches() for path in batch.column("path").to_pylist()]


def _write(store: Store, path: str, batches: list[Any], hours: Sequence[int]) -> None:
    table = with_hours(pa.Table.from_batches(batches), hours) if batches else SCHEMA.empty_table()
    table = table.cast(SCHEMA).replace_schema_metadata(of_hours(hours))
    store.write_table(path, table, compression="zstd", row_group_size=100_000)


def with_hours(table: Any, which: Sequence[int]) -> Any:
    """The packed hours of loads as lists of the known ones; what a partition lacks is filled in."""
    packed = table.column("hours").combine_chunks()
    ends = np.cumsum([0, *(len(value) for value in packed.to_pylist())], dtype=np.int64) // RECORD.itemsize
    hours = Hours(ends, np.frombuffer(b"".join(packed.to_pylist()), RECORD))
    usual = (table.column(f"{name}_p95").to_numpy().astype(np.float64) for name in ("produce", "consume"))
    produce, consume, known = filled(hours, which, *usual)
    table = table.drop_columns(["hours"])
    for field, rates, there in zip(LISTS, (produce, consume), (np.ones(len(known), np.bool_), known), strict=True):
        ends = np.concatenate([[0], np.where(there, len(which), 0).cumsum()])
        lists = pa.LargeListArray.from_arrays(ends, rates[there].ravel(), mask=pa.array(~there))
        table = table.append_column(field, lists.cast(field.type))
    return table


def _part(folder: str, number: int) -> str:
    return f"{folder}/part-{number:05}.parquet"
