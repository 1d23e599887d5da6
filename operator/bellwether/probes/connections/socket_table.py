"""Read the kernel's socket table in the network namespace that this process shares with a broker.

In: a port, and networks that do not count. Out: a ``ConnectionSample`` each time. Called by
``self_reachability`` and ``probe self --once``. No privilege is needed. Netlink's ``sock_diag`` reports when each
peer last sent data, and each connection that ends, so inactivity is visible, and so is a connection that ends before
the next sample. Where it is refused, ``/proc/net/tcp`` shows new connections only.
"""

from __future__ import annotations

import errno
import select
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bellwether.probes.connections import sock_diag
from bellwether.probes.connections.connection_activity import ConnectionSample
from bellwether.probes.connections.sock_diag import number_of

LISTEN = 0x0A
_SYN_SENT, _SYN_RECEIVED, _CLOSED, _NEW_SYN = 0x02, 0x03, 0x07, 0x0C
_UNCONNECTED = frozenset({LISTEN, _SYN_SENT, _SYN_RECEIVED, _CLOSED, _NEW_SYN})


@dataclass(frozen=True, slots=True)
class Entry:
    """One socket: its state, its peer's address as in ``sock_diag.Socket``, and its peer's port."""

    state: int
    peer: int
    peer_port: int

    @property
    def connected(self) -> bool:
        """Whether both sides have agreed on the connection, be it over by now."""
        return self.state not in _UNCONNECTED


def entries(lines: Iterable[str], port: int) -> Iterator[Entry]:
    """The sockets whose local port this is; unreadable lines are skipped."""
    wanted = f":{port:04X}"
    for line in lines:
        fields = line.split(None, 4)
        if len(fields) < 4 or not fields[1].endswith(wanted):
            continue
        try:
            address, _, peer_port = fields[2].partition(":")
            yield Entry(int(fields[3], 16), _address(address), int(peer_port, 16))
        except (ValueError, struct.error):
            continue


def _address(text: str) -> int:
    """The kernel prints addresses as words in the machine's own byte order."""
    raw = bytes.fromhex(text)
    words = struct.unpack(f"!{len(raw) // 4}I", raw)
    return number_of(struct.pack(f"={len(words)}I", *words))


_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_SOL_NETLINK, _ADD_MEMBERSHIP = 270, 1
_ENDED_V4, _ENDED_V6 = 1, 3  # SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY
_DATAGRAM_BYTES = 1 << 16
_DUMP_SECONDS = 5.0
# Room for the news of connections that end while a look is taken; the system may grant less.
_NEWS_BYTES = 1 << 22
PROC = Path("/proc/net")


class SocketTable(Protocol):
    """The sockets of one port. For one thread. ``kind`` is its name, for a person."""

    kind: str

    def listen(self, seconds: float) -> None:
        """Let time pass, and take note of what a look would come too late for. Never raises."""

    def sample(self) -> ConnectionSample:
        """What the table shows now, and what was noted since the last look. Never raises."""

    def close(self) -> None:
        """Let go of what is held."""


def open_table(port: int, ignored: sock_diag.Ignored) -> tuple[SocketTable, str]:
    """The best table that there is, and why it is not netlink's; empty when it is."""
    try:
        return NetlinkTable(port, ignored), ""
    except OSError as error:
        return ProcTable(port, ignored), error.strerror or str(error)


