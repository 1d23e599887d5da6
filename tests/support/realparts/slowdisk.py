"""A disk that is slow on request, for the processes started under it: a small C shim and its control file.

In: a directory and a number of milliseconds. Out: environment variables to start a broker or a storage probe with.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Literal

from realparts import shims

SOURCE = Path(__file__).parent / "slowdisk.c"

Mode = Literal["fsync", "write+fsync", "read"]


class SlowDisk:
    """Delays reads or writes of files below one directory, in every process that was started with ``environment``."""

    STALLED = 24 * 3600 * 1000
    """Milliseconds that no process of a test outlives: the disk has stopped answering."""

    def __init__(self, directory: Path, control: Path) -> None:
        """The directory and the control file's place are made if need be; the disk is fast at first."""
        directory.mkdir(parents=True, exist_ok=True)
        control.parent.mkdir(parents=True, exist_ok=True)
        self.directory = directory.resolve()
        #: Three native 32-bit integers: milliseconds before each sync, before each write, and before each read.
        self.control = control.resolve()
        self.clear()

    def set(self, milliseconds: int, mode: Mode = "write+fsync") -> None:
        """From the next call on each sync (``fsync``), each write with its sync, or each read takes so much longer."""
        sync, write = 0 if mode == "read" else milliseconds, milliseconds if mode == "write+fsync" else 0
        self._write(sync, write, milliseconds if mode == "read" else 0)

    def clear(self) -> None:
        """Make it fast again; a call that is being delayed ends soon."""
        self._write(0, 0, 0)

    def environment(self) -> dict[str, str]:
        """What a process must be started with to feel the delay. Raises DownloadFailed without a C compiler."""
        return {
            "LD_PRELOAD": str(shim()),
            "BELLWETHER_SLOWDISK_DIRECTORY": str(self.directory),
            "BELLWETHER_SLOWDISK_CONTROL": str(self.control),
        }

    def _write(self, sync_ms: int, write_ms: int, read_ms: int) -> None:
        # In place: the processes have this very file mapped.
        with self.control.open("r+b" if self.control.exists() else "w+b", buffering=0) as control:
            control.write(struct.pack("=iii", sync_ms, write_ms, read_ms))


def shim() -> Path:
    """The compiled shim."""
    return shims.compiled(SOURCE)
