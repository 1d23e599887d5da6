"""Parse lines of ``/proc/net/tcp`` and ``/proc/net/tcp6``, the fallback where ``sock_diag`` is refused.

In: the files' text. Out: sockets by local port. They show who is connected, not when a peer last sent data. Pure;
called by ``socket_table``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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
