"""Partitions with their measured rates, as Arrow tables: joined, serialized to lines, split at borders.

In and out: tables of some pieces of a problem, a piece being a run of partitions in the problem's order. All
work is Arrow's own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bellwether_load.planning.choices import Refused, rates

PARTITION_COLUMNS = ("topic", "topic_id", "partition", "replicas", "isr", "leader", "held")


class Key(NamedTuple):
    """What a problem's partitions are in the order of."""

    topic: str
    topic_id: str
    partition: int


def to_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow stream, compressed: names of topics repeat."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_bytes(data: bytes) -> pa.Table:
    """The table of an Arrow stream."""
    return pa.ipc.open_stream(data).read_all()


def first_key(table: pa.Table) -> Key:
    """The key of a table's first row."""
    return Key(*(table.column(name)[0].as_py() for name in Key._fields))


def routed(loads: pa.Table, borders: Sequence[Key]) -> Iterator[tuple[int, pa.Table]]:
    """Rows of loads by the piece that their partition belongs to; ``borders`` are the first keys of the pieces."""
    order = pc.sort_indices(loads, [(name, "ascending") for name in Key._fields])
    # Mostly they are in order already, and their lists are long.
    ordered = loads if pc.all(pc.greater(order[1:], order[:-1])).as_py() else loads.take(order)
    columns = [ordered.column(name) for name in Key._fields]

    def key(row: int) -> Key:
        return Key(*(column[row].as_py() for column in columns))

    # Only the keys that a search looks at are made: there are millions of rows and few borders.
    rows, start = range(ordered.num_rows), 0
    while start < len(rows):
        piece = max(0, bisect_right(borders, key(start)) - 1)
        end = bisect_left(rows, borders[piece + 1], lo=start, key=key) if piece + 1 < len(borders) else len(rows)
        yield piece, ordered.slice(start, end - start)
        start = end


def with_loads(partitions: pa.Table, loads: pa.Table, border: Key | None = None) -> pa.Table:
    """The partitions in their order, with ``produce`` and ``consume`` in bytes/s; null where unknown.

    ``border``: the first key of the next piece. Refused when partitions are not in order, or are there twice, or have
    two rows of loads.
    """
    _refuse_disorder(partitions, border)
    numbered = partitions.append_column("row", pa.array(np.arange(partitions.num_rows)))
    keys = ["topic_id", "partition"]
    twice = loads.group_by(keys).aggregate([([], "count_all")]).filter(pc.field("count_all") > 1)
    if twice.num_rows:
        raise Refused(f"loads: partition {twice['partition'][0]} of topic id {twice['topic_id'][0]} has two rows")
    # Arrow cannot join lists: the lists stay here, and the joined columns are added to them.
    bare = numbered.select([*keys, "row"])
    found = bare.join(loads.select([*keys, "produce", "consume"]), keys, join_type="left outer").sort_by("row")
    for name in ("produce", "consume"):
        partitions = partitions.append_column(name, found.column(name))
    return partitions.combine_chunks()


def lines(table: pa.Table) -> pa.Array:
    """What the problem's digest hashes of these partitions, a line each without its line feed (docs/load/files.md)."""
    if not table.num_rows:
        return pa.array([], pa.string())
    (batch,) = table.combine_chunks().to_batches()
    known = batch.column("produce").is_valid()
    produce, consume = (pc.if_else(known, pa.array(rate).cast(pa.string()), "-") for rate in rates(batch))
    texts = [batch.column(name).cast(pa.string()) for name in ("topic", "topic_id", "partition")]
    lists = [joined_list(batch.column(name)) for name in ("replicas", "isr")]
    after = [batch.column(name).cast(pa.string()) for name in ("leader", "held")]
    return pc.binary_join_element_wise(*texts, *lists, *after, produce, consume, "\t")


def joined_list(brokers: pa.Array) -> pa.Array:
    """Lists of brokers as lines have them."""
    return pc.binary_join(brokers.cast(pa.list_(pa.string())), ",")


def _refuse_disorder(table: pa.Table, border: Key | None) -> None:
    ordered: Any = pa.scalar(False)
    same: Any = pa.scalar(True)
    for name in Key._fields:
        column = table.column(name).combine_chunks()
        before, after = column.slice(0, max(0, len(column) - 1)), column.slice(1)
        ordered = pc.or_(ordered, pc.and_(same, pc.less(before, after)))
        same = pc.and_(same, pc.equal(before, after))
    wrong = pc.index(ordered, False).as_py() if table.num_rows > 1 else -1
    if wrong >= 0:
        _refuse(first_key(table.slice(wrong)), first_key(table.slice(wrong + 1)))
    if border is not None and table.num_rows and (last := first_key(table.slice(table.num_rows - 1))) >= border:
        _refuse(last, border)


def _refuse(before: Key, after: Key) -> None:
    raise Refused(
        f"partitions: {after.topic}-{after.partition} comes after {before.topic}-{before.partition}: they"
        " must be sorted by topic, topic id and partition, and each be there once"
    )
