"""Kills what a dead process has left running. Runs as a program of its own, started by ``processes``.

In: lines on standard input, ``watch PID START`` and ``forget PID``. At the end of input, which is when the process that
started it has gone for whatever reason, every watched process group is killed. A parent-death signal would not do: the
kernel sends it when the *thread* that started the child ends. START tells a process from a later one of the same id.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path


def start_ticks(pid: int) -> str | None:
    """When a process started, in clock ticks since boot as the kernel prints it; None if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


def main() -> None:
    """Follow the list of watched processes until the input ends, then kill those that are left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watched: dict[int, str] = {}
    for line in sys.stdin:
        match line.split():
            case ["watch", pid, ticks]:
                watched[int(pid)] = ticks
            case ["forget", pid]:
                watched.pop(int(pid), None)
    for process, ticks in watched.items():
        if start_ticks(process) == ticks:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)


if __name__ == "__main__":
    main()
