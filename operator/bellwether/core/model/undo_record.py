"""Undo record: the replica order that every displaced partition had before Bellwether first changed it.

One baseline per partition, however many brokers are demoted. Written before the reorder that it covers (invariant 6),
read back after a take-over, compared with Kafka's metadata. Pure values: the adapters store them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.log_dirs import DemotedLogDir, LogDir
from bellwether.core.model.restoration_waves import ReturningBroker
from bellwether.core.reasons import Reason

FORMAT_VERSION = 2
OUTSTANDING_LIMIT = 8

RESTORE_TIMEOUT = timedelta(minutes=15)
"""How long a restored partition waits for its preferred leader to join the ISR; then it is left to Kafka."""


class EntryState(StrEnum):
    """State of a partition's displacement.

    ``Intended`` → ``Displaced`` → ``Restoring`` → ``Restored`` (a tombstone, by which a late reorder is recognised and
    undone, invariant 7) → dropped. A displaced partition may go back to ``Intended`` for another order, a tombstone to
    ``Restoring`` when a late reorder has displaced the partition again.
    """

    INTENDED = "Intended"
    DISPLACED = "Displaced"
    RESTORING = "Restoring"
    RESTORED = "Restored"


class Cause(StrEnum):
    """Who or what demoted a broker."""

    SIGNALS = "Signals"
    OVERRIDE = "Override"
    COMMAND = "Command"
    MAINTENANCE = "Maintenance"


class SentOrder(NamedTuple):
    """A reorder that was sent, or was about to be sent, and the broker that was asked; None where that is unknown.

    An empty ``order`` is a cancellation of the partition's reassignment.
    """

    order: tuple[int, ...]
    broker: int | None


class Sender(NamedTuple):
    """An operator process that may send the reorders of its record, for as long as it is not known to have ended.

    ``uid`` is that of its pod; outside of pods ``node`` is empty, and ``uid`` names a process of that boot of a
    machine. ``since`` is when it started.
    """

    name: str
    uid: str
    container: str
    node: str
    boot_id: str
    since: datetime


@dataclass(frozen=True, slots=True)
class UndoEntry:
    """Undo entry of one displaced partition.

    ``baseline`` is the order to restore; ``written`` the last order that we set out to write; ``replaced`` the order
    that it replaces, unless that is the baseline, until it is seen. ``outstanding`` are the reorders that may still
    take effect, newest first (invariant 7): sent and not answered, or recorded by a process that ended before it noted
    the answer. Any other observed order is foreign (invariant 9). ``finished_at`` is since when the entry is a
    tombstone, or since when the partition is missing from metadata. ``contests`` counts how often another tool
    overwrote our order, last at ``contested_at``: re-assertion backs off with it.
    """

    topic: str
    baseline: tuple[int, ...]
    written: tuple[int, ...]
    replaced: tuple[int, ...] | None = None
    outstanding: tuple[SentOrder, ...] = ()
    state: EntryState = EntryState.INTENDED
    finished_at: datetime | None = None
    contests: int = 0
    contested_at: datetime | None = None

    @property
    def pending(self) -> bool:
        """Whether ``written`` has not been seen since it was recorded."""
        return self.state in (EntryState.INTENDED, EntryState.RESTORING)

    def may_arrive(self, order: tuple[int, ...]) -> bool:
        """Whether a reorder of ours to this order may still take effect."""
        return any(sent.order == order for sent in self.outstanding)

    def may_be_left_by_cancel(self, order: tuple[int, ...]) -> bool:
        """Whether a reorder of ours, made for other replicas, arrived and was cancelled. Kafka leaves those in place
        first that the reorder names, in its order, and then the others in theirs.
        """
        here, named = set(order), [sent.order for sent in self.outstanding]
        return any(order == (*filter(here.__contains__, n), *(r for r in self.written if r not in n)) for n in named)

    @property
    def cancel_may_arrive(self) -> bool:
        """Whether a cancellation of ours may still end a reassignment, also one that another tool starts later."""
        return any(not sent.order for sent in self.outstanding)

    def without_cancels(self) -> UndoEntry:
        """The entry once the effect of its cancellations was seen."""
        return replace(self, outstanding=tuple(sent for sent in self.outstanding if sent.order))

    def send(self, sent: SentOrder, seen: tuple[int, ...], state: EntryState) -> UndoEntry:
        """The entry to store before an order is sent that replaces ``seen``."""
        replaced = seen if seen not in (sent.order, self.baseline) else None
        after = self.with_outstanding(sent)
        return replace(after, written=sent.order, replaced=replaced, state=state, finished_at=None)

    def with_outstanding(self, sent: SentOrder) -> UndoEntry:
        """The entry to store before a reorder or a cancellation is sent.

        More than ``OUTSTANDING_LIMIT`` are merged by order, and their brokers forgotten: a partition of n replicas
        never has more than n! of them.
        """
        outstanding = (sent, *self.outstanding)
        if len(outstanding) > OUTSTANDING_LIMIT:
            outstanding = tuple(dict.fromkeys(SentOrder(one.order, None) for one in outstanding))
        return replace(self, outstanding=outstanding)

    def without(self, sent: SentOrder) -> UndoEntry:
        """The entry once a request can take no effect any more: answered, refused or not sent."""
        left = list(self.outstanding)
        if sent in left:
            left.remove(sent)
        return replace(self, outstanding=tuple(left))

    def in_place(self, now: datetime) -> UndoEntry:
        """The entry once the order that we set out to write was seen."""
        if self.state is EntryState.RESTORING and self.written == self.baseline:
            return replace(self, replaced=None, state=EntryState.RESTORED, finished_at=now)
        return replace(self, replaced=None, state=EntryState.DISPLACED)


@dataclass(frozen=True, slots=True)
class DemotedBroker:
    """A demoted broker and the reason; stored with the baselines so that the next leader knows it after a take-over."""

    broker: int
    cause: Cause
    reason: str
    message: str
    since: datetime
    signal: str = ""
    """Type of the signal whose threshold failed, if that is the cause: it must pass again before a promotion."""
    drained_since: datetime | None = None
    """While it is in maintenance: since when it is demoted and in maintenance. The first of two drains goes first."""

    @property
    def by_person(self) -> bool:
        """Whether a person keeps it demoted: by a command, or by an override that has not ended."""
        return self.cause is Cause.COMMAND or (self.cause is Cause.OVERRIDE and self.reason != Reason.STABILIZING)


class Link(NamedTuple):
    """The network path between two brokers, the lower id first."""

    one: int
    other: int

    def __str__(self) -> str:
        return f"brokers {self.one} and {self.other}"

    @staticmethod
    def between(broker: int, peer: int) -> Link:
        """The link between two brokers, in whatever order they are named."""
        return Link(min(broker, peer), max(broker, peer))

    def peer(self, broker: int) -> int | None:
        """The other end; None for a broker that is not at either end."""
        return self.other if broker == self.one else self.one if broker == self.other else None


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """Two brokers that do not fetch from each other, and whose common partitions others lead.

    ``wave`` releases the partitions step by step once it is well. ``times`` counts how often it broke, as the return of
    leaders is what tests it.
    """

    link: Link
    since: datetime
    times: int = 1
    wave: ReturningBroker | None = None

    @property
    def share(self) -> int:
        """Percentage of its partitions that its ends may lead."""
        return self.wave.share if self.wave is not None else 0

    def keeps_from_leading(self, key: PartitionKey) -> bool:
        """Whether neither end may lead a partition that both have."""
        return self.wave is None or self.wave.withholds(key)


class ApplicationEnd(StrEnum):
    """How the application of a rebalance plan ended."""

    DONE = "Done"
    STALE = "Stale"
    SUPERSEDED = "Superseded"


class SkippedPartition(NamedTuple):
    """A partition that a rebalance plan did not move, and why."""

    topic: str
    partition: int
    reason: str


@dataclass(frozen=True, slots=True)
class PlanApplication:
    """Progress of an approved rebalance plan; stored with the baselines that it sets, so that a kill loses neither.

    ``taken_up`` of ``moves`` have been considered, in waves, the last one at ``waved_at``: they got their new baseline,
    were in place already, or were skipped. ``left`` counts the skipped ones by reason, ``left_load`` is their load in
    hundredths of a byte/s, ``sample`` names the first few.
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
        """Number of skipped moves."""
        return sum(self.left.values())


