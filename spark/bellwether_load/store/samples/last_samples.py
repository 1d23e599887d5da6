"""Last sample of some partitions: log end offsets of partitions that cannot be queried any more.

In: a store that ``bellwether sample`` writes, and partitions. Out: the log end offset of each on its leader at the last
sample. The newest files are read first, and no more than needed. Called by ``bellwether doctor``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bellwether.core.doctor.risks import LogEndSample
from bellwether.core.model.cluster import PartitionKey
from bellwether_load.store.columns import batches, integers, texts
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.sample_files import SCHEMA, list_rounds
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing

MOST_FILES = 3000
"""Maximum number of files that are searched for a partition without samples: two days of rounds."""

_COLUMNS = ("at", "topic_id", "partition", "leader", "leader_epoch", "end_offset")
_PLAIN = {"topic_id": pa.string()}


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
    schema = pa.schema([SCHEMA.field(name) for name in _COLUMNS])
    for batch in batches(store, path, _plain(schema)):
        known = pc.and_(pc.is_in(batch.column("topic_id"), topics), pc.is_valid(batch.column("end_offset")))
        some = batch.filter(known)
        columns = (integers(some.column(n)) for n in ("partition", "leader", "leader_epoch", "end_offset"))
        ats = integers(some.column("at").cast(pa.int64()))
        for topic_id, at, index, leader, epoch, end in zip(texts(some.column("topic_id")), ats, *columns, strict=True):
            key = PartitionKey(topic_id, index)
            if key in wanted:
                yield key, LogEndSample(end, datetime.fromtimestamp(at, UTC), leader, epoch)


def _plain(schema: Any) -> Any:
    """The schema with names as strings."""
    return pa.schema([pa.field(f.name, _PLAIN.get(f.name, f.type), nullable=f.nullable) for f in schema])
