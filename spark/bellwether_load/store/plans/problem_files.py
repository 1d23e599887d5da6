"""Rebalance problem files in a store: ``problems/<name>/problem.json`` and ``partitions.parquet``.

In: a problem, or its header and a table of its partitions if there are millions. Out: the same, partitions one by one.
The JSON is written last: a problem that has it is complete.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, TypeVar

import pyarrow as pa

from bellwether.core.stored_documents import InvalidDocument
from bellwether_load.plan.digests import problem_digest
from bellwether_load.plan.documents import PROBLEM, Document, header_line
from bellwether_load.plan.problem import PartitionInput, Problem, ProblemHeader
from bellwether_load.store.columns import batches, checked, rows, table_of, table_of_batches
from bellwether_load.store.filesystems import Store
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing

T = TypeVar("T")

FOLDER = "problems"
TERMS = "problem.json"
PARTITIONS = "partitions.parquet"

BROKERS = pa.list_(pa.int32())
KEY_FIELDS = (
    pa.field("topic", pa.string(), nullable=False),
    pa.field("topic_id", pa.string(), nullable=False),
    pa.field("partition", pa.int32(), nullable=False),
)
PARTITION_FIELDS = (*KEY_FIELDS, pa.field("replicas", BROKERS, nullable=False))

SCHEMA = pa.schema(
    [
        *PARTITION_FIELDS,
        pa.field("isr", BROKERS, nullable=False),
        pa.field("leader", pa.int32(), nullable=False),
        pa.field("held", pa.string(), nullable=False),
    ]
)

ORDER = [("topic", "ascending"), ("topic_id", "ascending"), ("partition", "ascending")]


def write_problem(store: Store, name: str, problem: Problem) -> str:
    """Write a problem; returns its digest, without loads. Raises StoreError."""
    return write_columns(store, name, problem.header, table_of(problem.partitions, SCHEMA))


def write_columns(store: Store, name: str, terms: ProblemHeader, partitions: Any) -> str:
    """The same of partitions that are an Arrow table with the columns of ``SCHEMA``, in any order."""
    folder = f"{FOLDER}/{name}"
    table = pa.Table.from_batches([checked(partitions.combine_chunks(), SCHEMA, f"problem {name}")]).sort_by(ORDER)
    store.write_table(f"{folder}/{PARTITIONS}", table, compression="zstd", row_group_size=262_144)
    store.write_bytes(f"{folder}/{TERMS}", json.dumps(PROBLEM.to_json(terms), indent=1).encode())
    return problem_digest(header_line(terms), table)


def read_partitions(problem: Store) -> Any:
    """The partitions of a problem as a table. ``problem``: a store opened at its folder."""
    return table_of_batches(batches(problem, PARTITIONS, SCHEMA), SCHEMA)


def read_document(store: Store, path: str, form: Document[T]) -> T:
    """A problem's or a plan's JSON. StoreDamaged names the field that cannot be read."""
    try:
        return form.read(store.read_bytes(path))
    except InvalidDocument as error:
        raise StoreDamaged(f"{store.where(path)}: {error}") from None


def read_terms(store: Store, name: str) -> ProblemHeader:
    """A problem's terms. StoreDamaged names the field that cannot be read."""
    return read_document(store, f"{FOLDER}/{name}/{TERMS}", PROBLEM)


def read_problem(store: Store, name: str) -> Problem:
    """Read a complete problem. For a cluster whose partitions fit into memory."""
    found = read_partitions(store.below(f"{FOLDER}/{name}")).to_batches()
    return Problem(read_terms(store, name), tuple(PartitionInput(*row) for batch in found for row in rows(batch)))


def problem_names(store: Store, prefix: str = "") -> list[str]:
    """The complete problems whose names begin so, the oldest first."""
    found = []
    for stored in store.list(FOLDER):
        _, name, *rest = stored.path.split("/")
        # A run's name has no dot: others belong to a policy whose name has the same prefix.
        own = not prefix or (name.startswith(prefix) and "." not in name.removeprefix(prefix))
        if rest == [TERMS] and own:
            found.append((str(stored.modified), name))
    return [name for _, name in sorted(found)]


def all_terms(store: Store, prefix: str = "") -> dict[str, ProblemHeader]:
    """The terms of these problems by name, the oldest first; unreadable ones are ignored."""
    found = {}
    for name in problem_names(store, prefix):
        with suppress(StoreDamaged, StoreMissing):
            found[name] = read_terms(store, name)
    return found
