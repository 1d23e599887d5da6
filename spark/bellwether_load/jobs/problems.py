"""Read a problem and measured loads for the plan job.

The executors read the files, one row group at a time, without conversion to Spark rows; so they must reach the store. A
row group of the problem is a piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bellwether_load.engines.frames import Engine, Frame
from bellwether_load.planning.blocks import Int64s
from bellwether_load.planning.tables import PARTITION_COLUMNS, Key, first_key, routed
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.load_hours import LISTS, known_hours, load_files
from bellwether_load.store.plans.problem_files import FOLDER, PARTITIONS
from bellwether_load.store.store_errors import StoreMissing
from bellwether_load.transforms.hourly_passes import HourlyLoads
from bellwether_load.transforms.pieces import LOADS as OF_LOADS
from bellwether_load.transforms.pieces import PARTITIONS as OF_PARTITIONS
from bellwether_load.transforms.pieces import PIECE_TYPE, piece_row

_ROWS = 16_384
"""Of loads that are read at a time: with the hours of a week 44 MB."""


@dataclass(frozen=True)
class Posed:
    """A problem's partitions in pieces. ``starts``: the first row of each piece, and behind them how many there are."""

    pieces: Frame
    starts: Int64s
    borders: tuple[Key, ...]


def read_posed(engine: Engine, uri: str, name: str) -> Posed:
    """The partitions of ``problems/name``. Raises StoreError."""
    path = f"{FOLDER}/{name}/{PARTITIONS}"
    groups = _row_groups(Store.open(uri), path)
    borders = []
    with Store.open(uri).parquet(path) as file:
        for found in groups:
            batch = next(file.iter_batches(1, row_groups=[found.number], columns=list(Key._fields)))
            borders.append(first_key(pa.Table.from_batches([batch])))
    starts = np.cumsum([0, *(found.rows for found in groups)]).astype(np.int64)

    def read(piece: int) -> Iterator[pa.RecordBatch]:
        yield piece_row(piece, OF_PARTITIONS, _read(uri, groups[piece], PARTITION_COLUMNS))

    return Posed(engine.each(len(groups), read, PIECE_TYPE), starts, tuple(borders))


def read_loads(engine: Engine, uri: str, name: str, statistic: str, borders: Sequence[Key]) -> Frame:
    """The measured loads of ``loads/name`` by the piece that they belong to.

    ``statistic``: ``median``, ``p95`` or ``peak``. Raises StoreError.
    """
    return _columns(engine, uri, name, {f"produce_{statistic}": "produce", f"consume_{statistic}": "consume"}, borders)


def read_hours(engine: Engine, uri: str, name: str, borders: Sequence[Key]) -> HourlyLoads | None:
    """The same loads by hour of the week; None where they have no hours. Raises StoreError."""
    store = Store.open(uri).below(f"loads/{name}")
    known = known_hours(store, load_files(store))
    names = {field.name: field.name.removesuffix("_hours") for field in LISTS}
    return HourlyLoads(known, _columns(engine, uri, name, names, borders)) if known else None


def _columns(engine: Engine, uri: str, name: str, wanted: Mapping[str, str], borders: Sequence[Key]) -> Frame:
    store = Store.open(uri)
    try:
        files = [f"loads/{name}/{path}" for path in load_files(store.below(f"loads/{name}"))]
    except StoreMissing:
        where = store.where(f"loads/{name}")
        raise StoreMissing(f"{where} holds no loads: run the loads job first, or name another") from None
    groups = [found for path in files for found in _row_groups(store, path)]
    names = {**{key: key for key in Key._fields}, **wanted}

    def read(group: int) -> Iterator[pa.RecordBatch]:
        for table in _parts(uri, groups[group], names):
            for piece, part in routed(table.rename_columns(list(names.values())), borders):
                yield piece_row(piece, OF_LOADS, part)

    return engine.each(len(groups), read, PIECE_TYPE)


class _RowGroup(NamedTuple):
    path: str
    number: int
    rows: int


def _row_groups(store: Store, path: str) -> list[_RowGroup]:
    """Those that have rows."""
    with store.parquet(path) as file:
        groups = [_RowGroup(path, n, file.metadata.row_group(n).num_rows) for n in range(file.metadata.num_row_groups)]
    return [found for found in groups if found.rows]


def _read(uri: str, group: _RowGroup, columns: Iterable[str]) -> pa.Table:
    store = Store.open(uri)
    with store.parquet(group.path) as file, store.reading(group.path):
        return file.read_row_group(group.number, columns=list(columns))


def _parts(uri: str, group: _RowGroup, columns: Iterable[str]) -> Iterator[pa.Table]:
    """A row group of loads, some rows at a time: lists of hours are large."""
    store = Store.open(uri)
    with store.parquet(group.path) as file, store.reading(group.path):
        for batch in file.iter_batches(_ROWS, row_groups=[group.number], columns=list(columns)):
            yield pa.Table.from_batches([batch])
