"""Sample files in Parquet: schema, encoding, and which files of a day are to be read.

In: rounds of the sampler. Out: one file for each, below ``samples/date=.../``. Every reader, including Spark's jobs,
uses ``current_files``: it omits files that a compacted file replaces, and files that contain no samples.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bellwether_load.store.filesystems import Store, Stored
from bellwether_load.store.samples import compaction_rules as coverage
from bellwether_load.store.samples import filenames
from bellwether_load.store.samples.rows import Rows
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing, StoreUnusable

FORMAT = "samples/1"
FORMAT_KEY, CLUSTER_KEY, ROUNDS_KEY = b"bellwether.format", b"bellwether.cluster_id", b"bellwether.rounds"

_NAME = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("at", pa.timestamp("s", tz="UTC"), nullable=False),
        pa.field("topic", _NAME, nullable=False),
        pa.field("topic_id", _NAME, nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("leader", pa.int32(), nullable=False),
        pa.field("leader_epoch", pa.int32(), nullable=False),
        pa.field("end_offset", pa.int64()),
        pa.field("log_bytes", pa.int64()),
        pa.field("consume_bytes_per_second", pa.float32()),
    ]
)

# Encoding of values. Over a day each partition has many rows whose counters grow slowly. Where it has few, as in a
# round and in an hour, the step to the next partition would spoil the delta encoding.
_GROWING = ("end_offset", "log_bytes")
_COMMON: dict[str, Any] = {
    "compression": "zstd",
    "use_dictionary": ["topic", "topic_id", "leader", "leader_epoch"],
}
_ENCODED = dict.fromkeys(("at", "partition"), "DELTA_BINARY_PACKED") | {"consume_bytes_per_second": "BYTE_STREAM_SPLIT"}
SHORT_RUNS = _COMMON | {"column_encoding": _ENCODED | dict.fromkeys(_GROWING, "BYTE_STREAM_SPLIT")}
LONG_RUNS = _COMMON | {"column_encoding": _ENCODED | dict.fromkeys(_GROWING, "DELTA_BINARY_PACKED")}
# One such group of each file is in memory when files are merged.
ROUND_GROUP_ROWS = 8_192

# If a footer is a request to an object store, most of the time is waiting.
_READ_AT_ONCE = 8

Said = Callable[[str, str], None]
"""Called with a path and why it is ignored."""


@dataclass(frozen=True, slots=True)
class SampleFile:
    """A readable file of samples: its rounds and its cluster."""

    stored: Stored
    rounds: frozenset[str]
    cluster_id: str
    rows: int


def table(rows: Rows) -> Any:
    """One round as a table of ``SCHEMA``, its format and cluster in the metadata."""
    at = int(rows.at.timestamp())
    columns = [
        pa.repeat(pa.scalar(at, pa.timestamp("s", tz="UTC")), len(rows)),
        pa.array(rows.topic, pa.string()).dictionary_encode(),
        pa.array(rows.topic_id, pa.string()).dictionary_encode(),
        pa.array(rows.partition, pa.int32()),
        pa.array(rows.leader, pa.int32()),
        pa.array(rows.leader_epoch, pa.int32()),
        pa.array(rows.end_offset, pa.int64()),
        pa.array(rows.log_bytes, pa.int64()),
        pa.array(rows.consume, pa.float32()),
    ]
    return pa.Table.from_arrays(columns, schema=described(rows.cluster_id))


def described(cluster_id: str, rounds: frozenset[str] | None = None) -> Any:
    """The schema with a file's metadata; ``rounds`` are those that a compacted file holds."""
    metadata = {FORMAT_KEY: FORMAT.encode(), CLUSTER_KEY: cluster_id.encode()}
    return SCHEMA.with_metadata(metadata | (holding(rounds) if rounds is not None else {}))


def holding(rounds: frozenset[str]) -> dict[bytes, bytes]:
    """Metadata key for the rounds of a compacted file, without which the file is ignored."""
    return {ROUNDS_KEY: json.dumps(sorted(rounds)).encode()}


