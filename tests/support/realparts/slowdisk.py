"""A disk that is slow when told to be, for the processes started under it: a small C shim and its control file.

In: a directory and a number of milliseconds. Out: environment variables to start a broker or a storage probe with.
The shim is compiled with the machine's C compiler into the cache, once for each version of its source.
"""

from __future__ import annotations

import hashlib
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Literal

from realparts import cache
from realparts.downloads import DownloadFailed

SOURCE = Path(__file__).parent / "slowdisk.c"

Mode = Literal["fsync", "write+fsync"]


class SlowDisk:
    """Delays the writes of files below one directory, in every process that was started with ``environment``."""

    def __init__(self, directory: Path, control: Path) -> None:
        """The directory and the control file's place are made if need be; the disk is fast at first."""
        directory.mkdir(parents=True, exist_ok=True)
        control.parent.mkdir(parents=True, exist_ok=True)
        self.directory = directory.resolve()
        self._control = control.resolve()
        self.clear()

    def set(self, milliseconds: int, mode: Mode = "write+fsync") -> None:
        """From the next call on each sync, and in the second mode each write too, takes so much longer."""
        self._write(milliseconds, milliseconds if mode == "write+fsync" else 0)

    def clear(self) -> None:
        """Make it fast again; a call that is being delayed still waits its time out."""
        self._write(0, 0)

    def environment(self) -> dict[str, str]:
        """What a process must be started with to feel the delay. Raises DownloadFailed without a C compiler."""
        return {
            "LD_PRELOAD": str(shim()),
            "BELLWETHER_SLOWDISK_DIRECTORY": str(self.directory),
            "BELLWETHER_SLOWDISK_CONTROL": str(self._control),
        }

    def _write(self, sync_ms: int, write_ms: int) -> None:
        # In place: the processes have this very file mapped.
        with self._control.open("r+b" if self._control.exists() else "w+b", buffering=0) as control:
            control.write(struct.pack("=ii", sync_ms, write_ms))


def shim() -> Path:
    """The compiled shim."""
    version = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]

    def make(staged: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            raise DownloadFailed("the slow disk needs a C compiler: install one, so that cc, gcc or clang is on PATH")
        command = [compiler, "-O2", "-Wall", "-shared", "-fPIC", "-o", str(staged), str(SOURCE), "-ldl"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise DownloadFailed(f"compiling {SOURCE.name} failed:\n{ended.stderr}")

    return cache.once(f"lib/slowdisk-{version}.so", "compiling the slow-disk shim", make)
