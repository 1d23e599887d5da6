"""Shut the broker down, hold it and release it by signals (``quarantine.agent_loop.BrokerProcess``).

In: a process id, or what its command line must match. Out: how it is, which broker it is by the log directories that it
has locked, and SIGTERM, SIGSTOP and SIGCONT sent to it. In a controlled shutdown Kafka's controller moves the broker's
leaders and takes it out of every ISR in one step (KIP-631).
Stopped as soon as its client connections are closed, the process holds there: its container lives on, and nothing
starts it. Released, it ends, and starts cleanly. In a pod the containers must share one process namespace, and the
agent runs as the broker's user and group: without them it could pause the broker and not see when its connections are
closed (ptrace(2)), so it holds nothing. While the broker is held a watchdog (``hold_watchdog``), a separate process, is
ready to release it should the agent die.

A Java process that waits for its disk with its memory mapped may react to nothing. It is stopped as it is, and its
connections are shut down from outside where the sandbox allows that (pidfd_getfd(2)), so that its clients do not wait
for their own time limits.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import structlog

from bellwether.adapters.files.meta_properties import LogDirIdentity, read_broker
from bellwether.core.model.quarantine_order import EXPIRES_AFTER_SECONDS
from bellwether.core.quarantine.agent import ProcessState
from bellwether.ports.errors import Terminal, Transient
from bellwether.quarantine import hold_watchdog

KAFKA = r"(^|.*/)java\0.*\0kafka\.Kafka\0"
"""A Java process whose main class is Kafka's; not its launcher with the same arguments, such as tini."""

CLOSING_SECONDS = 4.0
"""How long a controlled shutdown may take to close its connections. Kafka's controller moves the leaders in its first
tenths of a second; one whose process waits for its disk never ends, and clients wait for the connections' end.
"""

_NETWORK_THREAD = "data-plane-kafk"
"""What Linux keeps of the names of Kafka's acceptors, network threads and request handlers (KIP-291). They end with its
listeners, 55 ms or more before the process (Kafka 4.3, little to write); a controller's in the same process end later.
"""

_STEP_SECONDS = 0.005
"""How long it runs between two looks."""

_EQUAL_LOOKS = 10
"""A controller's threads stay: after so many looks that found the same, and no client, the broker's have ended."""

_PIDFD_GETFD = 438
"""The number of pidfd_getfd(2) on every architecture."""

_LOCK = ".lock"

_ESTABLISHED, _LISTEN = "01", "0A"
_SETTLE_SECONDS = 2.0
_READY_SECONDS = 5.0


