"""Runs the clients and compilers that fetch and build the parts, each with its output in a log file of its own.

In: a command and what it is for. Out: its log; DownloadFailed with the cause in one sentence when it fails. A tool
ends with us, however we end; ``stop_all`` ends those that run now. Called by ``downloads``, ``gotools`` and
``shims``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from realparts import cache
from realparts.causes import cause
from realparts.processes import ManagedProcess, StartFailed, whole_lines

TICK_SECONDS = 0.1
LAST_LINES = 5

_lock = threading.Lock()
_running: set[ManagedProcess] = set()
_stopped = threading.Event()


class DownloadFailed(RuntimeError):
    """Something could not be fetched or built, or is not what its lock file says."""


class Stopped(DownloadFailed):
    """It was ended because the whole preparation was."""


def run(
    name: str,
    command: Sequence[str | Path],
    *,
    doing: str,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    follow: Callable[[list[str]], None] | None = None,
) -> list[str]:
    """Run a command to its end, and return what it printed, which is kept in the cache's ``logs/NAME.log``.

    ``follow`` gets all lines so far, about once a second. Raises DownloadFailed.
    """
    log = cache.root() / "logs" / f"{name}.log"
    log.unlink(missing_ok=True)
    process = ManagedProcess(name, command, log=log, environment=environment, folder=folder)
    with _lock:
        if _stopped.is_set():
            raise Stopped(f"{doing} was stopped")
        try:
            process.start()
        except StartFailed as problem:
            raise DownloadFailed(f"{doing} failed: {problem}") from problem
        _running.add(process)
    try:
        followed = time.monotonic()
        while process.alive:
            time.sleep(TICK_SECONDS)
            if follow and time.monotonic() - followed > 1:
                follow(whole_lines(log))
                followed = time.monotonic()
    finally:
        with _lock:
            _running.discard(process)
        process.stop(5)
    if process.status:
        raise _failure(doing, log, process.status)
    return log.read_text(errors="replace").splitlines()


def stop_all() -> None:
    """End what runs, and let nothing more begin in this process."""
    with _lock:
        _stopped.set()
        for process in _running:
            process.ask_to_stop()


def _failure(doing: str, log: Path, status: int) -> DownloadFailed:
    if _stopped.is_set():
        return Stopped(f"{doing} was stopped")
    said = log.read_text(errors="replace")
    if known := cause(said):
        return DownloadFailed(f"{doing} failed: {known}. Its output: {log}")
    last = "\n".join(f"    {line}" for line in said.splitlines()[-LAST_LINES:])
    return DownloadFailed(f"{doing} failed (exit status {status}). Its output: {log}, which ends with:\n{last}")
