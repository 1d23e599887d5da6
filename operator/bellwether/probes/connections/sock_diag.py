"""Encode and decode the kernel's ``sock_diag`` netlink messages.

In: a port, or datagrams as the kernel sent them. Out: request bytes, or the TCP sockets in them. Called by
``socket_table``. Layouts are those of linux/netlink.h, linux/inet_diag.h and linux/tcp.h, which are frozen.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass

AF_INET, AF_INET6 = 2, 10
LISTEN = 10

_SOCK_DIAG_BY_FAMILY = 20
_ERROR, _DONE = 2, 3
_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH
_TCP = 6
_INFO = 2  # INET_DIAG_INFO: struct tcp_info
_ALL_STATES = 0xFFF

_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI")
_SOCKET = struct.Struct("=BBxx2s2x16x16s")  # family, state, local port, peer's address
_SOCKET_BYTES = 72  # struct inet_diag_msg
_ATTRIBUTE = struct.Struct("=HH")
_LAST_DATA_RECEIVED = struct.Struct("=52xI")
_BYTES_RECEIVED = struct.Struct("=128xQ")

_V4_PREFIX = bytes(10) + b"\xff\xff"
# The end of a connection counts as one byte received; a Kafka or TLS client sends more than one.
_SILENT_BYTES = 1


@dataclass(frozen=True, slots=True)
class Socket:
    """One TCP socket. ``last_received_seconds``: seconds since its peer last sent data, ``None`` if it never did.

    ``peer`` is the peer's address as a number of 128 bits, one of IPv4 as its mapped address.
    """

    port: int
    state: int
    peer: int
    last_received_seconds: float | None = None


class Ignored:
    """Networks that are not "outside", such as those that health checks come from."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        """ValueError for what is no network."""
        self._masks: list[tuple[int, int]] = []
        for text in networks:
            network = ipaddress.ip_network(text.strip(), strict=False)
            prefix = network.prefixlen + (96 if network.version == 4 else 0)
            mask = ((1 << prefix) - 1) << (128 - prefix)
            self._masks.append((number_of(network.network_address.packed) & mask, mask))

    def __contains__(self, peer: int) -> bool:
        return any(peer & mask == network for network, mask in self._masks)


def number_of(packed: bytes) -> int:
    """An address of 4 or 16 bytes as a number of 128 bits."""
    return int.from_bytes(_V4_PREFIX + packed if len(packed) == 4 else packed, "big")


def dump_request(family: int, port: int, sequence: int) -> bytes:
    """Asks for all TCP sockets of one family whose local port this is, with their tcp_info."""
    body = _REQUEST.pack(family, _TCP, 1 << (_INFO - 1), _ALL_STATES)
    body += struct.pack("!HH", port, 0) + bytes(32) + bytes(4) + b"\xff" * 8
    return _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _DUMP, sequence, 0) + body


@dataclass(frozen=True, slots=True)
class Datagram:
    """What one datagram of the kernel holds; ``ended``: no more follow for this request."""

    sockets: tuple[Socket, ...]
    ended: bool = False


def decode(data: bytes, sequence: int | None = None) -> Datagram:
    """Parse one datagram: the entries that answer this request. Unreadable entries are skipped.

    Raises OSError with what the kernel refused.
    """
    sockets: list[Socket] = []
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, kind, _, number, _ = _HEADER.unpack_from(data, offset)
        if length < _HEADER.size or offset + length > len(data):
            break
        mine = sequence is None or number == sequence  # a dump that was given up may still be answered
        if mine and kind in (_ERROR, _DONE):
            _refuse(data[offset + _HEADER.size : offset + length])
            return Datagram(tuple(sockets), ended=True)
        if mine and kind == _SOCK_DIAG_BY_FAMILY and length >= _HEADER.size + _SOCKET_BYTES:
            sockets.append(_socket(data, offset + _HEADER.size, offset + length))
        offset += -(-length // 4) * 4
    return Datagram(tuple(sockets))


def _refuse(body: bytes) -> None:
    code = -struct.unpack_from("=i", body)[0] if len(body) >= 4 else 0
    # A family that the kernel was built or started without has no sockets.
    if code not in (0, errno.EAFNOSUPPORT):
        raise OSError(code, os.strerror(code))


def _socket(data: bytes, start: int, end: int) -> Socket:
    family, state, port, address = _SOCKET.unpack_from(data, start)
    last_received: float | None = None
    offset = start + _SOCKET_BYTES
    while offset + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size:
            break
        if kind == _INFO and length - _ATTRIBUTE.size >= _BYTES_RECEIVED.size:
            last_received = _last_received(data, offset + _ATTRIBUTE.size)
        offset += -(-length // 4) * 4
    return Socket(
        int.from_bytes(port, "big"), state, number_of(address[:4] if family == AF_INET else address), last_received
    )


def _last_received(data: bytes, start: int) -> float | None:
    (received,) = _BYTES_RECEIVED.unpack_from(data, start)
    if received <= _SILENT_BYTES:
        return None
    (milliseconds,) = _LAST_DATA_RECEIVED.unpack_from(data, start)
    return float(milliseconds) / 1000
