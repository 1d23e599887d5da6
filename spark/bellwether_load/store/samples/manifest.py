"""Manifest of a day's sample files: ``_manifest.json`` in their folder, for Parquet readers that do not know our rules.

In: the files of a day that count. Out: one JSON file that names them, so that a reader sees every sample once. Written
by compaction after each change of the files, the last writer wins. Our own readers list the store and read footers
instead: a manifest may be some minutes old. Called by ``compaction`` and ``retention``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date

from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import filenames
from bellwether_load.store.samples.sample_files import SampleFile
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing

FORMAT = 1


def manifest_path(day: date) -> str:
    """Path below the store. The name begins with ``_``: readers of a folder, such as Spark, ignore it."""
    return f"{filenames.folder(day)}/_manifest.json"


def write_manifest(store: Store, day: date, cluster_id: str, files: Iterable[SampleFile]) -> None:
    """Name these files, unless it does already. Without files there is no manifest. Raises StoreError."""
    path = manifest_path(day)
    ordered = sorted(files, key=lambda file: file.stored.path)
    if not ordered:
        store.delete(path)
        return
    document = {
        "format": FORMAT,
        "clusterId": cluster_id,
        "date": day.isoformat(),
        "files": [{"path": f.stored.path, "rows": f.rows, "bytes": f.stored.size} for f in ordered],
    }
    data = json.dumps(document, indent=1).encode()
    if _read(store, path) != data:
        store.write_bytes(path, data)


def manifest_files(store: Store, day: date) -> frozenset[str]:
    """Paths that the manifest names; none if it is missing or unreadable.

    Raises StoreError if the store fails.
    """
    try:
        document = json.loads(_read(store, manifest_path(day)))
        return frozenset(str(file["path"]) for file in document["files"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return frozenset()


def _read(store: Store, path: str) -> bytes:
    try:
        return store.read_bytes(path)
    except (StoreMissing, StoreDamaged):
        return b""
