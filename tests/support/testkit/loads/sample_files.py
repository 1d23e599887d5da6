"""Made-up histories as the sampler's files.

In: for each topic and partition its samples, in any order. Out: a store with a file a round.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime

from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.sample_files import Rows, round_path, write_round
from testkit.loads.load_histories import MIDNIGHT, History, Sample
from testkit.loads.sample_rounds import CLUSTER

Histories = Mapping[tuple[str, int], History]


def rounds(histories: Histories, cluster_id: str = CLUSTER) -> list[Rows]:
    """A round for each moment at which a partition was sampled, in the order of time."""
    by_moment: dict[int, list[tuple[str, int, Sample]]] = defaultdict(list)
    for (topic, partition), history in sorted(histories.items()):
        for sample in history:
            by_moment[sample.at].append((topic, partition, sample))
    return [_round(at, by_moment[at], cluster_id) for at in sorted(by_moment)]


def _round(at: int, found: list[tuple[str, int, Sample]], cluster_id: str) -> Rows:
    return Rows(
        cluster_id=cluster_id,
        at=datetime.fromtimestamp(MIDNIGHT + at, UTC),
        topic=[topic for topic, _, _ in found],
        topic_id=[f"{topic:_<22}" for topic, _, _ in found],
        partition=[partition for _, partition, _ in found],
        leader=[sample.leader for _, _, sample in found],
        leader_epoch=[sample.epoch for _, _, sample in found],
        end_offset=[sample.end for _, _, sample in found],
        log_bytes=[sample.size for _, _, sample in found],
        consume=[sample.consume for _, _, sample in found],
        requests=[sample.requests for _, _, sample in found],
    )


def write_rounds(store: Store, histories: Histories, cluster_id: str = CLUSTER) -> list[str]:
    """A file a round, as the sampler leaves them; their paths in the store."""
    paths = []
    for one in rounds(histories, cluster_id):
        write_round(store, one, _tag(one.at))
        paths.append(round_path(cluster_id, one.at, _tag(one.at)))
    return paths


def _tag(at: datetime) -> str:
    return f"{zlib.crc32(at.isoformat().encode()):08x}"
