"""A Kafka that answers as accidents do: endless, huge, slow, by halves, with garbage, with too much of everything.

In: which accident now, and a seed. Out: an address that a policy may name. It begins as a small cluster of one broker,
so that each accident is met at each step of a reconcile, also after a good one. Frames are generated once: what costs
is to read them.
"""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Callable
from types import TracebackType

from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from testkit.kafka.scripted_broker import ScriptedBroker, exactly, framed, request_in, versions
from testkit.kafka.scripted_metadata import answers

MEBIBYTE = 1 << 20
QUIET = "quiet"


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*found, number))


def _text(said: bytes) -> bytes:
    return _varint(len(said) + 1) + said


def metadata(port: int, topics: int, partitions: int = 1, replicas: int = 1, twice: bool = False) -> bytes:
    """The body of Metadata, version 12: so many topics with so many partitions each, all on broker 1."""
    broker = struct.pack(">i", 1) + _text(b"127.0.0.1") + struct.pack(">i", port) + b"\0\0"
    members = _varint(replicas + 1) + struct.pack(f">{replicas}i", *range(1, replicas + 1))
    slots = b"".join(struct.pack(">hiii", 0, n, 1, 0) + 2 * members + b"\1\0" for n in range(partitions))
    end = b"\0" + _varint(partitions + 1) + slots + bytes(4) + b"\0"
    named = (0 if twice else n for n in range(topics))
    found = b"".join(struct.pack(">h", 0) + _text(b"t%07d" % n) + struct.pack(">16x") + end for n in named)
    head = bytes(4) + _varint(2) + broker + _text(b"a-cluster-of-accidents") + struct.pack(">i", 1)
    return head + _varint(topics + 1) + found + b"\0"


class AccidentalBroker:
    """Serves until the context ends. ``accident`` is one of ``ACCIDENTS`` or ``QUIET``, and may change at any time."""

    def __init__(self, seed: int = 43) -> None:
        self.accident = QUIET
        self.met = 0
        """Requests that the present accident has answered."""
        self._random = random.Random(seed)
        self._server = ScriptedBroker(raw=self._serve)
        self._bodies: dict[str, bytes] = {}
        self.address = self._server.address
        self._small = metadata(self._server.port, 1)

    def happen(self, accident: str) -> None:
        """From the next request on; prepares the answer first, as it may take seconds."""
        if accident in BODIES and accident not in self._bodies:
            self._bodies[accident] = BODIES[accident](self._server.port)
        self.accident, self.met = accident, 0

    def _serve(self, sock: socket.socket) -> None:
        small = answers(versions=versions(limits={MetadataRequest: (0, 12)}))
        while True:
            frame = exactly(sock, struct.unpack(">i", exactly(sock, 4))[0])
            kind, request = request_in(frame)
            (correlation,) = struct.unpack_from(">i", frame, 4)
            accident, known = self.accident, kind is ApiVersionsRequest
            self.met += not known
            if accident in RAW and not known:
                RAW[accident](self._random, sock, correlation)
                return
            if kind is MetadataRequest:
                whole = struct.pack(">i", correlation) + b"\0" + (self._bodies.get(accident) or self._small)
                sock.sendall(struct.pack(">i", len(whole)) + whole)
            elif kind in small:
                sock.sendall(framed(kind, small[kind](request), frame))
            else:
                return  # hangs up

    def __enter__(self) -> AccidentalBroker:
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.__exit__(kind, problem, trace)


def _endless(_: random.Random, sock: socket.socket, correlation: int) -> None:
    """Frame after frame, none of them asked for."""
    sock.sendall(struct.pack(">ii", MEBIBYTE, correlation))
    while True:
        sock.sendall(bytes(MEBIBYTE))


def _huge(_: random.Random, sock: socket.socket, correlation: int) -> None:
    """The longest frame that there is."""
    sock.sendall(struct.pack(">ii", 2**31 - 1, correlation))
    while True:
        sock.sendall(bytes(MEBIBYTE))


def _slow(_: random.Random, sock: socket.socket, correlation: int) -> None:
    """A byte now and then of 7 MiB."""
    sock.sendall(struct.pack(">ii", 7 * MEBIBYTE, correlation))
    while True:
        sock.sendall(b"\0")
        time.sleep(0.2)


def _half(some: random.Random, sock: socket.socket, correlation: int) -> None:
    """The beginning of an answer, then nothing, or the end of the connection."""
    sock.sendall(struct.pack(">ii", 1024, correlation) + bytes(some.randrange(1000)))
    if some.random() < 0.5:
        time.sleep(60)


def _garbage(some: random.Random, sock: socket.socket, correlation: int) -> None:
    """A frame of the right length and number, with anything in it."""
    body = some.randbytes(some.choice((1, 100, 100_000, 4 * MEBIBYTE)))
    sock.sendall(struct.pack(">ii", len(body) + 4, correlation) + body)


RAW: dict[str, Callable[[random.Random, socket.socket, int], None]] = {
    "endless": _endless,
    "huge": _huge,
    "slow": _slow,
    "half": _half,
    "garbage": _garbage,
}
BODIES: dict[str, Callable[[int], bytes]] = {
    "200,000 topics": lambda port: metadata(port, 200_000),
    "300,000 partitions": lambda port: metadata(port, 50, 6_000),
    "wide partitions": lambda port: metadata(port, 20, 1, 40_000),
    "a topic 5,000 times": lambda port: metadata(port, 5_000, 30, twice=True),
}
ACCIDENTS = (*RAW, *BODIES)
