"""Last sample of some partitions: log end offsets of partitions that cannot be queried any more.

In: a store that ``bellwether sample`` writes, and partitions. Out: the log end offset of each on its leader at the last
sample. The newest files are read first, and no more than needed. Called by ``bellwether doctor``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from bellwether.core.doctor.risks import LogEndSample
from bellwether.core.model.cluster import PartitionKey
from bellwether_load.store.columns import batches, rows
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.sample_files import SCHEMA, list_rounds
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing

MOST_FILES = 3000
"""Maximum number of files that are searched for a partition without samples: two days of rounds."""

_COLUMNS = pa.schema(
    [
        pa.field("topic_id", pa.string(), nullable=False),
        *map(SCHEMA.field, ("partition", "end_offset", "at", "leader", "leader_epoch")),
    ]
)


def last_samples(
    store: Store, cluster_id: str, wanted: Collection[PartitionKey]
) -> Mapping[PartitionKey, LogEndSample]:
    """The last sample of each of these partitions that has one. Damaged files are left out. Raises StoreError."""
    found: dict[PartitionKey, LogEndSample] = {}
    missing = set(wanted)
    rounds = list_rounds(store, cluster_id=cluster_id).rounds if wanted else ()
    for file in reversed(rounds[-MOST_FILES:]):
        if not missing:
            break
        try:
            for key, sample in _samples(store, file.path, wanted):
                if key not in found or found[key].at < sample.at:
                    found[key] = sample
        except (StoreMissing, StoreDamaged):
            continue
        missing -= set(found)
    return found


def _samples(store: Store, path: str, wanted: Collection[PartitionKey]) -> Iterator[tuple[PartitionKey, LogEndSample]]:
    topics = pa.array(sorted({key.topic_id for key in wanted}), pa.string())
    for batch in batches(store, path, _COLUMNS):
        known = pc.and_(pc.is_in(batch.column("topic_id"), topics), pc.is_valid(batch.column("end_offset")))
        for topic_id, index, end, at, leader, epoch in rows(batch.filter(known)):
            key = PartitionKey(topic_id, index)
            if key in wanted:
                yield key, LogEndSample(end, datetime.fromtimestamp(at, UTC), leader, epoch)