def write_round(store: Store, rows: Rows, tag: str) -> int:
    """Write one round; returns the number of bytes. ``tag``: eight hexadecimal digits of its own. Raises StoreError."""
    whole = pa.BufferOutputStream()
    pq.write_table(table(rows), whole, row_group_size=ROUND_GROUP_ROWS, **SHORT_RUNS)
    data = whole.getvalue()
    store.write_bytes(filenames.round_path(rows.at, tag), data)
    return int(data.size)


def days(store: Store) -> tuple[date, ...]:
    """The days that have samples, in order. Raises StoreError."""
    return filenames.days(stored.path for stored in store.list(filenames.FOLDER))


def current_files(
    store: Store, day: date | str, *, cluster_id: str | None = None, said: Said | None = None
) -> tuple[str, ...]:
    """The paths, below the store, of a day's files to read: every sample once. Raises StoreError.

    A day without files gives none. A foreign, truncated or damaged file, and one of another cluster than
    ``cluster_id``, is ignored, and ``said`` is called with the reason. Files that a compacted file has replaced are
    kept for at least half an hour, so that they can still be read from this list.
    """
    found = readable(store, day if isinstance(day, date) else date.fromisoformat(day), said, cluster_id=cluster_id)
    return coverage.current({path: file.rounds for path, file in found.items()})


def readable(
    store: Store, day: date, said: Said | None = None, *, cluster_id: str | None = None
) -> dict[str, SampleFile]:
    """All of a day's files of samples by path, superfluous ones included; see ``current_files``."""
    listed = store.list(filenames.folder(day))
    with ThreadPoolExecutor(_READ_AT_ONCE, thread_name_prefix="footers") as pool:
        inspected = list(pool.map(lambda stored: _inspect(store, stored, cluster_id), listed))
    found: dict[str, SampleFile] = {}
    for stored, file in zip(listed, inspected, strict=True):
        if isinstance(file, SampleFile):
            found[stored.path] = file
        elif file and said is not None:
            said(stored.path, file)
    return found


def _inspect(store: Store, stored: Stored, cluster_id: str | None) -> SampleFile | str:
    """A file by its name and its footer, or why it does not count; empty where it has just gone."""
    try:
        file = _open(store, stored)
    except StoreMissing:
        return ""  # compacted by another process since the list was made
    except StoreUnusable as error:
        return str(error)
    if cluster_id is not None and file.cluster_id != cluster_id:
        return (
            f"{store.where(stored.path)}: has samples of Kafka cluster {file.cluster_id}, not of"
            f" {cluster_id}: use a separate store for each cluster"
        )
    return file


def _open(store: Store, stored: Stored) -> SampleFile:
    """Content of a file, by its name and its footer. Raises StoreError, StoreDamaged if it is not a sample file."""
    path = stored.path
    compacted = filenames.is_compacted(path)
    if not compacted and not filenames.is_round(path):
        raise StoreDamaged(f"{store.where(path)}: does not have the name of a sample file. Move it out of the store")
    with store.parquet(path) as file:
        metadata = file.metadata.metadata or {}
        names, rows = file.schema_arrow.names, file.metadata.num_rows
    known = metadata.get(FORMAT_KEY, b"").decode(errors="replace")
    if known != FORMAT or names != SCHEMA.names:
        raise StoreDamaged(
            f"{store.where(path)}: is not in the format {FORMAT} ({known or 'it names none'}). Move it out of the store"
        )
    rounds = _rounds(metadata.get(ROUNDS_KEY)) if compacted else frozenset({filenames.name_of(path)})
    if rounds is None:
        raise StoreDamaged(f"{store.where(path)}: does not list its rounds. Move it out of the store")
    return SampleFile(stored, rounds, metadata.get(CLUSTER_KEY, b"").decode(errors="replace"), rows)


def _rounds(text: bytes | None) -> frozenset[str] | None:
    try:
        found = json.loads(text or b"null")
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(found, list)
        or not found
        or not all(isinstance(n, str) and filenames.is_round_id(n) for n in found)
    ):
        return None
    return frozenset(found)
