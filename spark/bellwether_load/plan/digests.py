"""Digests of problems and plans, from Arrow tables (docs/load/files.md): SHA-256 in hex.

Over a first line, and then the digest of each chunk of ``CHUNK_LINES`` lines in a line. All lines end in a line feed;
the last chunk has those that are left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bellwether_load.plan.partition_rows import Rates

CHUNK_LINES = 4_096
DIGEST_LETTERS = 32
"""128 bits: a second plan with the digest of an approved one cannot be found."""
KEYS = ("topic", "topic_id", "partition")


def problem_digest(document: str, partitions: Any, rates: Rates | None = None) -> str:
    """Digest of ``problem.json`` in one line, of its partitions and, if given, of their rates."""
    given = [] if rates is None else [pa.array(of, mask=~rates.known) for of in (rates.produce, rates.consume)]

    def columns(some: Any, start: int) -> list[Any]:
        known = [rate.slice(start, CHUNK_LINES) for rate in given] or [pa.nulls(len(some), pa.int64())] * 2
        texts = [*_texts(some, *KEYS), *_lists(some, "replicas", "isr"), *_texts(some, "leader", "held")]
        return [*texts, *(pc.fill_null(rate.cast(pa.string()), "-") for rate in known)]

    return _digest(document, partitions, columns)


def plan_digest(problem: str, moves: Any) -> str:
    """The digest that an approval names: of the problem, by its digest, and of all orders in the plan."""
    return _digest(problem, moves, lambda some, _: [*_texts(some, *KEYS), *_lists(some, "order")])[:DIGEST_LETTERS]


def _digest(first: str, table: Any, columns: Callable[[Any, int], list[Any]]) -> str:
    hashed = hashlib.sha256(f"{first}\n".encode())
    for start in range(0, len(table), CHUNK_LINES):
        lines = pc.binary_join_element_wise(*columns(table.slice(start, CHUNK_LINES), start), "\t").to_pylist()
        text = "\n".join(lines)
        digest = hashlib.sha256(f"{text}\n".encode("utf-8", "surrogatepass")).hexdigest()
        hashed.update(f"{digest}\n".encode())
    return hashed.hexdigest()


def _texts(table: Any, *names: str) -> list[Any]:
    return [table.column(name).cast(pa.string()) for name in names]


def _lists(table: Any, *names: str) -> list[Any]:
    return [pc.binary_join(table.column(name).cast(pa.list_(pa.string())), ",") for name in names]
