"""Convert Arrow columns to Python lists, for millions of rows, and check them against the expected schema.

In: record batches. Out: rows of integers, floats, strings and tuples. Called by the readers of problems, loads and
plans. Numbers come by way of numpy: creating a scalar object for each would take minutes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pyarrow as pa

from bellwether_load.store.filesystems import Store
from bellwether_load.store.store_errors import StoreDamaged

BATCH_ROWS = 65_536
_AHEAD = 4
"""Batches that are read before they are used."""


def batches(store: Store, path: str, schema: Any, most: int = BATCH_ROWS) -> Iterator[Any]:
    """Columns of a Parquet file in batches of at most ``most`` rows, converted to ``schema``.

    Texts are dictionaries: one long word may be that of each row.

    Raises StoreError; StoreDamaged names a column that is missing, of another type, or null where it must not be.
    """
    with store.parquet(path, words=True) as file, store.reading(path):
        there = set(file.schema_arrow.names)
        missing = [name for name in schema.names if name not in there]
        if missing:
            raise StoreDamaged(
                f"{store.where(path)}: has no column {', '.join(missing)}: was it written by Bellwether?"
            )
        for batch in file.iter_batches(most, columns=schema.names, use_threads=False):
            yield checked(batch, schema, store.where(path), words=True)


def table_of_batches(found: Iterable[Any], schema: Any) -> Any:
    """One table of batches, empty with the schema where there are none."""
    together = list(found)
    return pa.Table.from_batches(together) if together else schema.empty_table()


def ahead(found: Iterator[Any]) -> Iterator[Any]:
    """The same batches, the next ones read while one is used: for millions of rows, which take as long to read as to
    add up."""
    with ThreadPoolExecutor(1) as reader:
        coming = deque(reader.submit(next, found, None) for _ in range(_AHEAD))
        while (batch := coming.popleft().result()) is not None:
            coming.append(reader.submit(next, found, None))
            yield batch


def checked(batch: Any, schema: Any, where: str, *, words: bool = False) -> Any:
    """Columns of the batch in the order and with the types of the schema. StoreDamaged names an unusable column.

    With ``words``, texts that come as a dictionary stay one.
    """
    arrays = []
    for wanted in schema:
        array = batch.column(wanted.name)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        kept = words and pa.types.is_dictionary(array.type) and pa.types.is_string(wanted.type)
        if pa.types.is_dictionary(array.type) and not kept:
            array = array.dictionary_decode()
        try:
            if kept:
                array = pa.DictionaryArray.from_arrays(
                    array.indices.cast(pa.int32()), array.dictionary.cast(wanted.type)
                )
            elif array.type != wanted.type:
                array = array.cast(wanted.type)
        except pa.ArrowException as error:
            said = f"{where}: column {wanted.name} has the type {array.type} instead of {wanted.type}"
            raise StoreDamaged(f"{said}: {str(error).splitlines()[0]}") from None
        inner = array.flatten().null_count if pa.types.is_list(array.type) else 0
        if inner or (array.null_count and not wanted.nullable):
            raise StoreDamaged(f"{where}: column {wanted.name} contains nulls")
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, **({"names": schema.names} if words else {"schema": schema}))


def table_of(given: Iterable[tuple[Any, ...]], schema: Any) -> Any:
    """Build a table from rows whose fields are in the schema's order."""
    columns: list[tuple[Any, ...]] = list(zip(*given, strict=True)) or [() for _ in schema]
    arrays = [pa.array(column, wanted.type) for column, wanted in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def rows(batch: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of a batch as tuples of Python values; see ``values``."""
    return zip(*map(values, batch.columns), strict=True)


def values(array: Any) -> list[Any]:
    """A column of numbers, times (as numbers), strings (equal ones share one object) or lists of integers (as tuples).

    None for a null number; the others have no nulls.
    """
    if pa.types.is_string(array.type):
        array = array.dictionary_encode()
    if pa.types.is_dictionary(array.type):
        words = array.dictionary.to_pylist()
        return [words[i] for i in array.indices.to_numpy().tolist()]
    if pa.types.is_list(array.type):
        flat = array.values.to_numpy().tolist()
        return [tuple(flat[start:end]) for start, end in pairwise(array.offsets.to_numpy().tolist())]
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    return list(array.to_pylist()) if array.null_count else list(array.to_numpy().tolist())
