"""Lines of partitions and of moves that digests hash (docs/load/files.md), from Arrow columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bellwether_load.plan.rebalance_plan import CHUNK_LINES

KEYS = ("topic", "topic_id", "partition")


def partition_lines(table: Any, rates: Sequence[Any] = ()) -> Iterator[str]:
    """A line for each partition. ``rates``: arrays of whole bytes/s in and out, null where not known; none for the
    digest of a problem without loads."""
    for start in range(0, table.num_rows, CHUNK_LINES):
        some = table.slice(start, CHUNK_LINES)
        known = [rate.slice(start, CHUNK_LINES) for rate in rates] or [pa.nulls(some.num_rows, pa.int64())] * 2
        texts = [*_texts(some, *KEYS), *_lists(some, "replicas", "isr"), *_texts(some, "leader", "held")]
        yield from _lines([*texts, *(pc.fill_null(rate.cast(pa.string()), "-") for rate in known)])


def move_lines(table: Any) -> Iterator[str]:
    """A line for each move."""
    for start in range(0, table.num_rows, CHUNK_LINES):
        some = table.slice(start, CHUNK_LINES)
        yield from _lines([*_texts(some, *KEYS), *_lists(some, "order")])


def _texts(table: Any, *names: str) -> list[Any]:
    return [table.column(name).cast(pa.string()) for name in names]


def _lists(table: Any, *names: str) -> list[Any]:
    return [pc.binary_join(table.column(name).cast(pa.list_(pa.string())), ",") for name in names]


def _lines(texts: list[Any]) -> list[str]:
    found: list[str] = pc.binary_join_element_wise(*texts, "\t").to_pylist()
    return found
