"""Sample files: one Parquet file a round, in a folder of its cluster and hour.

    samples/cluster=MkU3OEVBNTcwNTJENDM2Qg/hour=2026-11-21T12/0100-1a2b3c4d.parquet      begun at 12:01:00 UTC

In: rounds of the sampler. Out: their files, and lists of them. A file is never changed, and is removed two days later
(``sampling.rollup_worker``): what is kept are the rollups of its hour. So every reader of the folder sees each sample
once. Two samplers may write at the same time: their files have different names.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from bellwether_load.store.filesystems import Store
from bellwether_load.store.store_errors import StoreDamaged, StoreNewer, StoreUnusable

FOLDER = "samples"
FORMAT = "samples/3"
FORMAT_KEY, CLUSTER_KEY = b"bellwether.format", b"bellwether.cluster_id"
ROUND_GROUP_ROWS = 8_192
AHEAD = 600
"""Seconds by which clocks may differ: what begins later than that is of a clock that was ahead."""

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
        pa.field("requests_per_second", pa.float32()),
    ]
)
_ENCODED = dict.fromkeys(("at", "partition"), "DELTA_BINARY_PACKED")
_ENCODED |= dict.fromkeys(
    ("end_offset", "log_bytes", "consume_bytes_per_second", "requests_per_second"), "BYTE_STREAM_SPLIT"
)
_OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "use_dictionary": ["topic", "topic_id", "leader", "leader_epoch"],
    "column_encoding": _ENCODED,
    "row_group_size": ROUND_GROUP_ROWS,
}
_PATH = re.compile(rf"{FOLDER}/cluster=([^/]+)/hour=(\d{{4}}-\d\d-\d\dT\d\d)/([0-5]\d[0-5]\d)-[0-9a-f]{{8}}\.parquet")


@dataclass(frozen=True, slots=True)
class Rows:
    """The samples of one round, sorted by (topic, partition); the columns of ``SCHEMA`` in its order, equally long.

    ``at`` is when the round began, in whole seconds. ``leader`` is -1 where there is none. None means
    unknown: ``end_offset`` (records), ``log_bytes`` (bytes of the leader's replica), ``consume`` (bytes/s),
    ``requests`` (requests/s).
    """

    cluster_id: str
    at: datetime
    topic: Sequence[str]
    topic_id: Sequence[str]
    partition: Sequence[int]
    leader: Sequence[int]
    leader_epoch: Sequence[int]
    end_offset: Sequence[int | None]
    log_bytes: Sequence[int | None]
    consume: Sequence[float | None]
    requests: Sequence[float | None]

    def __len__(self) -> int:
        return len(self.partition)


@dataclass(frozen=True, slots=True, order=True)
class RoundFile:
    """A file of samples: when its round began, in seconds since 1970, and where it is."""

    at: int
    cluster_id: str
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Listing:
    """The rounds of a store by time; ``ahead``: those of a clock that was ahead; ``foreign``: other files."""

    rounds: tuple[RoundFile, ...]
    ahead: tuple[RoundFile, ...]
    foreign: tuple[str, ...]


def list_rounds(store: Store, now: datetime | None = None, cluster_id: str | None = None) -> Listing:
    """The files of samples, of one cluster or of all; without ``now`` none is ahead.

    Raises StoreError.
    """
    rounds: list[RoundFile] = []
    ahead: list[RoundFile] = []
    foreign: list[str] = []
    for stored in store.list(FOLDER):
        found = _PATH.fullmatch(stored.path)
        if found is None:
            foreign.append(stored.path)
            continue
        began = datetime.strptime(f"{found[2]}{found[3]}", "%Y-%m-%dT%H%M%S").replace(tzinfo=UTC)
        file = RoundFile(int(began.timestamp()), unquote(found[1]), stored.path, stored.size)
        if cluster_id is None or cluster_id == file.cluster_id:
            (rounds if now is None or file.at <= now.timestamp() + AHEAD else ahead).append(file)
    return Listing(tuple(sorted(rounds)), tuple(sorted(ahead)), tuple(foreign))


def cluster_folder(folder: str, cluster_id: str) -> str:
    """Where a cluster's files are."""
    return f"{folder}/cluster={quote(cluster_id, safe='')}"


def hour_folder(cluster_id: str, at: datetime) -> str:
    """Where the samples of an hour are."""
    return f"{cluster_folder(FOLDER, cluster_id)}/hour={at.astimezone(UTC):%Y-%m-%dT%H}"


def round_path(cluster_id: str, at: datetime, tag: str) -> str:
    """The file of a round that began at ``at``; ``tag``: eight hexadecimal digits of its own."""
    return f"{hour_folder(cluster_id, at)}/{at.astimezone(UTC):%M%S}-{tag}.parquet"


def table(rows: Rows) -> Any:
    """One round as a table of ``SCHEMA``."""
    at = pa.repeat(pa.scalar(int(rows.at.timestamp()), SCHEMA.field("at").type), len(rows))
    given = (getattr(rows, field.name) for field in fields(rows)[2:])
    return pa.Table.from_arrays([at, *map(pa.array, given, SCHEMA.types[1:])], schema=SCHEMA)


def write_round(store: Store, rows: Rows, tag: str | None = None) -> int:
    """Write one round; returns the number of bytes. Raises StoreError."""
    return write_table(store, rows.cluster_id, rows.at, table(rows), tag)


def write_table(store: Store, cluster_id: str, at: datetime, samples: Any, tag: str | None = None) -> int:
    """Write the samples of a round that began at ``at``, as a table of ``SCHEMA`` sorted by topic and partition."""
    metadata = {FORMAT_KEY: FORMAT.encode(), CLUSTER_KEY: cluster_id.encode()}
    path = round_path(cluster_id, at, tag or secrets.token_hex(4))
    return store.write_table(path, samples.replace_schema_metadata(metadata), **_OPTIONS)


class SampleWriter:
    """Writes the rounds of one cluster."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cluster = ""

    def write(self, rows: Rows) -> int:
        """Write a round; returns its bytes. Raises StoreError; StoreUnusable for a store of another cluster."""
        if rows.cluster_id != self._cluster:
            others = {file.cluster_id for file in list_rounds(self._store).rounds} - {rows.cluster_id}
            if others:
                raise StoreUnusable(
                    f"{self._store}: has samples of Kafka cluster {', '.join(sorted(others))}, and this is"
                    f" {rows.cluster_id}: use a separate store for each cluster"
                )
        size = write_round(self._store, rows)
        self._cluster = rows.cluster_id
        return size


def require_format(metadata: Mapping[bytes, bytes] | None, wanted: str, cluster_id: str, where: str) -> None:
    """Check what a file says of itself; added columns are no other format. Raises StoreDamaged, StoreNewer."""
    metadata = metadata or {}
    said = metadata.get(FORMAT_KEY, b"").decode(errors="replace")
    kind, _, number = said.partition("/")
    wanted_kind, _, known = wanted.partition("/")
    if kind == wanted_kind and number.isdecimal() and int(number) > int(known):
        raise StoreNewer(
            f"{where}: has format {said}, which is of a later release than this one ({wanted}): upgrade it"
        )
    if said != wanted:
        raise StoreDamaged(
            f"{where}: is not in the format {wanted} ({said or 'it names none'}). Move it out of the store"
        )
    cluster = metadata.get(CLUSTER_KEY, b"").decode(errors="replace")
    if cluster != cluster_id:
        raise StoreDamaged(f"{where}: is of Kafka cluster {cluster}, not of {cluster_id}. Move it out of the store")
