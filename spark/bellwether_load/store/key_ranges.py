"""Read a range of partitions from Parquet files that are sorted by topic and partition, a few row groups of each.

So that memory holds some partitions of many files, whatever the number of partitions. Called for samples and rollups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bellwether_load.store.filesystems import Store

KEY = ["topic", "topic_id", "partition"]
Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Partitions from ``first``, before ``end``; None: no bound."""

    first: Key | None = None
    end: Key | None = None


def key_ranges(store: Store, path: str, rows: int) -> list[KeyRange]:
    """Ranges that cover all partitions, with about so many rows of this file in each. Raises StoreError."""
    with store.parquet(path) as file, store.reading(path):
        keys = file.read(columns=KEY)
    firsts = keys.take(pa.array(range(rows, len(keys), rows), pa.int64())).to_pylist()
    borders = [(row["topic"], row["topic_id"], row["partition"]) for row in firsts]
    ordered = [None, *sorted(set(borders)), None]
    return [KeyRange(first, end) for first, end in pairwise(ordered)]


def read_range(file: Any, columns: Sequence[str], within: KeyRange) -> Any:
    """The rows of an open Parquet file whose partitions are in the range, as a table."""
    metadata = file.metadata
    places = [metadata.schema.names.index(name) for name in KEY]
    groups = [n for n in range(metadata.num_row_groups) if _overlaps(metadata.row_group(n), places, within)]
    table = file.read_row_groups(groups, columns=list(columns), use_threads=False)
    if within.first is not None:
        table = table.filter(pc.invert(_below(table, within.first)))
    return table if within.end is None else table.filter(_below(table, within.end))


def _overlaps(group: Any, places: Sequence[int], within: KeyRange) -> bool:
    """Whether a row group may have such partitions: all keys are between the least and the greatest of their parts."""
    found = [group.column(place).statistics for place in places]
    if any(one is None or not one.has_min_max for one in found):
        return True
    least, most = tuple(one.min for one in found), tuple(one.max for one in found)
    return (within.first is None or most >= within.first) and (within.end is None or least < within.end)


def _below(table: Any, bound: Key) -> Any:
    """Of each row whether its key is below the bound."""
    found: Any = False
    for name, value in reversed(list(zip(KEY, bound, strict=True))):
        column = table.column(name)
        column = column if name == "partition" else column.cast(pa.string())
        found = pc.or_(pc.less(column, value), pc.and_(pc.equal(column, value), found))
    return found


def encoded(column: Any) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct strings of a column, and for each row which it is."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0) if whole.num_chunks else pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), [])
    return whole.dictionary.to_pylist(), whole.indices.to_numpy().astype(np.int64)
