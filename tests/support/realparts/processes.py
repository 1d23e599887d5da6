"""Starts, watches and ends one process: its own process group, its own log file, killed when we die.

In: a command line. Out: a ``ManagedProcess``. Processes are ended by their id only. Called by every starter here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from realparts import guardian
from waiting import TooLate, limit, until


class StartFailed(RuntimeError):
    """A real part did not come up; the message holds the end of its log."""


def whole_lines(log: Path) -> list[str]:
    """The lines that are in a log by now, but for a last one that is still being written."""
    text = log.read_text()
    return text[: text.rfind("\n") + 1].splitlines()


_started: weakref.WeakSet[ManagedProcess] = weakref.WeakSet()
_watch_lock = threading.Lock()
_watcher: subprocess.Popen[str] | None = None


def _tell_guardian(line: str) -> None:
    global _watcher  # noqa: PLW0603 - one guardian per process, started on first use
    with _watch_lock:
        if _watcher is None or _watcher.poll() is not None:
            _watcher = subprocess.Popen(
                [sys.executable, "-I", guardian.__file__],
                stdin=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        assert _watcher.stdin is not None
        _watcher.stdin.write(line + "\n")
        _watcher.stdin.flush()


def started() -> list[ManagedProcess]:
    """Every process that we have started and not detached, and that are still referred to."""
    return list(_started)


def kill_all() -> None:
    """End every process of ours that still runs, detached ones left out."""
    for process in started():
        process.kill()


class ManagedProcess:
    """One child process that can be stopped, killed, frozen and started again with the same command."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """Nothing runs yet. ``folder`` is where it runs; ours, if there is none."""
        self.name = name
        self.command = [str(part) for part in command]
        self.log = log
        self._environment = dict(environment or {})
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._asked_to_end = False

    @property
    def pid(self) -> int:
        """The process id, which is its process group's id too. Raises RuntimeError before the first start."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs (a frozen one does)."""
        return self._process is not None and self._process.poll() is None

    @property
    def status(self) -> int | None:
        """Its exit status, or the negative number of the signal that ended it; None while it runs."""
        return self._process.poll() if self._process is not None else None

    @property
    def died(self) -> bool:
        """Whether it has ended, and not by us."""
        return self.status is not None and not self._asked_to_end

    def start(self) -> None:
        """Start it; its output is appended to the log file. Raises StartFailed if the program cannot be run."""
        if self.alive:
            return
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            try:
                self._process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **self._environment},
                    cwd=self._folder,
                    start_new_session=True,
                )
            except OSError as problem:
                raise StartFailed(f"cannot start {self.name} ({self.command[0]}): {problem}") from problem
        self._asked_to_end = False
        _started.add(self)
        _tell_guardian(f"watch {self.pid} {guardian.start_ticks(self.pid)}")

    def wait_ready(self, ready: Callable[[], bool], timeout_seconds: float, *, every_seconds: float = 0.1) -> None:
        """Wait until ``ready`` says so. Raises StartFailed with the log's end when it dies or time runs out."""
        what = f"{self.name} is ready"
        try:
            until(ready, timeout_seconds, what, every=every_seconds, alive=lambda: self.alive, seen=self.tail)
        except TooLate as late:
            how = "was not ready" if self.alive else "ended by itself"
            raise StartFailed(f"{self.name} {how}; its log is {self.log}: {late}") from late

    def tail(self, lines: int = 30) -> str:
        """The last lines of its log."""
        if not self.log.exists():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def pause(self) -> None:
        """Freeze it (SIGSTOP): it keeps its sockets and answers nothing. Waits some seconds for that."""
        self._signal(signal.SIGSTOP)
        with contextlib.suppress(TooLate):  # a thread that waits for its disk stops only after that
            until(lambda: not self.alive or self._stands(), 3, ignoring=(OSError,))

    def resume(self) -> None:
        """Let a frozen process go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once (SIGKILL), as a crash would."""
        self._asked_to_end |= self.alive
        self._signal(signal.SIGKILL)
        self._collect(limit(60))  # a disk that is busy holds the dead until their last write is done

    def stop(self, timeout_seconds: float = 30) -> None:
        """Ask it to end (SIGTERM; a frozen one is woken first), and kill it if it has not after that many seconds."""
        self.ask_to_stop()
        try:
            self._collect(limit(timeout_seconds))
        except subprocess.TimeoutExpired:
            self.kill()

    def ask_to_stop(self) -> None:
        """Send SIGTERM and return at once, so that several can end side by side; ``stop`` then waits."""
        self._asked_to_end |= self.alive
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)

    def detach(self) -> None:
        """Let it outlive us. From now on it is the caller's duty to end it."""
        _started.discard(self)
        _tell_guardian(f"forget {self.pid}")

    def _stands(self) -> bool:
        """Whether each of its threads is stopped."""
        found = Path(f"/proc/{self.pid}/task").glob("*/stat")
        return all(stat.read_text().rpartition(")")[2].split()[0] in "TtZX" for stat in found)

    def _signal(self, number: signal.Signals) -> None:
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def _collect(self, timeout_seconds: float) -> None:
        if self._process is not None:
            self._process.wait(timeout_seconds)
            _tell_guardian(f"forget {self.pid}")
