"""What work costs: seconds, CPU seconds and the most memory, of a command or of this process with its descendants."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PERIOD_SECONDS = 0.25
SHARE = 0.1
"""Of a core that looking at memory may take: it is slow for large processes."""


@dataclass(frozen=True)
class Cost:
    """Of one piece of work."""

    seconds: float
    cpu_seconds: float
    peak_megabytes: float


def cost_of_command(command: Sequence[str], output: IO[bytes], environment: Mapping[str, str] | None = None) -> Cost:
    """Run it to its end. Raises CalledProcessError."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL, env=environment)
    # Not ru_maxrss: that begins with what this process holds, of which the command is forked.
    with PeakMemory(process.pid) as memory:
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, memory.megabytes)


def cost_of_family(work: Callable[[], None]) -> Cost:
    """Of work that this process, the JVM and Spark's Python workers do."""
    cpu, began = cpu_seconds(), time.perf_counter()
    with PeakMemory(os.getpid()) as memory:
        work()
    return Cost(time.perf_counter() - began, cpu_seconds() - cpu, memory.megabytes)


class PeakMemory:
    """Looks several times a second at a process and its descendants; ``megabytes`` is the most that was seen.

    Memory that processes share is divided between them (proportional set size), so forked workers are not counted
    several times over.
    """

    def __init__(self, root: int) -> None:
        self._root = root
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
        pause = PERIOD_SECONDS
        while not self._over.wait(pause):
            began = time.thread_time()
            self.megabytes = max(self.megabytes, sum(map(_held, _family(self._root))) / 1024)
            pause = max(PERIOD_SECONDS, (time.thread_time() - began) / SHARE)


def cpu_seconds() -> float:
    """What this process and its descendants have used until now; those that have ended count for their parents."""
    ticks = 0
    for pid in _family(os.getpid()):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _family(root: int) -> set[int]:
    """A process and all that descend from it."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue  # it has ended
    family = {root}
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
