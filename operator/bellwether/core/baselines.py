"""The undo record: the replica order that every displaced partition had before we first touched it.

One baseline per partition, however many brokers are demoted. Written before the reorder that it covers (law 6), read
back on take-over, compared with what Kafka shows. Pure values: the adapters store them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from bellwether.core.clusters import PartitionKey

FORMAT_VERSION = 1


class EntryState(StrEnum):
    """How far a partition's displacement has come.

    ``Intended`` → ``Displaced`` → ``Restoring`` → ``Restored`` (a tombstone that lets a late batch be recognised
    and undone, law 7) → dropped. A displaced partition may go back to ``Intended`` for another order.
    """

    INTENDED = "Intended"
    DISPLACED = "Displaced"
    RESTORING = "Restoring"
    RESTORED = "Restored"


class Cause(StrEnum):
    """By whose word a broker is demoted."""

    SIGNALS = "Signals"
    OVERRIDE = "Override"
    COMMAND = "Command"


@dataclass(frozen=True, slots=True)
class Entry:
    """One displaced partition.

    ``baseline`` is the order to go back to; ``written`` the last order that we set out to write and ``before`` the order
    that stood then. An observed order that is none of the three is foreign (law 9).
    """

    topic: str
    baseline: tuple[int, ...]
    before: tuple[int, ...]
    written: tuple[int, ...]
    state: EntryState = EntryState.INTENDED
    finished_at: datetime | None = None

    def knows(self, order: tuple[int, ...]) -> bool:
        """Whether an observed replica order is one of those that this entry accounts for."""
        return order in (self.baseline, self.before, self.written)


@dataclass(frozen=True, slots=True)
class Demoted:
    """A broker that is kept from leading, and why; durable with the baselines so that a take-over knows it."""

    broker: int
    cause: Cause
    reason: str
    message: str
    since: datetime


@dataclass(frozen=True)
class UndoRecord:
    """All baselines and demotions of one policy, with the epoch of its writer (law 7)."""

    cluster_id: str
    epoch: int = 0
    demoted: Mapping[int, Demoted] = field(default_factory=dict)
    entries: Mapping[PartitionKey, Entry] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing is displaced, nobody demoted and no tombstone left."""
        return not self.demoted and not self.entries

    def with_entries(self, changed: Mapping[PartitionKey, Entry | None]) -> UndoRecord:
        """The same record with some entries changed; ``None`` drops one."""
        if not changed:
            return self
        merged = {**self.entries, **changed}
        return replace(self, entries={k: e for k, e in merged.items() if e is not None})
