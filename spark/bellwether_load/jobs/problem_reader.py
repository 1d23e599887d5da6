"""Read a problem and measured loads for the plan job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from bellwether.core.settings.objective import Objective
from bellwether_load.balancing.blocks import Int64s
from bellwether_load.balancing.choices import Choices, Refused, name_of
from bellwether_load.balancing.hourly_loads import HourlyLoads, Part, loads_by_hour
from bellwether_load.balancing.partitions import COLUMNS, with_loads
from bellwether_load.store.columns import batches
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.load_hours import RATES, REQUESTS, hour_blocks, known_hours, load_files, load_table
from bellwether_load.store.plans.problem_files import FOLDER, PARTITIONS

_LOADS = pa.schema([("topic_id", pa.string()), ("partition", pa.int32()), *((rate, pa.float64()) for rate in RATES)])


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
    folder = store.below(f"loads/{loads}")
    return with_loads(partitions, load_table(folder, load_files(folder), statistic).select(_LOADS.names).cast(_LOADS))


def read_hours(
    store: Store, loads: str, batch: pa.RecordBatch, places: Int64s, found: Choices, costs: Objective
) -> HourlyLoads | None:
    """The same loads by hour of the week; None where they have no hours. Raises StoreError; the passes Refused."""
    folder, counted = store.below(f"loads/{loads}"), costs.request_bytes > 0
    hours = known_hours(folder, files := load_files(folder))

    def parts() -> Iterator[Part]:
        start = 0
        for produce, consume, requests, _ in hour_blocks(folder, files, len(hours), requests=counted):
            rows = places[start : start + len(produce)]
            start, known = start + len(rows), rows >= 0
            rates = [rate[known] for rate in (produce, consume, requests) if rate is not None]
            _check(batch, rows[known], rates)
            yield loads_by_hour(found, costs, rows[known], *rates)

    return HourlyLoads(hours, found.leader, parts, 1 + counted) if hours else None


def without_requests(store: Store, loads: str, places: Int64s) -> int:
    """How many of the partitions with loads have no measured requests. Raises StoreError."""
    folder, schema = store.below(f"loads/{loads}"), pa.schema([REQUESTS])
    found = [batch.column(0).is_null() for path in load_files(folder) for batch in batches(folder, path, schema)]
    return int((pa.concat_arrays(found).to_numpy(zero_copy_only=False) & (places >= 0)).sum())


def _check(batch: pa.RecordBatch, rows: Int64s, rates: Sequence[Int64s]) -> None:
    for of, exponent in zip(rates, (45, 45, 30), strict=False):
        wrong = ((of < 0) | (of > 2**exponent)).any(axis=1)
        if wrong.any():
            name = name_of(batch, int(rows[int(wrong.argmax())]))
            raise Refused(f"{name}: its rates by hour must be {of.shape[1]} numbers from 0 to 2**{exponent}")
