"""Write rounds of samples into a store that belongs to one cluster.

In: rounds. Out: files. Called by ``bellwether sample``. Two samplers may write to one store at the same time: their
files have different names, and readers use the first sample of each minute.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.rows import Rows
from bellwether_load.store.store_errors import StoreUnusable


class SampleWriter:
    """Writes one cluster's rounds; ``begun`` is called with the cluster's id once its first round is stored."""

    def __init__(self, store: Store, begun: Callable[[str], None] = lambda _: None) -> None:
        self._store = store
        self._begun = begun
        self._cluster = ""

    def write(self, rows: Rows) -> int:
        """Write a round; returns its bytes. Raises StoreError; StoreUnusable for a store of another cluster."""
        if not self._cluster:
            self._refuse_strangers(rows.cluster_id)
        size = sample_files.write_round(self._store, rows, secrets.token_hex(4))
        if not self._cluster:
            self._cluster = rows.cluster_id
            self._begun(rows.cluster_id)
        return size

    def _refuse_strangers(self, cluster_id: str) -> None:
        """Check the newest day: a store belongs to one cluster, because its readers must not mix two."""
        for day in reversed(sample_files.days(self._store)):
            found = {file.cluster_id for file in sample_files.readable(self._store, day).values()}
            if found and cluster_id not in found:
                others = ", ".join(sorted(found))
                raise StoreUnusable(
                    f"{self._store}: has samples of Kafka cluster {others}, and this is {cluster_id}: use a separate"
                    " store for each cluster"
                )
            if found:
                return