class NetlinkTable:
    """``sock_diag``: asked for the port's sockets at each look, and subscribed to all that end. OSError if refused."""

    kind = "netlink"

    def __init__(
        self,
        port: int,
        ignored: sock_diag.Ignored,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        buffer_bytes: int = _NEWS_BYTES,
    ) -> None:
        self._port = port
        self._ignored = ignored
        self._monotonic = monotonic
        self._sequence = 0
        self._last_received_at: float | None = None
        self._lost = False
        self._asking = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG)
        self._ends = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG)
        try:
            self._asking.settimeout(_DUMP_SECONDS)
            self._asking.bind((0, 0))
            self._ends.setblocking(False)
            self._ends.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
            self._ends.bind((0, 0))
            for group in (_ENDED_V4, _ENDED_V6):
                self._ends.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, group)
            self._dump(sock_diag.AF_INET)  # where it is refused, it is refused here
        except OSError:
            self.close()
            raise

    def listen(self, seconds: float) -> None:
        """Wait, and record when peers that disconnect meanwhile last sent data."""
        end = self._monotonic() + seconds
        while (left := end - self._monotonic()) > 0:
            ready, _, _ = select.select([self._ends], [], [], left)
            if ready:
                self._drain()

    def sample(self) -> ConnectionSample:
        """Ask for both families; a dual-stack listener has its IPv4 clients in IPv6's table."""
        self._drain()
        try:
            sockets = [*self._dump(sock_diag.AF_INET), *self._dump(sock_diag.AF_INET6)]
        except OSError as error:
            return ConnectionSample(problem=f"the kernel's socket table cannot be read ({error.strerror or error})")
        outside = self._outside(sockets)
        last_received = [age for age in map(_last_received, outside) if age is not None]
        if self._last_received_at is not None:
            last_received.append(max(0.0, self._monotonic() - self._last_received_at))
        blind = "connections end faster than the kernel's news of them are read" if self._lost else ""
        self._lost = False
        listening = any(s.state == sock_diag.LISTEN for s in sockets)
        return ConnectionSample(listening, len(outside), min(last_received, default=None), blind)

    def close(self) -> None:
        """Close both sockets."""
        self._asking.close()
        self._ends.close()

    def _outside(self, sockets: list[sock_diag.Socket]) -> list[sock_diag.Socket]:
        return [s for s in sockets if s.state != sock_diag.LISTEN and s.peer not in self._ignored]

    def _drain(self) -> None:
        while True:
            try:
                ended = sock_diag.decode(self._ends.recv(_DATAGRAM_BYTES)).sockets
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    return
                self._lost = True
                continue
            now = self._monotonic()
            mine = self._outside([s for s in ended if s.port == self._port])
            for age in (age for age in map(_last_received, mine) if age is not None):
                self._last_received_at = max(
                    now - age, now - age if self._last_received_at is None else self._last_received_at
                )

    def _dump(self, family: int) -> list[sock_diag.Socket]:
        self._sequence += 1
        self._asking.send(sock_diag.dump_request(family, self._port, self._sequence))
        found: list[sock_diag.Socket] = []
        while True:
            datagram = sock_diag.decode(self._asking.recv(_DATAGRAM_BYTES), self._sequence)
            found += datagram.sockets
            if datagram.ended:
                return found


class ProcTable:
    """``/proc/net/tcp`` and ``tcp6``: a new entry counts as activity."""

    kind = "/proc/net/tcp"

    def __init__(self, port: int, ignored: sock_diag.Ignored, directory: Path = PROC) -> None:
        self._port = port
        self._ignored = ignored
        self._files = [directory / "tcp", directory / "tcp6"]
        self._known: frozenset[tuple[int, int]] | None = None

    def listen(self, seconds: float) -> None:
        """Wait: nothing is reported between two samples."""
        time.sleep(max(0.0, seconds))

    def sample(self) -> ConnectionSample:
        """Read both files; a kernel without IPv6 has one."""
        try:
            found = [entry for path in self._files for entry in self._entries(path)]
        except OSError as error:
            return ConnectionSample(problem=f"{PROC}/tcp cannot be read ({error.strerror or error})")
        outside = [e for e in found if e.connected and e.peer not in self._ignored]
        # The kernel may list a socket twice while others come and go, so peers count and not lines.
        known, before = frozenset((e.peer, e.peer_port) for e in outside), self._known
        self._known = known
        new = before is not None and bool(known - before)
        blind = "without netlink only new connections are visible, not the activity of existing ones"
        return ConnectionSample(any(e.state == LISTEN for e in found), len(known), 0.0 if new else None, blind)

    def close(self) -> None:
        """Nothing is held."""

    def _entries(self, path: Path) -> list[Entry]:
        try:
            with path.open(encoding="ascii", errors="replace") as lines:
                return list(entries(lines, self._port))
        except FileNotFoundError:
            if path == self._files[0]:
                raise
            return []


def _last_received(found: sock_diag.Socket) -> float | None:
    return found.last_received_seconds
