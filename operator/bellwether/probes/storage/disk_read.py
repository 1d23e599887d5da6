"""Read 4 KiB of an old segment in a broker's log directory, directly from the disk (O_DIRECT).

In: the directory. Out: nothing, OSError, or NothingToRead with the reason. The page cache answers no direct read.
The active segments, which Kafka appends to, are not read; nothing is written, and no symbolic link below the directory
is followed.
"""

from __future__ import annotations

import errno
import mmap
import os
import random
import re
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

READ_BYTES = 4096
# Partition directories that are searched for old segments before one read.
_SEARCHED_PER_READ = 8
_MOST_PARTITIONS = 100_000
_MOST_FILES = 20_000
_MOST_KNOWN = 256
# Old segments that may have vanished, or may be empty, before a read is given up.
_MOST_TRIES = 4
# A log directory has one subdirectory for each partition, TOPIC-N; those that Kafka is about to delete end otherwise.
_PARTITION = re.compile(r".+-[0-9]+")
_SEGMENT = re.compile(r"[0-9]{20}\.log")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK, opening a named pipe would wait for a writer.
_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_VANISHED = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE}
_UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP}

NO_EVIDENCE = {
    errno.EACCES,
    errno.EPERM,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.EINTR,
}
"""Errors that say nothing about the disk: of this process, its mount or its user."""

NO_OLD_SEGMENT = "no partition has an old segment"
NO_DIRECT_READS = "the file system does not support direct reads"


class NothingToRead(Exception):
    """Reads cannot be measured here; the message says why. It is no evidence about the disk."""


class DiskReader:
    """Reads from ``directory``. For one thread; each call may hang as long as the disk does."""

    def __init__(self, directory: Path, chance: random.Random | None = None) -> None:
        self._directory = directory
        self._chance = chance or random.Random()  # noqa: S311 - spreads reads, protects nothing
        self._unsearched: list[str] = []
        self._known: deque[tuple[str, str]] = deque(maxlen=_MOST_KNOWN)
        self._buffer = mmap.mmap(-1, READ_BYTES)  # a direct read needs memory that is aligned to a page
        self._fd: int | None = None
        self._blocks = 0

    def open(self) -> None:
        """Choose an old segment and open it. Raises OSError or NothingToRead."""
        self.close()
        with _opened(os.open(self._directory, _DIRECTORY)) as root:
            self._search(root)
            for _ in range(_MOST_TRIES):
                if not self._known:
                    break
                chosen = self._chance.randrange(len(self._known))
                if self._take(root, *self._known[chosen]):
                    return
                del self._known[chosen]
        raise NothingToRead(NO_OLD_SEGMENT)

    def read(self) -> None:
        """Read a random block of the open segment, and close it. Raises OSError or NothingToRead."""
        if self._fd is None:
            raise NothingToRead(NO_OLD_SEGMENT)
        try:
            os.preadv(self._fd, [self._buffer], self._chance.randrange(self._blocks) * READ_BYTES)
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                raise NothingToRead(NO_DIRECT_READS) from error
            raise
        finally:
            self.close()

    def close(self) -> None:
        """Close the segment, so that Kafka can free its space when it deletes it."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            with suppress(OSError):
                os.close(fd)

    def _search(self, root: int) -> None:
        """Look for old segments in the next few partitions; every partition has its turn."""
        if not self._unsearched:
            with os.scandir(root) as found:
                self._unsearched = [e.name for e in islice(found, _MOST_PARTITIONS) if _PARTITION.fullmatch(e.name)]
            self._chance.shuffle(self._unsearched)
        for partition in self._unsearched[-_SEARCHED_PER_READ:]:
            self._unsearched.pop()
            old = _old_segments(root, partition)
            if old and (chosen := (partition, self._chance.choice(old))) not in self._known:
                self._known.append(chosen)

    def _take(self, root: int, partition: str, segment: str) -> bool:
        """Open a segment, if it is still there and holds a block."""
        try:
            with _opened(os.open(partition, _DIRECTORY | os.O_NOFOLLOW, dir_fd=root)) as folder:
                status = os.stat(segment, dir_fd=folder, follow_symlinks=False)
                self._blocks = status.st_size // READ_BYTES
                if not (stat.S_ISREG(status.st_mode) and self._blocks):
                    return False
                self._fd = os.open(segment, _FILE | os.O_DIRECT, dir_fd=folder)
        except OSError as error:
            if error.errno in _VANISHED:
                return False
            if error.errno in _UNSUPPORTED:
                raise NothingToRead(NO_DIRECT_READS) from error
            raise
        return True


def _old_segments(root: int, partition: str) -> list[str]:
    """All segments of a partition but the active one, which has the highest offset in its name."""
    try:
        with (
            _opened(os.open(partition, _DIRECTORY | os.O_NOFOLLOW, dir_fd=root)) as folder,
            os.scandir(folder) as found,
        ):
            names = [entry.name for entry in islice(found, _MOST_FILES) if _SEGMENT.fullmatch(entry.name)]
    except OSError as error:
        if error.errno in _VANISHED:
            return []
        raise
    return sorted(names)[:-1]


@contextmanager
def _opened(fd: int) -> Iterator[int]:
    try:
        yield fd
    finally:
        with suppress(OSError):
            os.close(fd)
