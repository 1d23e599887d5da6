"""The most memory that this process, the JVM and Spark's Python workers held at once."""

from __future__ import annotations

import os
import threading
from pathlib import Path

PERIOD_SECONDS = 0.25


class PeakMemory:
    """Looks several times a second while it is entered; ``megabytes`` is the most that was seen.

    Memory that processes share is divided between them (proportional set size), so forked workers are not counted
    several times over.
    """

    def __init__(self) -> None:
        self.megabytes = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(PERIOD_SECONDS):
            self.megabytes = max(self.megabytes, sum(map(_held, family())) / 1024)


def family() -> set[int]:
    """This process and all that descend from it."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue  # it has ended
    family = {os.getpid()}
    while more := {p for p, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def _held(pid: int) -> int:
    """Kilobytes."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0
