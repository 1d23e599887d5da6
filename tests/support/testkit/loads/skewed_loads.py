"""A history in which the first partitions carry most. In: partitions as they are. Out: a store with its samples."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from bellwether.core.model.cluster import Partition
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.sample_files import Rows, write_round

ROUNDS = 12
RECORD = 1000


def records_a_minute(partition: int) -> int:
    """How much is written to the partition of that number."""
    return 60_000 // (1 + partition)


def write_skewed_history(store: Store, partitions: Iterable[Partition], cluster_id: str) -> None:
    """A quarter of an hour of samples, up to now, as the sampler writes them; nothing of other topics."""
    standing = sorted(partitions, key=lambda p: p.name)
    now = datetime.now(UTC).replace(microsecond=0)
    for number in range(ROUNDS):
        ends = [1_000_000 + number * records_a_minute(p.index) for p in standing]
        rows = Rows(
            cluster_id=cluster_id,
            at=now - timedelta(minutes=ROUNDS - number),
            topic=[p.topic for p in standing],
            topic_id=[p.topic_id for p in standing],
            partition=[p.index for p in standing],
            leader=[p.leader or 0 for p in standing],
            leader_epoch=[p.leader_epoch for p in standing],
            end_offset=ends,
            log_bytes=[end * RECORD for end in ends],
            consume=[None] * len(standing),
            requests=[None] * len(standing),
        )
        write_round(store, rows, f"{number:08x}")
