"""Undo record in a file, for ``bellwether demote --record FILE``, where there is no Kubernetes API.

In: whole ``UndoRecord`` values. Out: one document, replaced as a whole and synced to the disk before ``save`` returns
(invariant 6). A lock file next to it excludes a second process while the first one runs.
"""

from __future__ import annotations

import fcntl
import math
import os
import uuid
from dataclasses import replace
from pathlib import Path

from bellwether.adapters import undo_record_codec
from bellwether.core.model.undo_record import UndoRecord
from bellwether.ports.errors import Fenced, Terminal, Transient


class FileLeadership:
    """``ports.kubernetes.Leadership`` by a lock on ``FILE.lock``: held until ``release`` or the end of the process."""

    def __init__(self, record: Path) -> None:
        self._path = record.with_name(f"{record.name}.lock")
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock at once. Terminal when another process has it, or when the directory cannot be written."""
        while self._descriptor is None:
            try:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError as error:
                text = f"{self._path}: cannot be opened: {error.strerror}: choose another --record file"
                raise Terminal(text) from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
                os.close(descriptor)
                raise Terminal(
                    f"{self._path}: another bellwether process (pid {holder}) works with this record: wait until it"
                    " ends"
                ) from None
            if not _is_at(descriptor, self._path):  # its holder removed it since it was opened
                os.close(descriptor)
                continue
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            self._descriptor = descriptor

    def release(self) -> None:
        """Let the next process in, and remove the lock's file."""
        if self._descriptor is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None

    def confirm(self) -> None:
        """The lock of the file is this process's for as long as it runs."""

    def seconds_left(self) -> float:
        """Infinite while the lock is held, as no one can take it; 0 otherwise."""
        return 0.0 if self._descriptor is None else math.inf


class FileRecords:
    """``ports.kubernetes.UndoRecords`` in one file. ``leadership`` must be held; call ``take_over`` before ``save``."""

    def __init__(self, path: Path, leadership: FileLeadership) -> None:
        self._path = path
        self._leadership = leadership
        self._saved: UndoRecord | None = None
        self._stored: UndoRecord | None = None
        self._stamp: tuple[int, int, int] | None = None

    def read(self) -> UndoRecord | None:
        """The stored record; None when there is no file. Terminal when it cannot be read or is damaged."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Terminal(f"{self._path}: cannot be read: {error.strerror}") from error
        return undo_record_codec.import_record(data, str(self._path))

    def look(self, cluster_id: str) -> UndoRecord:
        """The record for this cluster, without taking it. Terminal when it is another cluster's and not empty."""
        return self._for(cluster_id, self.read())

    def take_over(self, cluster_id: str) -> UndoRecord:
        """Read the record under the next epoch, which the first change stores: the lock keeps other processes out.

        Terminal when it belongs to another Kafka cluster and is not empty.
        """
        self._check_lock()
        self._stamp, self._stored = self._look(), self.read()
        record = self._for(cluster_id, self._stored)
        self._saved = replace(record, epoch=record.epoch + 1)
        return self._saved

    def save(self, record: UndoRecord) -> None:
        """Replace the file unless nothing changed. Raises Fenced if another process changed it meanwhile."""
        self._check_lock()
        if self._saved is None or record.epoch != self._saved.epoch:
            raise Fenced(f"{self._path}: the record was not taken over under epoch {record.epoch}: nothing is written")
        if self._stamp != self._look() and self.read() != self._stored:
            raise Fenced(f"{self._path}: another process changed the record: it is not overwritten")
        if record == self._saved:
            return
        self._write(record)
        self._saved = self._stored = record

    def delete(self) -> None:
        """Remove the file if the record is empty. Terminal when it is not."""
        self._check_lock()
        record = self.read()
        if record is None:
            return
        if not record.empty:
            raise Terminal(f"{self._path}: the record still holds {len(record.entries)} partitions: promote first")
        self._path.unlink()
        _sync_directory(self._path.parent)
        self._saved = None

    def _for(self, cluster_id: str, found: UndoRecord | None) -> UndoRecord:
        record = found or UndoRecord(cluster_id=cluster_id)
        if record.cluster_id != cluster_id and not record.empty:
            raise Terminal(
                f"{self._path}: this undo record belongs to Kafka cluster {record.cluster_id}, you have reached "
                f"{cluster_id}: choose another --record file, or connect to that cluster"
            )
        application = record.application if record.cluster_id == cluster_id else None
        return replace(record, cluster_id=cluster_id, application=application)

    def _check_lock(self) -> None:
        if self._leadership.seconds_left() <= 0:
            raise Fenced(f"{self._path}: the lock of this record is not held")

    def _write(self, record: UndoRecord) -> None:
        draft = self._path.with_name(f".{self._path.name}.{uuid.uuid4().hex}")
        try:
            with draft.open("wb") as stream:
                stream.write(undo_record_codec.export_record(record))
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(self._path)
            _sync_directory(self._path.parent)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise Transient(f"{self._path}: cannot be written: {error.strerror}") from error
        self._stamp = self._look()

    def _look(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
