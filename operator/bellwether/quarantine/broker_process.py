"""Pause and release the broker's process, found in ``/proc``, by signals (``quarantine.agent_ports.BrokerProcess``).

In: a process id, or what its command line must match. Out: how it is, and SIGSTOP and SIGCONT sent to it. In a pod the
containers must share one process namespace, and the agent runs as the broker's user or with the capability KILL. While
the broker is paused a watchdog (``pause_watchdog``), a separate process, is ready to release it should the agent
die.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from bellwether.core.model.quarantine_order import EXPIRES_AFTER_SECONDS
from bellwether.core.quarantine.agent import ProcessState
from bellwether.ports.errors import Transient
from bellwether.quarantine import pause_watchdog

KAFKA = r"(^|.*/)java\0.*\0kafka\.Kafka\0"
"""A Java process whose main class is Kafka's; not its launcher with the same arguments, such as tini."""

_SETTLE_SECONDS = 2.0
_READY_SECONDS = 5.0


class BrokerProcess:
    """The one process that is meant. ``proc`` is where processes are looked for."""

    def __init__(self, pid: int | None = None, pattern: str = KAFKA, proc: Path = Path("/proc")) -> None:
        """Without ``pid`` it is whose arguments, each ended by a zero byte, ``pattern`` matches from the start.

        ``pid`` is the process that has this id at the first read, never a later one with the same id.
        ValueError for a pattern that is no regular expression.
        """
        self._pid = pid
        try:
            self._pattern = re.compile(pattern, re.DOTALL)
        except re.error as error:
            raise ValueError(f"--process: no regular expression: {error}") from error
        self._proc = proc
        self._known: tuple[int, str] | None = None
        self._keeper: subprocess.Popen[bytes] | None = None

    def state(self) -> ProcessState:
        """How it is now."""
        found = self._find()
        if found is None:
            return ProcessState.ABSENT
        try:
            os.kill(found[0], 0)
        except ProcessLookupError:
            return ProcessState.ABSENT
        except PermissionError:
            return ProcessState.BARRED
        stopped = pause_watchdog.state_of(self._proc, found[0]) == pause_watchdog.STOPPED
        return ProcessState.STOPPED if stopped else ProcessState.RUNNING

    def pause(self) -> None:
        """Stop it, once a keeper is at its post. Raises Transient when either fails; it then runs."""
        found = self._find()
        if found is None:
            raise Transient("the broker's process was not found")
        self._dismiss()
        self._keeper = _keeper(found, self._proc)
        try:
            _stop(found, self._proc)
        except OSError as error:
            self._dismiss()
            raise Transient(f"cannot stop process {found[0]}: {error.strerror}") from error
        until = time.monotonic() + _SETTLE_SECONDS
        while (
            pause_watchdog.state_of(self._proc, found[0]) not in (pause_watchdog.STOPPED, "")
            and time.monotonic() < until
        ):
            time.sleep(0.01)

    def release(self) -> None:
        """Let it go on, paused or not. Raises Transient when that cannot be done."""
        found = self._find()
        try:
            if found is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(found[0], signal.SIGCONT)
        except OSError as error:
            raise Transient(f"cannot release process {found[0] if found else '?'}: {error.strerror}") from error
        finally:
            self._dismiss()

    def guarded(self) -> bool:
        """Send a heartbeat to the watchdog; False when it is gone."""
        keeper = self._keeper
        if keeper is None or keeper.poll() is not None or keeper.stdin is None:
            return False
        try:
            keeper.stdin.write(b".")
            keeper.stdin.flush()
        except OSError:
            return False
        return True

    def _find(self) -> tuple[int, str] | None:
        """Its id and the moment of its start; a number that another process has taken meanwhile is not it."""
        if self._known is not None and pause_watchdog.start_of(self._proc, self._known[0]) == self._known[1]:
            return self._known
        if self._pid is not None and self._known is not None:
            return None
        pids = [self._pid] if self._pid is not None else self._matching()
        # If several match, it is unknown which one is meant.
        self._known = None
        if len(pids) == 1 and (start := pause_watchdog.start_of(self._proc, pids[0])):
            self._known = pids[0], start
        return self._known

    def _matching(self) -> list[int]:
        found = []
        for folder in self._proc.iterdir():
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if self._pattern.match((folder / "cmdline").read_bytes().decode(errors="replace")):
                        found.append(int(folder.name))
        return found

    def _dismiss(self) -> None:
        """Let the keeper go, which releases the broker as it does."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        for pipe in (keeper.stdin, keeper.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            keeper.wait(_SETTLE_SECONDS)
        except subprocess.TimeoutExpired:
            keeper.kill()
            keeper.wait()


def _stop(found: tuple[int, str], proc: Path) -> None:
    """SIGSTOP to that very process. A keeper takes time to start, and another may have taken the number meanwhile.

    The handle (pidfd_open(2)) is taken before the start is looked at, so that whose start it was is who is signalled.
    """
    try:
        handle = os.pidfd_open(found[0])
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):  # not every sandbox knows handles
            raise
        _insist(found, proc)
        os.kill(found[0], signal.SIGSTOP)
        return
    try:
        _insist(found, proc)
        signal.pidfd_send_signal(handle, signal.SIGSTOP)
    finally:
        os.close(handle)


def _insist(found: tuple[int, str], proc: Path) -> None:
    if pause_watchdog.start_of(proc, found[0]) != found[1]:
        raise ProcessLookupError(errno.ESRCH, "it has ended in the meantime")


def _keeper(found: tuple[int, str], proc: Path) -> subprocess.Popen[bytes]:
    """A watchdog that has reported that it is ready. Raises Transient when it does not."""
    arguments = [str(found[0]), found[1], str(EXPIRES_AFTER_SECONDS), str(proc)]
    try:
        made = subprocess.Popen(
            [sys.executable, "-I", "-S", pause_watchdog.__file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise Transient(f"cannot start the pause watchdog: {error.strerror}") from error
    assert made.stdout is not None  # noqa: S101 - for the type checker
    ready, _, _ = select.select([made.stdout], [], [], _READY_SECONDS)
    if not ready or made.stdout.read(1) != b"r":
        made.kill()
        made.wait()
        raise Transient(f"the pause watchdog was not ready within {_READY_SECONDS:g} s")
    return made
