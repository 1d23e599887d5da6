"""Stretches: consecutive samples of one partition from one read of a file, packed into a row.

In: an Arrow table of samples, columns and types as docs/load/files.md has them. Out: rows of ``SCHEMA``, and back from
such rows to arrays. A day of 200,000 partitions is 288 million samples; as rows of Spark's they would take minutes to
be moved, as a few million stretches they take seconds. The columns of samples are little-endian arrays, a value each;
``leader`` and ``epoch`` have a single value where it never changed, ``consume`` none where all are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bellwether_load.histories.samples import UNKNOWN, Bools, Ints, Rows, Samples, summed

SCHEMA = """topic string, topic_id string, partition int, refused int,
    at binary, leader binary, epoch binary, end binary, size binary, consume binary"""

_COLUMNS = {"at": "<u4", "leader": "<i4", "epoch": "<i4", "end": "<i8", "size": "<i8", "consume": "<f4"}
_LATEST = 1 << 32


class NoSamples(Exception):
    """The table has an invalid value; the message names the column."""


def pack(table: Any, *, sort: bool) -> Any:
    """A record batch of stretches. ``sort``: the rows of a partition are not consecutive. Raises NoSamples.

    Numbers that no broker gives (negative, not a number, infinite) become unknown, and are counted in ``refused``.
    """
    table = table.unify_dictionaries().combine_chunks()
    topics, topic_codes = _encoded(table.column("topic"))
    ids, id_codes = _encoded(table.column("topic_id"))
    partition = _whole(table, "partition")
    if len(partition) and partition.min() < 0:
        raise NoSamples("column partition holds negative numbers")
    group = ((topic_codes * len(ids) + id_codes) << 32) | partition
    columns, refused = _values(table)
    if sort:
        order = np.argsort(group, kind="stable")
        group, refused = group[order], refused[order]
        topic_codes, id_codes, partition = topic_codes[order], id_codes[order], partition[order]
        columns = {name: values[order] for name, values in columns.items()}
    firsts = np.flatnonzero(np.diff(group, prepend=-1))
    bounds = np.append(firsts, len(group)).astype(np.int64)
    arrays = [
        topics.take(pa.array(topic_codes[firsts])),
        ids.take(pa.array(id_codes[firsts])),
        pa.array(partition[firsts].astype(np.int32)),
        pa.array(summed(refused, bounds).astype(np.int32)),
        *(_binary(name, values, bounds) for name, values in columns.items()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["topic", "topic_id", "partition", "refused", *_COLUMNS])


def unpack(batches: Sequence[Any]) -> tuple[Any, Samples]:
    """The partitions of some stretches, as a table with ``topic``, ``topic_id``, ``partition`` and the sum of
    ``refused``, and their samples side by side in the same order. A partition's samples are in the order of the rows.
    """
    table = pa.Table.from_batches(batches)
    ids, id_codes = _encoded(table.column("topic_id"))
    topics, topic_codes = _encoded(table.column("topic"))
    partition = table.column("partition").to_numpy()
    order = np.lexsort((partition, id_codes, topic_codes))
    topic_codes, id_codes, partition = topic_codes[order], id_codes[order], partition[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (np.diff(topic_codes) != 0) | (np.diff(id_codes) != 0) | (np.diff(partition) != 0)
    firsts = np.flatnonzero(new)
    refused = table.column("refused").to_numpy()[order].astype(np.int64)
    keys = pa.table(
        {
            "topic": topics.take(pa.array(topic_codes[firsts])),
            "topic_id": ids.take(pa.array(id_codes[firsts])),
            "partition": pa.array(partition[firsts], pa.int32()),
            "refused": pa.array(summed(refused, np.append(firsts, len(order)))),
        }
    )
    moments, starts = _unbinary("at", table)
    lengths = np.diff(starts)[order]
    ends = np.cumsum(lengths)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)

    def column(name: str) -> NDArray[Any]:
        values, begins = _unbinary(name, table)
        several = (np.diff(begins) > 1)[order]
        rows = np.repeat(begins[:-1][order], lengths) + within * np.repeat(several, lengths)
        return np.asarray(values[rows])

    consume = np.full(len(within), np.nan, dtype=np.float32)
    known, begins = _unbinary("consume", table)
    some = np.repeat(np.diff(begins)[order] > 0, lengths)
    consume[some] = known[(np.repeat(begins[:-1][order], lengths) + within)[some]]
    at = moments[np.repeat(starts[:-1][order], lengths) + within].astype(np.int64)
    bounds = np.append(0, ends)[np.append(firsts, len(order))]
    return keys, Samples(bounds, at, column("leader"), column("epoch"), column("end"), column("size"), consume)


def _encoded(column: Any) -> tuple[Any, Ints]:
    """The distinct strings of a column, and for each row which it is."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    return whole.dictionary.cast(pa.string()), whole.indices.to_numpy().astype(np.int64)


