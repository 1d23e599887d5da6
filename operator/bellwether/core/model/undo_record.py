"""Undo record: the replica order that every displaced partition had before Bellwether first changed it.

One baseline per partition, however many brokers are demoted. Written before the reorder that it covers (law 6), read
back on take-over, compared with what Kafka shows. Pure values: the adapters store them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.restoration_waves import ReturningBroker

FORMAT_VERSION = 1
EARLIER_ORDERS = 4

RESTORE_TIMEOUT = timedelta(minutes=15)
"""How long a restored partition waits for its preferred leader to join the ISR; then Kafka's own balancing does it."""


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
    MAINTENANCE = "Maintenance"


@dataclass(frozen=True, slots=True)
class UndoEntry:
    """One displaced partition.

    ``baseline`` is the order to go back to; ``written`` the last order that we set out to write; ``earlier`` the orders
    that we may have sent before it, newest first, at most ``EARLIER_ORDERS``: a late batch can still write them. An
    observed order that is none of these is foreign (law 9). ``finished_at`` marks since when a tombstone is one, or
    since when a partition is missing from metadata. ``contests`` counts how often somebody else overwrote our order,
    last at ``contested_at``: re-assertion backs off with it.
    """

    topic: str
    baseline: tuple[int, ...]
    written: tuple[int, ...]
    earlier: tuple[tuple[int, ...], ...] = ()
    state: EntryState = EntryState.INTENDED
    finished_at: datetime | None = None
    contests: int = 0
    contested_at: datetime | None = None

    def knows(self, order: tuple[int, ...]) -> bool:
        """Whether an observed replica order is one of those that this entry accounts for."""
        return order == self.baseline or order == self.written or order in self.earlier

    def write(self, order: tuple[int, ...], state: EntryState) -> UndoEntry:
        """The entry as it must stand before ``order`` is sent; what was sent before stays known."""
        sent = tuple(dict.fromkeys((self.written, *self.earlier)))
        earlier = tuple(o for o in sent if o not in (order, self.baseline))[:EARLIER_ORDERS]
        return replace(self, written=order, earlier=earlier, state=state, finished_at=None)


@dataclass(frozen=True, slots=True)
class DemotedBroker:
    """A broker that is kept from leading, and why; durable with the baselines so that a take-over knows it."""

    broker: int
    cause: Cause
    reason: str
    message: str
    since: datetime


class ApplicationEnd(StrEnum):
    """How the application of a load plan ended."""

    DONE = "Done"
    STALE = "Stale"
    SUPERSEDED = "Superseded"


@dataclass(frozen=True, slots=True)
class SkippedPartition:
    """A partition that a load plan wanted to move and that stays, and why."""

    topic: str
    partition: int
    reason: str


@dataclass(frozen=True, slots=True)
class PlanApplication:
    """How far an approved load plan has come; durable with the baselines that it gives, so that a kill loses neither.

    ``taken_up`` moves of ``moves`` have been looked at, in waves, the last one at ``waved_at``: they got their new
    baseline, or stood already, or were left out. ``left`` counts the latter by reason, ``left_load`` adds up their load
    (hundredths of a byte/s), ``sample`` names the first few.
    """

    digest: str
    moves: int
    since: datetime
    waved_at: datetime
    taken_up: int = 0
    left: Mapping[str, int] = field(default_factory=dict)
    left_load: int = 0
    sample: tuple[SkippedPartition, ...] = ()
    ended: ApplicationEnd | None = None
    message: str = ""

    @property
    def left_out(self) -> int:
        """How many moves were left out."""
        return sum(self.left.values())


@dataclass(frozen=True)
class UndoRecord:
    """All baselines and demotions of one policy, with the epoch of its writer (law 7).

    ``returning`` are brokers that are demoted no longer and get their leaders back in waves. ``application`` is the
    load plan whose orders become baselines, or the last one that did.
    """

    cluster_id: str
    epoch: int = 0
    demoted: Mapping[int, DemotedBroker] = field(default_factory=dict)
    entries: Mapping[PartitionKey, UndoEntry] = field(default_factory=dict)
    application: PlanApplication | None = None
    returning: Mapping[int, ReturningBroker] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing is displaced, nobody kept from leading and no tombstone left, whatever plan is applied."""
        return not self.demoted and not self.returning and not self.entries

    @property
    def restored(self) -> bool:
        """Whether every order is back and nobody is kept from leading; tombstones may be left."""
        kept = self.demoted or self.returning
        return not kept and all(e.state is EntryState.RESTORED for e in self.entries.values())

    def with_entries(self, changed: Mapping[PartitionKey, UndoEntry | None]) -> UndoRecord:
        """The same record with some entries changed; ``None`` drops one."""
        if not changed:
            return self
        merged = {**self.entries, **changed}
        return replace(self, entries={k: e for k, e in merged.items() if e is not None})
