"""Check each address at the moment when librdkafka connects to it.

librdkafka resolves names by itself and connects to whatever brokers advertise. It offers a callback in place of
``connect``, which confluent-kafka does not: it is set through ctypes, on a client that has no server yet, and then the
client gets its servers. Where that is not possible, and when a client connected without asking, it is refused.
"""

from __future__ import annotations

import ctypes
import errno
import ipaddress
import struct
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from socket import AF_INET, AF_INET6
from typing import Any

from bellwether.destinations import DestinationRefused, Destinations
from bellwether.ports.errors import Terminal

_Connect = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_FIELD = object.__basicsize__
"""Offset of the pointer to the client in its Python object: its first field."""

_kept: list[Any] = []
"""Callbacks for ever: threads of a client that was closed may still call them."""


class ConnectGuard:
    """Lets clients connect to ``destinations`` only. Each client must be made without servers."""

    def __init__(self, destinations: Destinations) -> None:
        self._destinations = destinations
        self._refused: DestinationRefused | None = None
        self._asked = False
        self._callback = _Connect(self._connect)
        _kept.append(self._callback)

    def begin(self, client: object, servers: Iterable[str]) -> None:
        """Let a client connect to these servers, and to those that they name. Raises Terminal."""
        library = _library()
        pointer = ctypes.c_void_p.from_address(id(client) + _FIELD)
        library.rd_kafka_conf_set_connect_cb(library.rd_kafka_conf(pointer), self._callback)
        library.rd_kafka_brokers_add(pointer, ",".join(servers).encode())

    def check(self, *, connected: bool) -> None:
        """Raises Terminal if an address was refused, or if a client is ``connected`` and has not asked."""
        if self._refused is not None:
            raise Terminal(str(self._refused.strerror))
        if connected and not self._asked:
            raise Terminal(_UNCHECKED)

    def _connect(self, socket: int, address: int, length: int, name: bytes, _: int) -> int:
        """The system call's error; 0 if the connection is made or under way. ``name`` is ``host:port/broker``."""
        self._asked = True
        host = name.decode().partition("/")[0].rpartition(":")[0].strip("[]")
        try:
            self._destinations.check((host,), _target(ctypes.string_at(address, length)))
        except DestinationRefused as error:
            self._refused = error
            return errno.EACCES
        except Exception:  # it would be lost in C, and count as a connection
            return errno.EINVAL
        if _system().connect(socket, ctypes.c_void_p(address), length) == 0:
            return 0
        failed = ctypes.get_errno()
        return 0 if failed == errno.EINPROGRESS else failed


_UNCHECKED = (
    "librdkafka connects without asking where it may: the canary cannot be used while destinations are limited or"
    " closed (allowedDestinations); use the version of confluent-kafka that the lock file names"
)


def _target(address: bytes) -> tuple[str, int]:
    """IP address and port of a ``sockaddr``. Raises ValueError for other families."""
    family, port = struct.unpack_from("=H", address)[0], struct.unpack_from("!H", address, 2)[0]
    if family not in (AF_INET, AF_INET6):
        raise ValueError(f"address family {family}")
    packed = address[4:8] if family == AF_INET else address[8:24]
    return str(ipaddress.ip_address(packed)), port


@cache
def _system() -> Any:
    return ctypes.CDLL(None, use_errno=True)


@cache
def _library() -> Any:
    """The librdkafka that confluent-kafka has loaded. Raises Terminal."""
    try:
        lines = Path("/proc/self/maps").read_text("ascii", errors="replace").splitlines()
        found = ctypes.CDLL(next(line.split(maxsplit=5)[5] for line in lines if "/librdkafka" in line))
        found.rd_kafka_conf.restype = ctypes.c_void_p
        found.rd_kafka_conf.argtypes = [ctypes.c_void_p]
        found.rd_kafka_conf_set_connect_cb.argtypes = [ctypes.c_void_p, _Connect]
        found.rd_kafka_brokers_add.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    except (OSError, StopIteration, AttributeError):
        raise Terminal(_UNCHECKED) from None
    return found
