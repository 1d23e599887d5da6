"""Transport to one address with a hard deadline: resolve, connect, TLS handshake, frames.

In: an address, a security configuration, a deadline. Out: whole response frames, or ``Broken``. Used by
``broker_connection``. Every blocking call is given what is left until the deadline, so neither a peer that never
answers nor one that sends a byte now and then can hold the caller.
"""

from __future__ import annotations

import errno
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.connection.connection_errors import BrokerConnectionError, Stage
from bellwether.adapters.kafka.connection.response_decoding import LARGEST_LIMIT
from bellwether.adapters.kafka.connection.tls_sasl import expiry, tls_context
from bellwether.core.signals import UnreachableCause
from bellwether.destinations import DestinationRefused, Destinations
from bellwether.kafka_connection import Security, split_address
from bellwether.ports.errors import Transient

READ_RATE = 4 << 20
"""Bytes a second at which the answer to a read must arrive, once the time limit of a request is over."""

_CHUNK = 1 << 18
# These errors mean a local problem, not one of the broker: no evidence.
_OURS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL}
_NO_PATH = {errno.ENETUNREACH, errno.EAFNOSUPPORT}
_CAUSES = {
    errno.ECONNREFUSED: UnreachableCause.REFUSED,
    errno.EHOSTUNREACH: UnreachableCause.NO_ROUTE,
    errno.ENETUNREACH: UnreachableCause.NO_ROUTE,
    errno.ECONNRESET: UnreachableCause.CONNECTION_CLOSED,
}


# The name service knows no such host. Any other failure, such as EAI_AGAIN, is its own.
_NO_SUCH_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}


_monotonic = SystemClock().monotonic
"""Counts the time that the machine slept: what was to be sent before is not sent after it."""


class HiddenBytes(bytes):
    """Bytes that ``repr`` does not show: a request may carry a password."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{len(self)} bytes>"


class Deadline:
    """A moment on the monotonic clock. One that ``grows`` is later for each byte that arrives: the deadline of a read.

    The limit of a frame bounds how much later. The deadline of a request that changes something never grows
    (invariant 7).
    """

    __slots__ = ("_at", "_expected", "_grows")

    def __init__(self, seconds: float, *, grows: bool = False) -> None:
        self._at = _monotonic() + seconds
        self._grows = grows
        self._expected = 0

    @property
    def left(self) -> float:
        """Seconds until then; 0 when it has passed."""
        return max(0.0, self._at - _monotonic())

    @property
    def milliseconds(self) -> int:
        """The same as a time limit in a request, which is positive."""
        return max(1, int(self.left * 1000))

    def within(self, seconds: float) -> Deadline:
        """The earlier of this deadline and one in ``seconds``, of the same kind."""
        return Deadline(min(seconds, self.left), grows=self._grows)

    def expect(self, size: int) -> None:
        """The next answer may have so many bytes: allow the time that they take at ``READ_RATE``, from now on."""
        if self._grows:
            self._at += size / READ_RATE
            self._expected += size

    def arrived(self, size: int) -> None:
        """So many bytes have arrived: allow the time that they take at ``READ_RATE``, unless they were expected."""
        if self._grows:
            self._at += max(0, size - self._expected) / READ_RATE
            self._expected = max(0, self._expected - size)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Our own work meanwhile does not count: the deadline is later by the time that the block takes."""
        began = _monotonic()
        try:
            yield
        finally:
            self._at += _monotonic() - began