class _Socket(NamedTuple):
    """A listener or a connection: its local port and its inode."""

    port: int
    listens: bool
    inode: str


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
        self._broker: int | None = None
        self._identified: tuple[tuple[int, str], LogDirIdentity] | None = None

    def identify(self) -> LogDirIdentity:
        """Which broker it is, for as long as it lives. Raises Transient while that is unknown, and Terminal."""
        found = self._find()
        if found is None:
            raise Transient(f"the broker's process was not found: {self.remedy()}")
        if self._identified is None or self._identified[0] != found:
            pid = found[0]
            try:
                identity = read_broker(_locked_directories(self._proc, pid), self._proc / str(pid) / "root")
            except (OSError, Transient) as error:
                why = isinstance(error, OSError) and self.remedy()
                raise Transient(f"which broker process {pid} is cannot be read: {why or error}") from error
            self._identified = found, identity
        return self._identified[1]

    def expect(self, broker: int) -> None:
        """From now on it is held only while it is this broker."""
        self._broker = broker

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
        stopped = hold_watchdog.state_of(self._proc, found[0]) == hold_watchdog.STOPPED
        if stopped:
            return ProcessState.STOPPED
        if not _sees_sockets(self._proc, found[0]):
            return ProcessState.UNSEEN
        return ProcessState.UNPROVEN if self._unproven() else ProcessState.RUNNING

    def remedy(self) -> str:
        """Why it is absent, barred, unseen or unproven, with figures, and what to set."""
        found = self._find()
        if found is not None and _sees_sockets(self._proc, found[0]) and (unproven := self._unproven()):
            return unproven
        if found is not None:
            with contextlib.suppress(OSError):
                owner, group = _owner(self._proc, found[0])
                if owner == os.getuid() and group == os.getgid():
                    return "the broker has more capabilities: set capabilities.drop: [ALL] in its container"
                if owner == os.getuid():
                    do = f"set runAsGroup: {group} in the broker's container, or in that of an agent that you pasted"
                    return f"it runs with group {group}, the agent with group {os.getgid()}: {do}"
                do = f"set sidecars.quarantineAgent.runAsUser: {owner} (runAsUser of its container)"
                if owner == 0:
                    do = "run the broker as another user than root"
                return f"it runs as user {owner}, the agent as user {os.getuid()}: {do}"
        elif self._pid is None:
            with contextlib.suppress(OSError):
                if b"bellwether" in (self._proc / "1" / "cmdline").read_bytes():
                    return "the pod shares no process namespace: set shareProcessNamespace: true in it, as inject does"
            count = len(self._matching())
            return f"{count} processes match {self._pattern.pattern!r}, and one must: set --process or --pid"
        return ""

    def hold(self) -> None:
        """Shut it down and stop it when its clients are gone, once a keeper is at its post.

        One that does not react is stopped all the same, and its connections are shut down: Kafka then fences it. Raises
        Transient when it cannot be signalled, could only be paused, or has ended before it could be stopped.
        """
        found = self._find()
        if found is None:
            raise Transient("the broker's process was not found")
        if not _sees_sockets(self._proc, found[0]):
            raise Transient(f"cannot hold process {found[0]}: could only pause it, as its sockets cannot be read")
        if unproven := self._unproven():
            raise Transient(f"cannot hold process {found[0]}: {unproven}")
        self._dismiss()
        self._keeper = _keeper(found, self._proc)
        try:
            served = _shut_down(found, self._proc)
            _signal(found, self._proc, signal.SIGSTOP)
            _end_connections(found, self._proc, served)
        except OSError as error:
            self._dismiss()
            raise Transient(f"cannot hold process {found[0]}: {error.strerror}") from error
        until = time.monotonic() + _SETTLE_SECONDS
        ends = hold_watchdog.STOPPED, ""
        while hold_watchdog.state_of(self._proc, found[0]) not in ends and time.monotonic() < until:
            time.sleep(0.01)

    def release(self) -> None:
        """Let it go on, held or not. Raises Transient when that cannot be done."""
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

    def _unproven(self) -> str:
        """Why it is not known to be the expected broker; empty if it is, or if none is expected."""
        if self._broker is None:
            return ""
        try:
            identity = self.identify()
        except (Transient, Terminal) as error:
            return str(error)
        if identity.broker == self._broker:
            return ""
        return (
            f"it is broker {identity.broker} by {identity.path}, and this agent obeys the orders of broker"
            f" {self._broker}: restart the agent"
        )

    def _find(self) -> tuple[int, str] | None:
        """Its id and the moment of its start; a number that another process has taken meanwhile is not it."""
        if self._known is not None and hold_watchdog.start_of(self._proc, self._known[0]) == self._known[1]:
            return self._known
        if self._pid is not None and self._known is not None:
            return None
        pids = [self._pid] if self._pid is not None else self._matching()
        # If several match, it is unknown which one is meant.
        self._known = None
        if len(pids) == 1 and (start := hold_watchdog.start_of(self._proc, pids[0])):
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


def _shut_down(found: tuple[int, str], proc: Path) -> frozenset[int]:
    """SIGTERM, and wait until its network threads have ended: what clients sent is answered, no connection is left.

    Other listeners in the process, such as a metrics exporter's, may close earlier or later. Without a network thread,
    when to stop it could not be known: it is only stopped. Returns the ports that it serves where it did not react.
    """
    own, threads = _listeners(proc, found[0]), _network_threads(proc, found[0])
    if not threads:
        structlog.get_logger(__name__).warning("broker_not_shut_down", pid=found[0], reason="it has no network thread")
        return own
    _signal(found, proc, signal.SIGTERM)
    began, last, equal = time.monotonic(), (threads, own), 0
    while time.monotonic() < began + CLOSING_SECONDS:
        time.sleep(_STEP_SECONDS)
        if _network_threads(proc, found[0]) == threads:  # in its controlled shutdown
            continue
        # It must not end while it is looked at, which takes long on a busy host.
        _signal(found, proc, signal.SIGSTOP)
        _insist(found, proc)
        left, sockets = _network_threads(proc, found[0]), _sockets(proc, found[0])
        open_ports = own.intersection(one.port for one in sockets if one.listens)
        equal = equal + 1 if (left, open_ports) == last else 0
        last = left, open_ports
        if not left or (equal >= _EQUAL_LOOKS and not any(one.port in own - open_ports for one in sockets)):
            return frozenset()
        _signal(found, proc, signal.SIGCONT)
    return own