@dataclass(frozen=True)
class UndoRecord:
    """All baselines and demotions of one policy, with the epoch of its writer (invariant 7).

    ``returning`` are brokers that are no longer demoted and get their leaders back in waves. ``application`` is the
    rebalance plan whose orders become baselines, or the last one.
    """

    cluster_id: str
    epoch: int = 0
    demoted: Mapping[int, DemotedBroker] = field(default_factory=dict)
    entries: Mapping[PartitionKey, UndoEntry] = field(default_factory=dict)
    application: PlanApplication | None = None
    returning: Mapping[int, ReturningBroker] = field(default_factory=dict)
    log_dirs: Mapping[LogDir, DemotedLogDir] = field(default_factory=dict)
    """Demoted log directories of brokers that are not demoted as a whole."""
    links: Mapping[Link, BrokenLink] = field(default_factory=dict)
    """Pairs of brokers that do not reach each other."""
    senders: tuple[Sender, ...] = ()
    """The operator process that has the record, last, and those before it that may still send."""

    @property
    def empty(self) -> bool:
        """Whether nothing is displaced, demoted or returning and there is no tombstone; ``application`` does not
        count.
        """
        return not (self.demoted or self.returning or self.log_dirs or self.links or self.entries)

    @property
    def restored(self) -> bool:
        """Whether every order is restored and no broker is demoted or returning; tombstones may remain."""
        kept = self.demoted or self.returning or self.log_dirs or self.links
        return not kept and all(e.state is EntryState.RESTORED for e in self.entries.values())

    @property
    def has_outstanding(self) -> bool:
        """Whether any reorder may still take effect."""
        return any(entry.outstanding for entry in self.entries.values())

    def may_replace(self, standing: UndoRecord) -> bool:
        """Whether that record would lose no demotion and no baseline; tombstones need none."""
        same = {k for k, e in standing.entries.items() if k in self.entries and self.entries[k].baseline == e.baseline}
        return replace(standing, entries={k: e for k, e in standing.entries.items() if k not in same}).restored

    def with_outstanding_of(self, standing: UndoRecord) -> UndoRecord:
        """The record with what may arrive late by the record that it replaces, and with its tombstones."""
        found = {}
        for key, entry in standing.entries.items():
            one = self.entries.get(key, entry)
            found[key] = replace(one, outstanding=tuple(dict.fromkeys((*one.outstanding, *entry.outstanding))))
        return self.with_entries(found)

    def with_sender(self, sender: Sender | None) -> UndoRecord:
        """The record of that process; a former one of its pod's container has ended."""
        if sender is None:
            return self
        return replace(self, senders=(*(one for one in self.senders if one.uid != sender.uid), sender))

    def with_entries(self, changed: Mapping[PartitionKey, UndoEntry | None]) -> UndoRecord:
        """The same record with some entries replaced; ``None`` removes one."""
        if not changed:
            return self
        merged = {**self.entries, **changed}
        return replace(self, entries={k: e for k, e in merged.items() if e is not None})