class Transport:
    """An open connection. Not for use by two threads at once."""

    def __init__(self, sock: socket.socket, address: str, security: Security) -> None:
        self._socket = sock
        self._security = security
        self.address = address

    @classmethod
    def open(cls, address: str, security: Security, deadline: Deadline) -> Transport:
        """Connect and, where asked for, shake hands by TLS."""
        host, port = split_address(address)
        sock = _connect(address, host, port, deadline, security.destinations)
        if not security.protocol.tls:
            return cls(sock, address, security)
        try:
            context = tls_context(security)
            sock.settimeout(_left(deadline, Stage.TLS, address))
            return cls(context.wrap_socket(sock, server_hostname=host), address, security)
        except OSError as error:
            sock.close()
            raise _tls_failure(error, address, security) from error
        except BaseException:
            sock.close()
            raise

    @property
    def certificate_ends(self) -> float | None:
        """When the peer's certificate ends (Unix time); None without TLS, or if it was not verified."""
        found = self._socket.getpeercert() if isinstance(self._socket, ssl.SSLSocket) else None
        ends = (found or {}).get("notAfter")
        return ssl.cert_time_to_seconds(ends) if isinstance(ends, str) else None

    def send(self, frame: HiddenBytes, deadline: Deadline, stage: Stage) -> None:
        """Send a whole frame."""
        view = memoryview(frame)
        try:
            while view:
                self._socket.settimeout(_left(deadline, stage, self.address))
                view = view[self._socket.send(view) :]
        except OSError as error:
            raise _request_failure(error, self.address, stage, self._security) from error

    def receive(self, deadline: Deadline, stage: Stage, limit: int) -> bytearray:
        """The next whole frame, without its length; one of more than ``limit`` bytes is refused unread."""
        (size,) = struct.unpack(">i", self._exactly(4, deadline, stage))
        if limit < size <= LARGEST_LIMIT:
            message = (
                f"sent a response of {size} bytes; at most {limit} are read: check that it is a broker of the intended"
                " Kafka cluster, and for a larger cluster raise --metadata-limit"
            )
            raise BrokerConnectionError(stage, self.address, message, lasting=True)
        if not 4 <= size <= limit:
            raise BrokerConnectionError(
                stage,
                self.address,
                "what answers there does not speak the Kafka protocol in the clear: check the port and "
                "security.protocol (a TLS listener needs SSL or SASL_SSL)",
                lasting=True,
            )
        return self._exactly(size, deadline, stage)

    def _exactly(self, size: int, deadline: Deadline, stage: Stage) -> bytearray:
        got = bytearray()
        try:
            while len(got) < size:
                self._socket.settimeout(_left(deadline, stage, self.address))
                chunk = self._socket.recv(min(_CHUNK, size - len(got)))
                if not chunk:
                    raise ConnectionResetError(errno.ECONNRESET, "closed by peer")
                got += chunk
                deadline.arrived(len(chunk))
        except OSError as error:
            raise _request_failure(error, self.address, stage, self._security) from error
        return got

    def close(self) -> None:
        """Close without waiting."""
        self._socket.close()


def _left(deadline: Deadline, stage: Stage, address: str) -> float:
    left = deadline.left
    if left <= 0:
        raise BrokerConnectionError(stage, address, _silence(stage), silent=True)
    return left


def _silence(stage: Stage) -> str:
    if stage is Stage.CONNECT:
        return "no connection in time"
    return f"connected, but no answer in time ({stage})"


def _connect(address: str, host: str, port: int, deadline: Deadline, destinations: Destinations) -> socket.socket:
    found = _resolve(address, host, port, deadline)
    worst: tuple[int, OSError] | None = None
    for index, (family, target) in enumerate(found):
        sock: socket.socket | None = None
        try:
            destinations.check((host,), target)
            sock = socket.socket(family, socket.SOCK_STREAM)
            # Each of a host's addresses gets an equal share of the time, so a dead first one leaves room for the next.
            sock.settimeout(_left(deadline, Stage.CONNECT, address) / (len(found) - index))
            sock.connect(target)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            if worst is None or _weight(family, error) >= _weight(*worst):
                worst = family, error
        except BrokerConnectionError:
            _close(sock)
            raise
        else:
            return sock
        _close(sock)
    failure = worst[1] if worst is not None else None
    if isinstance(failure, DestinationRefused):
        raise BrokerConnectionError(Stage.CONNECT, address, str(failure.strerror), lasting=True, no_evidence=True)
    if failure is not None and failure.errno in _OURS:
        raise Transient(f"this process cannot open a connection: {failure.strerror}. Raise its limits") from failure
    if failure is None or isinstance(failure, TimeoutError):
        raise BrokerConnectionError(Stage.CONNECT, address, _silence(Stage.CONNECT), silent=True) from failure
    message, cause = f"cannot connect: {failure.strerror or failure}", _CAUSES.get(failure.errno or 0)
    raise BrokerConnectionError(Stage.CONNECT, address, message, cause=cause) from failure


def _weight(family: int, error: OSError) -> int:
    """Which error of several addresses counts, the highest: 0 for a family that has no path from here (a host with
    IPv6 addresses, a pod without), 2 for what this process lacks, which is no evidence about the peer.
    """
    if error.errno in _NO_PATH or (family == socket.AF_INET6 and error.errno == errno.EADDRNOTAVAIL):
        return 0
    return 2 if error.errno in _OURS else 1


def _close(sock: socket.socket | None) -> None:
    if sock is not None:
        sock.close()


class _Lookup(threading.Thread):
    """A name lookup that can be left behind: getaddrinfo knows no time limit."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(name=f"resolve {host}", daemon=True)
        self._host, self._port = host, port
        self.found: list[tuple[int, tuple[object, ...]]] = []
        self.failure: OSError | None = None

    def run(self) -> None:
        try:
            answers = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        except OSError as error:
            self.failure = error
        except UnicodeError:
            self.failure = socket.gaierror(socket.EAI_NONAME, "not a host name")
        else:
            self.found = list(dict.fromkeys((family, target) for family, _, _, _, target in answers))


_lookups: dict[tuple[str, int], _Lookup] = {}
_lookups_lock = threading.Lock()


def _numeric(host: str, port: int) -> tuple[int, tuple[object, ...]] | None:
    """The result for a host that is an address already: no lookup is needed."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return family, (host, port)
    return None


