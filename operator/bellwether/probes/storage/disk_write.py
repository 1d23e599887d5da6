"""Append as Kafka does, and sync apart from it, to two files of our own in a broker's log directory.

In: the directory. Out: nothing, or OSError. Clients wait for appends to new pages of the page cache, and for no sync
(Kafka's ``log.flush.interval.messages``), so the one is timed without the other. Kafka loads the directories in a log
directory and leaves unknown files alone, so hidden files are ignored. Two of them grow to ``FULL_BYTES`` in turn.
"""

from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FILE_NAME = ".bellwether-probe"
APPEND_BYTES = 32768
"""Eight pages: Linux lets a writer of fewer go on while others wait for a device that cannot take what they write
(mm/page-writeback.c, balance_dirty_pages_ratelimited).
"""
SYNC_BYTES = 4096
FULL_BYTES = 1 << 23
MOST_BYTES = 1 << 26
"""A file's size while no sync ends that would make the other one empty."""

_LOG_DIR_MARK = "meta.properties"  # in every log directory of Kafka, whatever lies there
_METADATA_LOG = "__cluster_metadata-0"

_WORDS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EIO: "the disk reports an I/O error",
    errno.EACCES: "no permission to write there",
    errno.EPERM: "no permission to write there",
    errno.ENOENT: "the directory does not exist",
    errno.ENOTDIR: "it is not a directory",
    errno.ENOTSUP: "the file system does not support new files there: set a directory on the broker's volume",
    errno.ESTALE: "the network file system is not available",
}
# These errors mean a problem of this process, not of the disk.
_OURS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR}
# These do so as long as no write has ever worked: a wrong mount or user, not a sick disk.
_SETUP = {errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENOTSUP}


@dataclass
class _File:
    """One of our two files; ``end`` is where its next append goes."""

    path: Path
    fd: int | None = None
    end: int = 0

    def write(self, offset: int, size: int) -> int:
        """Write so many bytes there; returns the descriptor. Raises OSError."""
        if self.fd is None:
            self.fd = _open(self.path)
        # Never the same bytes twice: a disk that compares or compresses must not be quicker than for a real log.
        if os.pwrite(self.fd, os.urandom(size), offset) != size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.end = offset + size
        return self.fd

    def close(self) -> None:
        """Close it, if it is open."""
        if self.fd is not None:
            fd, self.fd, self.end = self.fd, None, 0
            with suppress(OSError):  # closing may report the very error that is being handled
                os.close(fd)


class DiskWriter:
    """Appends to one of two files below ``directory``, and syncs the other, which is then empty for the next appends.

    ``append`` is for one thread and ``sync`` for another: each call may hang as long as the disk does.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.paths = tuple(directory / f"{FILE_NAME}{end}" for end in ("", "-sync"))
        self._appended, self._synced = map(_File, self.paths)
        self._emptied = False
        self._swap = threading.Lock()
        self._worked = False

    def append(self) -> None:
        """Append 32 KiB to a file, as Kafka does to a log: without a sync. Raises OSError."""
        with self._swap:
            if self._appended.end >= FULL_BYTES and self._emptied:
                self._appended, self._synced, self._emptied = self._synced, self._appended, False
            elif self._appended.end >= MOST_BYTES:
                self._appended.end = 0  # no sync has ended for half an hour: what is written twice costs no space
        try:
            self._appended.write(self._appended.end, APPEND_BYTES)
        except OSError:
            self._appended.close()
            raise
        self._worked = True

    def sync(self) -> None:
        """Write 4 KiB and wait until they are on the disk. Raises OSError."""
        with self._swap:
            file, self._emptied = self._synced, False
        try:
            if file.fd is not None and file.end > SYNC_BYTES:
                os.ftruncate(file.fd, 0)
            os.fdatasync(file.write(0, SYNC_BYTES))
        except OSError:
            file.close()
            raise
        self._emptied = True

    def holds_metadata_log(self) -> bool | None:
        """Whether the KRaft metadata log lies in the directory, or in a log directory right below it, as where it is
        the mount point of a volume; None if neither is a log directory. Raises OSError.
        """
        own = self._directory
        log_dirs = [own] if (own / _LOG_DIR_MARK).exists() else [mark.parent for mark in own.glob(f"*/{_LOG_DIR_MARK}")]
        return any((one / _METADATA_LOG).is_dir() for one in log_dirs) if log_dirs else None

    def own_trouble(self, error: OSError) -> bool:
        """Whether an error is no evidence about the disk."""
        return error.errno in _OURS or (error.errno in _SETUP and not self._worked)

    def remove(self) -> None:
        """Remove the files."""
        for file in (self._appended, self._synced):
            file.close()
            with suppress(OSError):  # a disk that refuses this keeps them, and the next prober uses them
                file.path.unlink(missing_ok=True)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError as error:
        if not path.parent.is_dir():
            raise
        # A file system such as /proc reports this for the file, which suggests a missing directory.
        raise OSError(errno.ENOTSUP, error.strerror) from error


def words(error: OSError) -> str:
    """An error for people: what it means, and what the system calls it."""
    said = error.strerror or str(error)
    known = _WORDS.get(error.errno or 0)
    return f"{known} ({said})" if known else said
