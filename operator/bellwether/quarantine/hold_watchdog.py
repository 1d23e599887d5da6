"""Hold watchdog: a process that releases a held broker when the agent that held it is gone.

A process of its own, started by ``broker_process`` with the broker's process id, the moment of its start, and a number
of seconds. A byte on standard input is a sign of life; the end of it, or silence for so long, is death, and SIGCONT
follows. It needs nothing but the standard library, so that it starts in no time and stays small.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path

STOPPED = "T"


def state_of(proc: Path, pid: int) -> str:
    """The letter of a process's state; empty where there is none (proc_pid_stat(5))."""
    fields = _stat(proc, pid)
    return fields[0] if fields else ""


def start_of(proc: Path, pid: int) -> str:
    """Start time of a process in ticks since boot, empty if it does not exist; unique together with its id."""
    fields = _stat(proc, pid)
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else ""


def _stat(proc: Path, pid: int) -> list[str]:
    try:
        # The name, in parentheses, may hold anything; what follows it begins with the state, the third field.
        return (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def keep(pid: int, start: str, seconds: float, proc: Path) -> None:
    """Wait for silence, then release that very process."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    os.write(1, b"r")
    try:
        while select.select([0], [], [], seconds)[0] and os.read(0, 4096):
            pass
    finally:
        if start_of(proc, pid) == start:
            os.kill(pid, signal.SIGCONT)


if __name__ == "__main__":
    keep(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), Path(sys.argv[4]))