def _network_threads(proc: Path, pid: int) -> int:
    """How many of Kafka's network threads it has; none once it has ended."""
    found = 0
    with contextlib.suppress(OSError):
        for thread in (proc / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                found += (thread / "comm").read_text().strip() == _NETWORK_THREAD
    return found


def _end_connections(found: tuple[int, str], proc: Path, ports: frozenset[int]) -> None:
    """Shut down the listeners and connections of a stopped process at these ports.

    Clients that wait for an answer learn at once that none will come. It needs the right to trace the process, which
    the same user has unless a sandbox (seccomp, Yama) takes it away; without it everything stays as it is.
    """
    if not ports:
        return
    wanted = {one.inode for one in _sockets(proc, found[0]) if one.port in ports}
    system = ctypes.CDLL(None)
    with contextlib.suppress(OSError), _handle(found, proc) as handle:
        for descriptor, inode in _inodes(proc, found[0]).items():
            copy = system.syscall(_PIDFD_GETFD, handle, descriptor, 0) if inode in wanted else -1
            if copy >= 0:
                with socket.socket(fileno=copy) as one, contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)


def _listeners(proc: Path, pid: int) -> frozenset[int]:
    """Ports on which that process listens; none where its descriptors may not be read."""
    inodes = set(_inodes(proc, pid).values())
    return frozenset(one.port for one in _sockets(proc, pid) if one.listens and one.inode in inodes)


def _owner(proc: Path, pid: int) -> tuple[int, int]:
    """User and group of a process. Raises OSError. The owner of its folder is root where it may not be traced."""
    fields = dict(line.split(":", 1) for line in (proc / str(pid) / "status").read_text().splitlines())
    return int(fields["Uid"].split()[0]), int(fields["Gid"].split()[0])


def _links(proc: Path, pid: int) -> Iterator[tuple[int, Path]]:
    """Its descriptors and what each is of, but for those that are closed meanwhile. Raises OSError."""
    for descriptor in (proc / str(pid) / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            yield int(descriptor.name), descriptor.readlink()


def _locked_directories(proc: Path, pid: int) -> list[Path]:
    """The log directories of a broker, which has a lock file open in each while it runs. Raises OSError."""
    return sorted({file.parent for _, file in _links(proc, pid) if file.name == _LOCK})


def _sees_sockets(proc: Path, pid: int) -> bool:
    """Whether its descriptors may be read, which takes its user, its group and no fewer capabilities (ptrace(2))."""
    try:
        next(_links(proc, pid), None)
    except OSError as error:
        return not isinstance(error, PermissionError)  # any other: it has ended
    return True


def _inodes(proc: Path, pid: int) -> dict[int, str]:
    """The inode of each socket that it has, by descriptor."""
    found = dict[int, str]()
    with contextlib.suppress(OSError):
        for descriptor, link in _links(proc, pid):
            kind, _, inode = str(link).partition(":")
            if kind == "socket":
                found[descriptor] = inode.strip("[]")
    return found


def _sockets(proc: Path, pid: int) -> list[_Socket]:
    """Listeners and connections in the process's network namespace (proc_pid_net(5))."""
    found = list[_Socket]()
    for family in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (proc / str(pid) / "net" / family).read_text().splitlines():
                state = line.split(None, 4)[3]
                if state in (_LISTEN, _ESTABLISHED):
                    fields = line.split(None, 10)
                    found.append(_Socket(int(fields[1].rpartition(":")[2], 16), state == _LISTEN, fields[9]))
    return found


@contextlib.contextmanager
def _handle(found: tuple[int, str], proc: Path) -> Iterator[int]:
    """A handle (pidfd_open(2)) of that very process: another may have taken its number while a keeper started.

    The handle is taken before the start is looked at, so that whose start it was is whose handle it is.
    """
    handle = os.pidfd_open(found[0])
    try:
        _insist(found, proc)
        yield handle
    finally:
        os.close(handle)


def _signal(found: tuple[int, str], proc: Path, number: signal.Signals) -> None:
    """A signal to that very process."""
    try:
        with _handle(found, proc) as handle:
            signal.pidfd_send_signal(handle, number)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):  # not every sandbox knows handles
            raise
        _insist(found, proc)
        os.kill(found[0], number)


def _insist(found: tuple[int, str], proc: Path) -> None:
    if hold_watchdog.start_of(proc, found[0]) != found[1]:
        raise ProcessLookupError(errno.ESRCH, "it has ended in the meantime")


def _keeper(found: tuple[int, str], proc: Path) -> subprocess.Popen[bytes]:
    """A watchdog that has reported that it is ready. Raises Transient when it does not."""
    arguments = [str(found[0]), found[1], str(EXPIRES_AFTER_SECONDS), str(proc)]
    try:
        made = subprocess.Popen(
            [sys.executable, "-I", "-S", hold_watchdog.__file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise Transient(f"cannot start the hold watchdog: {error.strerror}") from error
    assert made.stdout is not None  # noqa: S101 - for the type checker
    ready, _, _ = select.select([made.stdout], [], [], _READY_SECONDS)
    if not ready or made.stdout.read(1) != b"r":
        made.kill()
        made.wait()
        raise Transient(f"the hold watchdog was not ready within {_READY_SECONDS:g} s")
    return made
