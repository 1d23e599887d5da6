"""One round of samples as columns: what is written down of each partition at one moment.

Built by ``rounds``, written by ``store.samples.sample_files``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Rows:
    """The samples of one round, sorted by (topic, partition); all columns are equally long.

    ``at`` is when the round began, in whole seconds. ``leader`` is -1 where there is none. None means
    unknown: ``end_offset`` (records), ``log_bytes`` (bytes of the leader's replica), ``consume`` (bytes/s).
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

    def __len__(self) -> int:
        return len(self.partition)
