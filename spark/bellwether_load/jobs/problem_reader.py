"""Read a problem and measured loads for the plan job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from bellwether.core.settings.objective import Objective
from bellwether_load.balancing.blocks import Int64s
from bellwether_load.balancing.choices import Choices, Refused, name_of
from bellwether_load.balancing.hourly_loads import HourlyLoads, Part, loads_by_hour
from bellwether_load.balancing.partitions import COLUMNS, with_loads
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.load_hours import LISTS, REQUESTS, known_hours, load_files
from bellwether_load.store.plans.problem_files import FOLDER, PARTITIONS
from bellwether_load.store.store_errors import StoreMissing

_RATES = ("produce", "consume")
_LOADS = pa.schema([("topic_id", pa.string()), ("partition", pa.int32()), *((rate, pa.float64()) for rate in _RATES)])
_ROWS = 4_096
"""Of loads by hour that are read at a time: with a week 11 MB, and some more as sums are made."""


def read_partitions(store: Store, problem: str, loads: str, statistic: str) -> tuple[pa.RecordBatch, Int64s]:
    """The partitions of ``problems/<problem>`` with the rates of ``loads/<loads>``, and the partition of each row of
    the loads. Raises StoreError and Refused.

    ``statistic``: ``median``, ``p95`` or ``peak``.
    """
    path = f"{FOLDER}/{problem}/{PARTITIONS}"
    with store.parquet(path) as file, store.reading(path):
        return measured(store, file.read(columns=list(COLUMNS)), loads, statistic)


def measured(store: Store, partitions: pa.Table, loads: str, statistic: str) -> tuple[pa.RecordBatch, Int64s]:
    """The same of partitions that are at hand."""
    names = {f"{rate}_{statistic}": rate for rate in _RATES}
    found = (table.cast(_LOADS) for table in _tables(store, loads, names, 1 << 20))
    return with_loads(partitions, pa.concat_tables([_LOADS.empty_table(), *found]))


def read_hours(
    store: Store, loads: str, batch: pa.RecordBatch, places: Int64s, found: Choices, costs: Objective
) -> HourlyLoads | None:
    """The same loads by hour of the week; None where they have no hours. Raises StoreError; the passes Refused."""
    folder, counted = store.below(f"loads/{loads}"), costs.request_bytes > 0
    hours = known_hours(folder, load_files(folder))
    names = [field.name for field in LISTS if counted or field != REQUESTS]

    def parts() -> Iterator[Part]:
        start = 0
        for table in _tables(store, loads, dict(zip(names, names, strict=True)), _ROWS):
            rows = places[start : start + len(table)]
            start, known = start + len(table), rows >= 0
            rates = [matrix(table.column(name), len(hours))[known] for name in names]
            _check(batch, rows[known], rates)
            yield loads_by_hour(found, costs, rows[known], *rates)

    return HourlyLoads(hours, found.leader, parts, 1 + counted) if hours else None


def without_requests(store: Store, loads: str, places: Int64s) -> int:
    """How many of the partitions with loads have no measured requests. Raises StoreError."""
    missing, start = 0, 0
    for table in _tables(store, loads, {REQUESTS.name: "requests"}, 1 << 16):
        there = places[start : start + len(table)] >= 0
        missing += int((there & table.column("requests").is_null().to_numpy()).sum())
        start += len(table)
    return missing


def matrix(lists: pa.ChunkedArray, hours: int) -> Int64s:
    """A row for each list; 0 for null. A list of another length becomes -1."""
    array = pa.concat_arrays(lists.chunks)
    there = array.is_valid().to_numpy(zero_copy_only=False)
    fit = there & (np.nan_to_num(array.value_lengths().to_numpy(zero_copy_only=False)) == hours)
    if fit.all():
        rates: Int64s = array.flatten().to_numpy(zero_copy_only=False).reshape(-1, hours)
        return rates
    found = np.zeros((len(array), hours), np.int64)
    found[there & ~fit] = -1
    found[fit] = array.filter(pa.array(fit)).flatten().to_numpy(zero_copy_only=False).reshape(-1, hours)
    return found


def _check(batch: pa.RecordBatch, rows: Int64s, rates: Sequence[Int64s]) -> None:
    for of, exponent in zip(rates, (45, 45, 30), strict=False):
        wrong = ((of < 0) | (of > 2**exponent)).any(axis=1)
        if wrong.any():
            name = name_of(batch, int(rows[int(wrong.argmax())]))
            raise Refused(f"{name}: its rates by hour must be {of.shape[1]} numbers from 0 to 2**{exponent}")


def _tables(store: Store, name: str, wanted: Mapping[str, str], rows: int) -> Iterator[pa.Table]:
    """The loads, some rows at a time, in the order of the files. ``wanted``: new names of columns."""
    try:
        files = [f"loads/{name}/{path}" for path in load_files(store.below(f"loads/{name}"))]
    except StoreMissing:
        where = store.where(f"loads/{name}")
        raise StoreMissing(f"{where} holds no loads: run the loads job first, or name another") from None
    names = {"topic_id": "topic_id", "partition": "partition", **wanted}
    for path in files:
        with store.parquet(path) as file, store.reading(path):
            for batch in file.iter_batches(rows, columns=list(names)):
                if batch.num_rows:
                    yield pa.Table.from_batches([batch]).rename_columns(list(names.values()))