def _resolve(address: str, host: str, port: int, deadline: Deadline) -> list[tuple[int, tuple[object, ...]]]:
    known = _numeric(host, port)
    if known is not None:
        return [known]
    # A lookup under way is joined, not doubled: with name service down, threads must not pile up.
    with _lookups_lock:
        for name in [name for name, one in _lookups.items() if not one.is_alive()]:
            del _lookups[name]  # those that ended after their time
        lookup = _lookups.get((host, port))
        if lookup is None:
            lookup = _lookups[host, port] = _Lookup(host, port)
            lookup.start()
    lookup.join(deadline.left)
    if lookup.is_alive():
        message = f"the name {host} was not resolved in time: check the cluster's DNS"
        raise BrokerConnectionError(Stage.CONNECT, address, message, no_evidence=True)
    with _lookups_lock:
        if _lookups.get((host, port)) is lookup:
            del _lookups[host, port]
    if lookup.failure is not None:
        unknown = isinstance(lookup.failure, socket.gaierror) and lookup.failure.errno in _NO_SUCH_NAME
        message = f"the name {host} cannot be resolved ({lookup.failure.strerror}): check the spelling and DNS"
        cause = UnreachableCause.NAME_UNKNOWN if unknown else None
        raise BrokerConnectionError(
            Stage.CONNECT, address, message, suspicious=unknown, no_evidence=not unknown, cause=cause
        )
    return lookup.found


def _tls_failure(error: OSError, address: str, security: Security) -> BrokerConnectionError:
    if isinstance(error, TimeoutError):
        return BrokerConnectionError(Stage.TLS, address, _silence(Stage.TLS), silent=True)
    if isinstance(error, ssl.SSLCertVerificationError):
        expired = error.verify_code in _OUT_OF_ITS_TIME
        cause = UnreachableCause.CERTIFICATE_EXPIRED if expired else UnreachableCause.CERTIFICATE_INVALID
        return BrokerConnectionError(Stage.TLS, address, _unverified(error, security), lasting=True, cause=cause)
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        message = f"TLS failed ({error.reason or error}): check that the port is a TLS listener, and {_own(security)}"
        return _broken_tls(error, address, message)
    return BrokerConnectionError(
        Stage.TLS,
        address,
        "closed the connection during the TLS handshake: check that the port is a TLS listener",
        suspicious=True,
        cause=UnreachableCause.CONNECTION_CLOSED,
    )


def _broken_tls(error: ssl.SSLError, address: str, message: str) -> BrokerConnectionError:
    refused, cause = "ALERT" in (error.reason or ""), UnreachableCause.TLS_FAILED
    return BrokerConnectionError(Stage.TLS, address, message, lasting=True, refused=refused, cause=cause)


_OUT_OF_ITS_TIME = (9, 10)
"""Codes of X509_verify_cert_error_string(3): the certificate is not valid yet, or has expired."""


def _unverified(error: ssl.SSLCertVerificationError, security: Security) -> str:
    """What is wrong with a broker's certificate; the codes are those of X509_verify_cert_error_string(3)."""
    said = f"its certificate does not verify against {_trust(security)}: {error.verify_message}"
    if error.verify_code in _OUT_OF_ITS_TIME:
        return f"{said}. Renew the broker's certificate"
    if error.verify_code in (62, 64):
        flag = security.called("verify_hostname")
        return f"{said}. Connect by a name that it carries, have it carry this one, or set {flag} to false"
    return f"{said}. Check the CA: it must be the one that signs the brokers' certificates"


def _trust(security: Security) -> str:
    named = security.called("ca_file")
    return named if security.ca_file else f"the system's trust store ({named.strip()} is not set)"


def _own(security: Security) -> str:
    """The client certificate, and what is known to be wrong with it."""
    if not security.cert_file:
        return f"whether the listener asks for a client certificate ({security.called('cert_file').strip()} is not set)"
    why = expiry(security)
    return f"the client certificate, {security.called('cert_file')}{f', {why}' if why else ''}"


def _request_failure(error: OSError, address: str, stage: Stage, security: Security) -> BrokerConnectionError:
    if isinstance(error, TimeoutError):
        return BrokerConnectionError(stage, address, _silence(stage), silent=True)
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        # TLS 1.3 reports a refused client certificate only after the handshake, on the first read.
        return _broken_tls(error, address, f"TLS failed ({error.reason or error}): check {_own(security)}")
    what = "check the port, security.protocol and, where the listener asks for one, the client certificate"
    if expiry(security):
        what = f"check {_own(security)}"
    message = f"closed the connection instead of answering: {what}"
    return BrokerConnectionError(stage, address, message, suspicious=True, cause=UnreachableCause.CONNECTION_CLOSED)
