"""Time one small write with ``fdatasync`` to a file of our own in a broker's log directory.

In: the directory. Out: nothing, or OSError. Kafka loads the directories in a log directory and leaves unknown files
alone, so a hidden file in it is ignored. The file is overwritten in place: neither it nor the directory grows.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

FILE_NAME = ".bellwether-probe"
WRITE_BYTES = 4096

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


class DiskWriter:
    """Writes to ``directory/.bellwether-probe``. For one thread; each call may hang as long as the disk does."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE_NAME
        self._fd: int | None = None
        self._count = 0
        self._worked = False

    def write(self) -> None:
        """Write 4 KiB and wait until they are on the disk. Raises OSError."""
        try:
            if self._fd is None:
                self._fd = self._open()
            self._count += 1
            # Never the same bytes twice: a disk that compares or compresses must not be quicker than for a real log.
            block = self._count.to_bytes(8, "big") + os.urandom(WRITE_BYTES - 8)
            if os.pwrite(self._fd, block, 0) != WRITE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fdatasync(self._fd)
        except OSError:
            self._close()
            raise
        self._worked = True

    def own_trouble(self, error: OSError) -> bool:
        """Whether an error is no evidence about the disk."""
        return error.errno in _OURS or (error.errno in _SETUP and not self._worked)

    def remove(self) -> None:
        """Remove the file."""
        self._close()
        try:
            self.path.unlink(missing_ok=True)
        except OSError:
            return  # a disk that refuses this keeps 4 KiB, and the next prober uses them

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError as error:
            if not self.path.parent.is_dir():
                raise
            # A file system such as /proc reports this for the file, which suggests a missing directory.
            raise OSError(errno.ENOTSUP, error.strerror) from error

    def _close(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            try:
                os.close(fd)
            except OSError:
                return  # closing may report the very error that is being handled


def words(error: OSError) -> str:
    """An error for people: what it means, and what the system calls it."""
    said = error.strerror or str(error)
    known = _WORDS.get(error.errno or 0)
    return f"{known} ({said})" if known else said
