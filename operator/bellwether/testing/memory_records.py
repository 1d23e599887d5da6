"""Undo records in memory that outlive the process that wrote them, with the epoch fence of the real store.

One ``MemoryRecordStore`` is what an API server keeps; each process has a ``MemoryRecords`` of its own over it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bellwether.core.model.undo_record import UndoRecord
from bellwether.ports.errors import Fenced, Terminal, Transient


@dataclass
class MemoryRecordStore:
    """The durable side: the last record, how often it was written, and whether it can be reached."""

    record: UndoRecord | None = None
    writes: int = 0
    reachable: bool = True
    history: list[UndoRecord] = field(default_factory=list)

    def write(self, record: UndoRecord) -> None:
        """Keep a record, and every one before it for a test to look at."""
        self.record = record
        self.writes += 1
        self.history.append(record)


class MemoryRecords:
    """``ports.kubernetes.UndoRecords`` of one process."""

    def __init__(self, store: MemoryRecordStore | None = None) -> None:
        self.store = store or MemoryRecordStore()

    def take_over(self, cluster_id: str) -> UndoRecord:
        """Raise the epoch. Raises Transient when away, Terminal when the record is another cluster's."""
        self._reach()
        old = self.store.record or UndoRecord(cluster_id)
        if old.cluster_id != cluster_id:
            raise Terminal(
                f"the undo record belongs to cluster {old.cluster_id}, the brokers to {cluster_id}: "
                "correct the bootstrap servers, or export the record and remove it",
            )
        taken = replace(old, epoch=old.epoch + 1)
        self.store.write(taken)
        return taken

    def save(self, record: UndoRecord) -> None:
        """Keep the record; an unchanged one is not written. Raises Transient when away, Fenced for an older epoch."""
        self._reach()
        stored = self.store.record
        if stored is None or record.epoch != stored.epoch:
            standing = "no process" if stored is None else f"epoch {stored.epoch}"
            raise Fenced(f"epoch {record.epoch} may not write the undo record: {standing} has taken it over")
        if record != stored:
            self.store.write(record)

    def _reach(self) -> None:
        if not self.store.reachable:
            raise Transient("the store of undo records cannot be reached")