def _whole(table: Any, name: str) -> Ints:
    return np.asarray(table.column(name).to_numpy()).astype(np.int64)


def _values(table: Any) -> tuple[dict[str, NDArray[Any]], Bools]:
    at = np.asarray(table.column("at").cast(pa.int64()).to_numpy())
    if len(at) and not 0 <= at.min() <= at.max() < _LATEST:
        raise NoSamples("column at holds moments before 1970 or after 2106")
    end, no_end = _known(table, "end_offset")
    size, no_size = _known(table, "log_bytes")
    known = table.column("consume_bytes_per_second")
    consume = np.asarray(known.fill_null(float("nan")).to_numpy())
    no_rate = ~(np.isfinite(consume) & (consume >= 0))
    columns = {
        "at": at,
        "leader": _whole(table, "leader"),
        "epoch": _whole(table, "leader_epoch"),
        "end": end,
        "size": size,
        "consume": np.where(no_rate, np.float32("nan"), consume),
    }
    return columns, (no_end | no_size | (no_rate & ~pc.is_null(known).to_numpy()))


def _known(table: Any, name: str) -> tuple[Ints, Bools]:
    """A column with UNKNOWN for null and for what is below 0, and where the latter was."""
    column = table.column(name)
    values = np.asarray(column.fill_null(UNKNOWN).to_numpy())
    wrong = values < 0
    if column.null_count:
        wrong &= ~pc.is_null(column).to_numpy()
    return np.maximum(values, UNKNOWN), wrong


def _binary(name: str, values: NDArray[Any], bounds: Ints) -> Any:
    """Each stretch's values as bytes: all of them, or as few as say the same."""
    values = values.astype(_COLUMNS[name])
    lengths = np.diff(bounds)
    if name in ("leader", "epoch"):
        changed = np.flatnonzero(np.diff(values)) + 1
        several = _holding(np.setdiff1d(changed, bounds), bounds)
        values, lengths = _some(values, bounds, several, first=True), np.where(several, lengths, 1)
    elif name == "consume":
        known = _holding(np.flatnonzero(~np.isnan(values)), bounds)
        values, lengths = _some(values, bounds, known, first=False), np.where(known, lengths, 0)
    offsets = np.zeros(len(bounds), dtype=np.int32)
    np.cumsum(lengths * values.dtype.itemsize, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)


def _holding(rows: Rows, bounds: Ints) -> Bools:
    """For each stretch whether one of these rows is in it."""
    found = np.zeros(len(bounds) - 1, dtype=np.bool_)
    found[np.searchsorted(bounds, rows, side="right") - 1] = True
    return found


def _some(values: NDArray[Any], bounds: Ints, whole: Bools, *, first: bool) -> NDArray[Any]:
    """The values of the stretches that are wanted whole, and of the others the first or none."""
    if whole.all():
        return values
    kept = np.repeat(whole, np.diff(bounds))
    if first:
        kept[bounds[:-1]] = True
    return values[kept]


def _unbinary(name: str, table: Any) -> tuple[NDArray[Any], Rows]:
    """All values of a column of bytes, and where each row's begin, with the end of the last."""
    whole = table.column(name).combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    kind = np.dtype(_COLUMNS[name])
    _, offset_bytes, data = whole.buffers()
    offsets = np.frombuffer(offset_bytes, "<i4")[whole.offset : whole.offset + len(whole) + 1].astype(np.int64)
    low, high = int(offsets[0]), int(offsets[-1])
    values = np.frombuffer(data, kind, (high - low) // kind.itemsize, low) if high > low else np.zeros(0, kind)
    return values, (offsets - low) // kind.itemsize
