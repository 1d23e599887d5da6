"""The partitions of a problem with their measured rates: joined, and put into the lines of the problem's digest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bellwether_load.balancing.blocks import Int64s
from bellwether_load.balancing.choices import Refused, name_of, rates

KEYS = ("topic", "topic_id", "partition")
COLUMNS = (*KEYS, "replicas", "isr", "leader", "held")
_TOGETHER = 65_536
"""Lines that are made at a time."""


def with_loads(partitions: pa.Table, loads: pa.Table) -> tuple[pa.RecordBatch, Int64s]:
    """The partitions in their order, with ``produce`` and ``consume`` in bytes/s, null where unknown; and the partition
    of each row of the loads, -1 for one that is gone.

    Refused when partitions are not in order, or are there twice, or have two rows of loads.
    """
    _refuse_disorder(partitions)
    keys = ["topic_id", "partition"]
    twice = loads.group_by(keys).aggregate([([], "count_all")]).filter(pc.field("count_all") > 1)
    if twice.num_rows:
        raise Refused(f"loads: partition {twice['partition'][0]} of topic id {twice['topic_id'][0]} has two rows")
    numbered, measured = (
        t.select(keys).append_column(n, pa.array(np.arange(len(t))))
        for t, n in zip((partitions, loads), ("row", "at"), strict=True)
    )
    at = numbered.join(measured, keys, join_type="left outer").sort_by("row").column("at").combine_chunks()
    places = np.full(len(loads), -1)
    places[at.drop_null().to_numpy()] = np.flatnonzero(at.is_valid().to_numpy(zero_copy_only=False))
    columns = [partitions.column(name).combine_chunks() for name in COLUMNS]
    found = [loads.column(name).combine_chunks().take(at) for name in ("produce", "consume")]
    return pa.RecordBatch.from_arrays([*columns, *found], [*COLUMNS, "produce", "consume"]), places


def lines(batch: pa.RecordBatch) -> Iterator[bytes]:
    """What the problem's digest hashes of these partitions, a line each (docs/load/files.md)."""
    for start in range(0, len(batch), _TOGETHER):
        some = batch.slice(start, _TOGETHER)
        known = some.column("produce").is_valid()
        texts = [some.column(name).cast(pa.string()) for name in KEYS]
        texts += [joined(some.column(name)) for name in ("replicas", "isr")]
        texts += [some.column(name).cast(pa.string()) for name in ("leader", "held")]
        texts += [pc.if_else(known, pa.array(rate).cast(pa.string()), "-") for rate in rates(some)]
        yield from encoded(texts)


def joined(brokers: pa.Array) -> pa.Array:
    """Lists of brokers as lines have them."""
    return pc.binary_join(brokers.cast(pa.list_(pa.string())), ",")


def encoded(texts: list[pa.Array]) -> Iterator[bytes]:
    """Columns as lines that digests hash, each with its line feed."""
    return (f"{text}\n".encode() for text in pc.binary_join_element_wise(*texts, "\t").to_pylist())


def _refuse_disorder(table: pa.Table) -> None:
    ordered: Any = pa.scalar(False)
    same: Any = pa.scalar(True)
    for name in KEYS:
        column = table.column(name).combine_chunks()
        before, after = column.slice(0, max(0, len(column) - 1)), column.slice(1)
        ordered = pc.or_(ordered, pc.and_(same, pc.less(before, after)))
        same = pc.and_(same, pc.equal(before, after))
    wrong = pc.index(ordered, False).as_py() if table.num_rows > 1 else -1
    if wrong >= 0:
        before, after = (name_of(table, wrong + more) for more in (0, 1))
        raise Refused(
            f"partitions: {after} comes after {before}: they must be sorted by topic, topic id and partition, and each"
            " be there once"
        )
