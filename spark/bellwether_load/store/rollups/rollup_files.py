"""Rollup files: one Parquet file an hour, with a row for each partition that was sampled in it.

    rollups/cluster=MkU3OEVBNTcwNTJENDM2Qg/date=2026-11-21/12.parquet      the hour from 12:00 UTC

The name is determined by the hour, and the bytes by the samples: two processes that write one write the same. A file
appears whole, and is replaced whole when late samples of its hour come. Its metadata names its samples.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from bellwether_load.histories.rollups import HourRows
from bellwether_load.histories.samples import UNKNOWN
from bellwether_load.histories.sketches import Sketches
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.sample_files import CLUSTER_KEY, FORMAT_KEY, cluster_folder, require_format
from bellwether_load.store.store_errors import StoreDamaged

FOLDER = "rollups"
FORMAT = "rollups/2"
ABOUT_KEY = b"bellwether.rollup"
GROUP_ROWS = 8_192

_NAME = pa.dictionary(pa.int32(), pa.string())
_LIST = pa.list_(pa.field("element", pa.int16(), nullable=False))
SCHEMA = pa.schema(
    [
        pa.field("topic", _NAME, nullable=False),
        pa.field("topic_id", _NAME, nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("hour", pa.timestamp("s", tz="UTC"), nullable=False),
        pa.field("samples", pa.int32(), nullable=False),
        pa.field("covered_seconds", pa.int32(), nullable=False),
        pa.field("messages", pa.int64(), nullable=False),
        pa.field("bytes_in", pa.int64()),
        pa.field("bytes_out_estimate", pa.int64()),
        pa.field("out_covered_seconds", pa.int32(), nullable=False),
        pa.field("requests_estimate", pa.int64()),
        pa.field("requests_covered_seconds", pa.int32(), nullable=False),
        pa.field("log_bytes", pa.int64()),
        pa.field("in_levels", _LIST, nullable=False),
        pa.field("in_seconds", _LIST, nullable=False),
        pa.field("out_levels", _LIST, nullable=False),
        pa.field("out_seconds", _LIST, nullable=False),
    ]
)
_NUMBERS = {
    "samples": "samples",
    "covered_seconds": "covered",
    "messages": "messages",
    "bytes_in": "bytes_in",
    "bytes_out_estimate": "bytes_out",
    "out_covered_seconds": "out_covered",
    "requests_estimate": "requests",
    "requests_covered_seconds": "requests_covered",
    "log_bytes": "log_bytes",
}
"""Columns by name, and what they hold of ``HourRows``; null for ``UNKNOWN``."""
_OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "use_dictionary": ["topic", "topic_id", "hour", "in_seconds.list.element", "out_seconds.list.element"],
    "row_group_size": GROUP_ROWS,
}
_PATH = re.compile(rf"{FOLDER}/cluster=([^/]+)/date=(\d{{4}}-\d\d-\d\d)/([01]\d|2[0-3])\.parquet")


@dataclass(frozen=True, slots=True, order=True)
class RollupFile:
    """A rollup: the second since 1970 at which its hour begins, its cluster, and where it is."""

    hour: int
    cluster_id: str
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class About:
    """What a rollup says of itself: its ``sources``, the first and the last second that was sampled (0 for none).

    ``skipped``: the sources that could not be read. ``covered``: the most seconds that it covers of a partition.
    """

    sources: tuple[str, ...]
    since: int
    until: int
    covered: int
    rows: int
    skipped: tuple[str, ...] = ()


def rollup_path(cluster_id: str, hour: int) -> str:
    """The file of the hour that begins at this second."""
    at = datetime.fromtimestamp(hour, UTC)
    return f"{cluster_folder(FOLDER, cluster_id)}/date={at:%Y-%m-%d}/{at:%H}.parquet"


def list_rollups(store: Store) -> tuple[RollupFile, ...]:
    """The rollups of all clusters, by hour; other files are left out. Raises StoreError."""
    found = []
    for stored in store.list(FOLDER):
        if match := _PATH.fullmatch(stored.path):
            began = datetime.strptime(f"{match[2]}T{match[3]}", "%Y-%m-%dT%H").replace(tzinfo=UTC)
            found.append(RollupFile(int(began.timestamp()), unquote(match[1]), stored.path, stored.size))
    return tuple(sorted(found))


def read_about(store: Store, file: RollupFile) -> About:
    """A rollup's own description. Raises StoreError; StoreNewer for a file of a later release."""
    with store.parquet(file.path) as parquet:
        return about_of(parquet, file.cluster_id, store.where(file.path))


