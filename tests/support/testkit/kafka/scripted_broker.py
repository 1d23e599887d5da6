"""A broker that says what a test wants: constructed protocol answers over a real socket, or none at all.

In: answers by request class. Out: an address on 127.0.0.1, and the requests that came. For what a real broker cannot be
brought to say at will: late answers, refusals, peers that are no brokers.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import Any

from kafka.protocol.admin.cluster import DescribeClusterRequest, DescribeLogDirsRequest, DescribeQuorumRequest
from kafka.protocol.admin.configs import DescribeConfigsRequest
from kafka.protocol.admin.topics import (
    AlterPartitionReassignmentsRequest,
    DescribeTopicPartitionsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

_REQUESTS = (
    AlterPartitionReassignmentsRequest,
    ApiVersionsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    ElectLeadersRequest,
    ListOffsetsRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)


class BrokerHeartbeatRequest:
    """What the listeners of KRaft controllers alone offer."""

    API_KEY = 63


#: An answer: a response, or None to never answer.
Answer = Callable[[Any], Any]


def versions(
    limits: Mapping[Any, tuple[int, int]] | None = None,
    features: Mapping[str, int] | None = None,
    offset: Callable[[], int] = lambda: 1,
    without: Collection[Any] = (),
    controller: bool = False,
    throttle_ms: int = 0,
) -> Answer:
    """ApiVersions of a broker that knows all requests but those it is ``without``, in all versions but for ``limits``.

    ``offset`` is that of the metadata log which it has read so far. A KRaft ``controller`` knows no Metadata.
    """
    known = {request: (0, request.max_version) for request in _REQUESTS if request not in without} | dict(limits or {})
    if controller:
        known = {BrokerHeartbeatRequest: (0, 1)} | {r: v for r, v in known.items() if r is not MetadataRequest}
    return lambda _: ApiVersionsResponse(
        error_code=0,
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=request.API_KEY, min_version=low, max_version=high)
            for request, (low, high) in known.items()
        ],
        throttle_time_ms=throttle_ms,
        finalized_features_epoch=offset(),
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in (features or {}).items()
        ],
    )


class ScriptedBroker:
    """Serves until the context ends. ``raw`` instead of answers takes over each connection whole."""

    def __init__(
        self, answers: Mapping[Any, Answer] | None = None, *, raw: Callable[[socket.socket], None] | None = None
    ) -> None:
        self._answers: dict[Any, Answer] = {ApiVersionsRequest: versions(), **(answers or {})}
        self._raw = raw
        self._server = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.port = self._server.getsockname()[1]
        self.seen: list[Any] = []
        self.frames: list[bytes] = []

    def __enter__(self) -> ScriptedBroker:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sock in (self._server, *self._connections):
            # A shutdown, unlike a close, wakes the thread that waits on it.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def asked(self, request: Any) -> list[Any]:
        """The requests of that class that came, in order."""
        return [seen for seen in self.seen if isinstance(seen, request)]

    def answer(self, request: Any, answer: Answer) -> None:
        """From now on answer that request so."""
        self._answers[request] = answer

    def forget(self, request: Any) -> None:
        """From now on hang up on that request."""
        self._answers.pop(request, None)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._server.accept()
            except OSError:
                return
            self._connections.append(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            if self._raw is not None:
                self._raw(sock)
            else:
                while self._answer_one(sock):
                    pass
        except OSError:
            pass

    def _answer_one(self, sock: socket.socket) -> bool:
        (size,) = struct.unpack(">i", exactly(sock, 4))
        frame = exactly(sock, size)
        self.frames.append(frame)
        kind, request = request_in(frame)
        self.seen.append(request)
        if kind not in self._answers:
            sock.close()
            return False
        response = self._answers[kind](request)
        if response is not None:
            sock.sendall(framed(kind, response, frame))
        return True


def request_in(frame: bytes) -> tuple[Any, Any]:
    """The class of a request, and the request. StopIteration for one that no test needs."""
    key, version = struct.unpack_from(">hh", frame)
    kind = next(request for request in _REQUESTS if key == request.API_KEY)
    return kind, kind.decode(frame, version=version, header=True)


def framed(kind: Any, response: Any, frame: bytes) -> bytes:
    """The whole answer to the request in a frame."""
    _, version, correlation = struct.unpack_from(">hhi", frame)
    # A broker that does not know the version of ApiVersions says so in version 0 (KIP-511).
    response.API_VERSION = 0 if kind is ApiVersionsRequest and response.error_code else version
    response.with_header(correlation_id=correlation)
    return bytes(response.encode(header=True, framed=True))


def exactly(sock: socket.socket, size: int) -> bytes:
    """So many bytes. Raises ConnectionResetError when the connection ends before."""
    got = b""
    while len(got) < size:
        chunk = sock.recv(size - len(got))
        if not chunk:
            raise ConnectionResetError
        got += chunk
    return got


def silent(sock: socket.socket) -> None:
    """A black hole: takes everything and never answers."""
    while sock.recv(4096):
        pass


def dripping(sock: socket.socket) -> None:
    """Promises a frame of a megabyte, and sends a byte of it now and then."""
    sock.recv(4096)
    sock.sendall(struct.pack(">i", 1 << 20))
    while True:
        sock.sendall(b"\0")
        time.sleep(0.05)


def hanging_up(sock: socket.socket) -> None:
    """Closes as soon as something comes."""
    sock.recv(4096)
    sock.close()


def web_server(sock: socket.socket) -> None:
    """Answers as a web server does."""
    sock.recv(4096)
    sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
