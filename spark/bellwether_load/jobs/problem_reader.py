"""Read a problem and measured loads for the plan job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa

from bellwether_load.planning.choices import Costs, Slots
from bellwether_load.planning.tables import PARTITION_COLUMNS, Key, first_key, from_bytes, routed, to_bytes, with_loads
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.load_hours import LISTS, known_hours, load_files
from bellwether_load.store.plans.problem_files import FOLDER, PARTITIONS
from bellwether_load.store.store_errors import StoreMissing
from bellwether_load.transforms.hourly_passes import HourlyLoads
from bellwether_load.transforms.problem_partitions import ProblemPartitions

_NO_LOADS = pa.schema(
    [("topic_id", pa.string()), ("partition", pa.int32()), ("produce", pa.float64()), ("consume", pa.float64())]
)
_ROWS = 16_384
"""Of loads that are read at a time: with the hours of a week 44 MB."""


def read_partitions(
    store: Store, problem: str, loads: str, statistic: str, slots: Slots, costs: Costs
) -> ProblemPartitions:
    """The partitions of ``problems/<problem>`` with the rates of ``loads/<loads>``. Raises StoreError and Refused.

    A row group is a piece. ``statistic``: ``median``, ``p95`` or ``peak``.
    """
    path = f"{FOLDER}/{problem}/{PARTITIONS}"
    groups = _row_groups(store, path)
    borders: list[Key] = []
    with store.parquet(path) as file:
        for found in groups:
            batch = next(file.iter_batches(1, row_groups=[found.number], columns=list(Key._fields)))
            borders.append(first_key(pa.Table.from_batches([batch])))
    names = {f"produce_{statistic}": "produce", f"consume_{statistic}": "consume"}
    rates: dict[int, list[bytes]] = {}
    nothing = [to_bytes(_NO_LOADS.empty_table())]
    for table in _tables(store, loads, names):
        for piece, part in routed(table, borders) if borders else ():
            rates.setdefault(piece, []).append(to_bytes(part.select(_NO_LOADS.names)))
    streams = []
    for piece, group in enumerate(groups):
        with store.parquet(path) as file, store.reading(path):
            table = file.read_row_group(group.number, columns=list(PARTITION_COLUMNS))
        measured = pa.concat_tables(map(from_bytes, rates.pop(piece, nothing)))
        streams.append(to_bytes(with_loads(table, measured, *borders[piece + 1 : piece + 2])))
    return ProblemPartitions(streams, [group.rows for group in groups], slots, costs)


def read_hours(store: Store, loads: str) -> HourlyLoads | None:
    """The same loads by hour of the week; None where they have no hours. Raises StoreError."""
    folder = store.below(f"loads/{loads}")
    known = known_hours(folder, load_files(folder))
    names = {field.name: field.name.removesuffix("_hours") for field in LISTS}
    return HourlyLoads(known, lambda: _tables(store, loads, names)) if known else None


def _tables(store: Store, name: str, wanted: Mapping[str, str]) -> Iterator[pa.Table]:
    """The loads, some rows at a time, as lists of hours are large. ``wanted``: new names of columns."""
    try:
        files = [f"loads/{name}/{path}" for path in load_files(store.below(f"loads/{name}"))]
    except StoreMissing:
        where = store.where(f"loads/{name}")
        raise StoreMissing(f"{where} holds no loads: run the loads job first, or name another") from None
    names = {**{key: key for key in Key._fields}, **wanted}
    for path in files:
        with store.parquet(path) as file, store.reading(path):
            for batch in file.iter_batches(_ROWS, columns=list(names)):
                if batch.num_rows:
                    yield pa.Table.from_batches([batch]).rename_columns(list(names.values()))


class _RowGroup(NamedTuple):
    number: int
    rows: int


def _row_groups(store: Store, path: str) -> list[_RowGroup]:
    """Those that have rows."""
    with store.parquet(path) as file:
        groups = [_RowGroup(n, file.metadata.row_group(n).num_rows) for n in range(file.metadata.num_row_groups)]
    return [found for found in groups if found.rows]