def about_of(parquet: Any, cluster_id: str, where: str) -> About:
    """The same, of an open file. Raises StoreDamaged, StoreNewer."""
    metadata = parquet.schema_arrow.metadata or {}
    require_format(metadata, FORMAT, cluster_id, where)
    try:
        said = json.loads(metadata[ABOUT_KEY])
        sources, skipped = (tuple(map(str, names)) for names in (said["sources"], said.get("skipped", ())))
        numbers = {name: int(said[name]) for name in ("since", "until", "covered")}
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise StoreDamaged(f"{where}: does not describe itself ({error!r}). Move it out of the store") from None
    missing = set(SCHEMA.names) - set(parquet.schema_arrow.names)
    if missing:
        raise StoreDamaged(f"{where}: has no column {', '.join(sorted(missing))}. Move it out of the store")
    return About(sources, rows=parquet.metadata.num_rows, skipped=skipped, **numbers)


def write_rollup(store: Store, cluster_id: str, hour: int, tables: Sequence[Any], about: Mapping[str, Any]) -> int:
    """Write a rollup, or replace it; returns its bytes. Raises StoreError."""
    metadata = {FORMAT_KEY: FORMAT.encode(), CLUSTER_KEY: cluster_id.encode(), ABOUT_KEY: json.dumps(about).encode()}
    whole = pa.concat_tables([SCHEMA.empty_table(), *tables])
    return store.write_table(rollup_path(cluster_id, hour), whole.replace_schema_metadata(metadata), **_OPTIONS)


def table_of(keys: Any, hour: int, rows: HourRows) -> Any:
    """Rows of one hour as a table of ``SCHEMA``; ``keys``: topic, topic id and partition of each."""
    numbers = [(SCHEMA.field(name), getattr(rows, of)) for name, of in _NUMBERS.items()]
    columns = [
        *(keys.column(name).cast(SCHEMA.field(name).type) for name in ("topic", "topic_id", "partition")),
        pa.repeat(pa.scalar(hour, SCHEMA.field("hour").type), len(keys)),
        *(pa.array(of, field.type, mask=of == UNKNOWN if field.nullable else None) for field, of in numbers),
        *(
            pa.ListArray.from_arrays(sketches.bounds.astype(np.int32), pa.array(values), type=_LIST)
            for sketches in (rows.rates_in, rows.rates_out)
            for values in (sketches.levels, sketches.seconds)
        ),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def rows_of(table: Any) -> HourRows:
    """The rows of a table of ``SCHEMA`` as arrays; other columns are ignored."""

    def whole(name: str) -> Any:
        return table.column(name).fill_null(UNKNOWN).to_numpy().astype(np.int64)

    def sketches(name: str) -> Sketches:
        levels, seconds = (table.column(f"{name}_{part}").combine_chunks() for part in ("levels", "seconds"))
        lengths = levels.value_lengths().to_numpy()
        bounds = np.append(0, np.cumsum(lengths, dtype=np.int64))
        return Sketches(bounds, levels.flatten().to_numpy(), seconds.flatten().to_numpy())

    numbers = {of: whole(name) for name, of in _NUMBERS.items()}
    return HourRows(**numbers, rates_in=sketches("in"), rates_out=sketches("out"))
