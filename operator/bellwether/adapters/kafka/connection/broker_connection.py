"""Broker connection: negotiate API versions, authenticate, send one request after another.

In: an address and a connection configuration. Out: decoded responses, or ``Broken``. Used by ``broker_pool`` (a broker
that we choose) and ``broker_probe`` (a broker at exactly that address). Messages are encoded by kafka-python's protocol
classes; its networking, with its own routing, retries and timeouts, is not used.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any

from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from bellwether import __version__
from bellwether.adapters.kafka.connection.connection_errors import (
    ILLEGAL_SASL_STATE,
    UNSUPPORTED_SASL_MECHANISM,
    UNSUPPORTED_VERSION,
    BrokerConnectionError,
    Stage,
    error_name,
    from_code,
)
from bellwether.adapters.kafka.connection.response_decoding import (
    LARGE_LIMIT,
    MOST_BROKERS,
    SMALL_LIMIT,
    TooMany,
    decode,
)
from bellwether.adapters.kafka.connection.tls_sasl import Exchange
from bellwether.adapters.kafka.connection.transport import Deadline, HiddenBytes, Transport
from bellwether.kafka_connection import Connection, Mechanism, split_address
from bellwether.ports.errors import Terminal

# Every Kafka from 2.4 on answers it; topic ids, which we need, came with 2.8.
_API_VERSIONS = 3
_REMEMBERED_BYTES = 8192
_CORRELATION = 8  # in a framed request: after its size, its key and its version
_NO_CORRELATION = bytes(4)
_BROKER_HEARTBEAT = 63
"""Offered by the listeners of KRaft controllers alone."""


Observe = Callable[[str, str, float], None]
"""Called after a request: its kind, ``ok`` or the stage at which the connection failed, and seconds."""


class PreparedRequest:
    """A request that is asked of many brokers, or often: encoded once, and each different answer decoded once.

    Answers are shared between callers and must not be modified. A large one is not cached, as the caller is
    asked decides how large it is.
    """

    def __init__(self, request: Any, response: Any, client_id: str, *, answers: int = 8) -> None:
        """``answers`` is how many different ones are remembered."""
        self.request = request
        request.with_header(correlation_id=0, client_id=client_id)
        self.frame = HiddenBytes(request.encode(framed=True, header=True))
        self._decode: Callable[[bytes], Any] = partial(decode, response, request.API_VERSION)
        self._remembered = lru_cache(answers)(self._decode)

    def read(self, frame: bytes) -> Any:
        """Decode an answer. Raises as decoding does."""
        return (self._remembered if len(frame) <= _REMEMBERED_BYTES else self._decode)(frame)


@lru_cache(8)
def _which_versions(client_id: str) -> PreparedRequest:
    request = ApiVersionsRequest(
        version=_API_VERSIONS, client_software_name="bellwether", client_software_version=__version__
    )
    return PreparedRequest(request, ApiVersionsResponse, client_id)


class BrokerConnection:
    """An authenticated conversation. Close it, or use it as a context. Not for two threads at once."""

    def __init__(self, wire: Transport, client_id: str) -> None:
        self._wire = wire
        self.client_id = client_id
        self._correlation = 0
        self._versions: dict[int, tuple[int, int]] = {}
        self.observe: Observe | None = None
        self.features: dict[str, int] = {}
        self.metadata_offset = -1
        """Offset of the last record of the metadata log that the broker knew when it was asked; -1 if it does not say.

        KRaft reports it as the epoch of the finalized features (``KRaftMetadataCache.features``).
        """
        self.large_limit = LARGE_LIMIT
        """Bytes of the largest answer about the whole cluster that is read."""
        self.throttled_seconds = 0.0
        """For how long Kafka has delayed this conversation so far, as the user is over a quota (KIP-219)."""

    @property
    def address(self) -> str:
        """Whom we speak to."""
        return self._wire.address

    @property
    def certificate_ends(self) -> float | None:
        """When the broker's certificate ends (Unix time); None without TLS, or if it was not verified."""
        return self._wire.certificate_ends

    @classmethod
    def open(cls, address: str, connection: Connection, deadline: Deadline) -> BrokerConnection:
        """Connect, agree on versions, authenticate; all before the deadline, or ``BrokerConnectionError``.

        When it returns, the broker has answered at least one request: a frozen one does not get this far.
        """
        # A token is fetched before the broker waits for us.
        sasl = (
            Exchange(connection.security, deadline.left, split_address(address)[0])
            if connection.security.protocol.sasl
            else None
        )
        dialogue = cls(Transport.open(address, connection.security, deadline), connection.client_id)
        try:
            dialogue._agree(deadline, Stage.SASL if sasl else Stage.REQUEST)
            if sasl is not None:
                dialogue._authenticate(connection, sasl, deadline)
        except BaseException:
            dialogue.close()
            raise
        return dialogue

    def refresh(self, deadline: Deadline) -> None:
        """Ask again how far the broker's metadata goes, and what it supports."""
        self._agree(deadline, Stage.REQUEST)

    def version(self, request: Any, wanted: int) -> int | None:
        """The version of a request to use, at most ``wanted``; ``None`` where the broker does not know the request."""
        low, high = self._versions.get(request.API_KEY, (0, -1))
        chosen = min(wanted, high, request.max_version)
        return chosen if chosen >= low else None

    def offers(self, request: Any, least: int = 0) -> bool:
        """Whether the broker knows a request, in a version from ``least`` on."""
        chosen = self.version(request, request.max_version)
        return chosen is not None and chosen >= least

    def require(self, request: Any, wanted: int, least: int = 0) -> int:
        """The version of a request to use, from ``least`` to ``wanted``.

        Raises ``BrokerConnectionError`` with the cause where there is none.
        """
        chosen = self.version(request, wanted)
        if chosen is not None and chosen >= least:
            return chosen
        name = request.__name__.removesuffix("Request")
        if not self.offers(MetadataRequest) and _BROKER_HEARTBEAT in self._versions:
            text = "is a KRaft controller's listener: use that of a broker"
        elif request.API_KEY in self._versions:
            low, high = self._versions[request.API_KEY]
            text = f"offers {name} {low} to {high}, needed is {least} to {wanted}, as in Kafka 2.8 and later"
        else:
            text = f"does not offer {name}: it is no Kafka broker from 2.8 on, or a service that lacks the request"
        raise BrokerConnectionError(Stage.REQUEST, self.address, text, lasting=True)

    def ask(
        self,
        request: Any,
        response: Any,
        deadline: Deadline,
        stage: Stage = Stage.REQUEST,
        *,
        large: bool = False,
        read: Callable[[bytearray], Any] | None = None,
    ) -> Any:
        """Send one request (with its version set) and decode its response, with ``read`` if that is given.

        ``large`` is for answers that take us seconds to decode, as metadata of 200,000 partitions does: the deadline is
        for the broker, and is later by that time, which ``large_limit`` bounds.
        """
        began, outcome = time.monotonic(), "ok"
        request.with_header(correlation_id=0, client_id=self.client_id)
        try:
            framed = HiddenBytes(request.encode(framed=True, header=True))
            frame = self.exchange(framed, deadline, stage, self.large_limit if large else SMALL_LIMIT)
            with deadline.paused() if large else nullcontext():
                return self._read(read or partial(decode, response, request.API_VERSION), request, frame, stage)
        except BrokerConnectionError as broken:
            outcome = broken.outcome
            raise
        finally:
            if self.observe is not None:
                self.observe(type(request).__name__.partition("Request")[0], outcome, time.monotonic() - began)

    def ask_again(self, asked: PreparedRequest, deadline: Deadline, stage: Stage = Stage.REQUEST) -> Any:
        """A question that is put very often, by many: its bytes are made once, and equal answers are read once."""
        frame = self.exchange(asked.frame, deadline, stage)
        return self._read(asked.read, asked.request, bytes(frame), stage)

    def exchange(self, framed: HiddenBytes, deadline: Deadline, stage: Stage, limit: int = SMALL_LIMIT) -> bytearray:
        """Send a framed request with any correlation id; returns the answer's frame, with correlation id 0.

        A frame of more than ``limit`` bytes is refused before it is read.
        """
        self._correlation += 1
        number = struct.pack(">i", self._correlation)
        try:
            self._wire.send(HiddenBytes(framed[:_CORRELATION] + number + framed[_CORRELATION + 4 :]), deadline, stage)
            frame = self._wire.receive(deadline, stage, limit)
        except BrokerConnectionError as broken:
            if not (broken.silent and self.throttled_seconds):
                raise
            message = (
                f"no answer in time, and Kafka delays this user's requests by {self.throttled_seconds:.3g} s, as it is"
                " over a quota: raise its quota (kafka-configs.sh --entity-type users)"
            )
            raise BrokerConnectionError(stage, self.address, message, silent=True, no_evidence=True) from broken
        if frame[:4] != number:
            raise BrokerConnectionError(
                stage, self.address, "sent a response to another request: it is not a Kafka broker", lasting=True
            )
        frame[:4] = _NO_CORRELATION
        return frame

    def check(self, answer: Any, acl: str = "Describe on Cluster") -> None:
        """Raise what the error of a whole answer means; ``acl`` is the permission that its request needs."""
        if answer.error_code:
            raise from_code(answer.error_code, self.address, type(answer).__name__.partition("Response")[0], acl)

    def check_brokers(self, number: int) -> None:
        """Raise Terminal if the cluster names more brokers than are supported: for each of them we keep an object."""
        if number > MOST_BROKERS:
            raise Terminal(
                f"{self.address} names {number} brokers; at most {MOST_BROKERS} are supported: check that"
                " bootstrapServers are those of the intended Kafka cluster"
            )

    def _read(self, decode: Callable[[Any], Any], request: Any, frame: bytes | bytearray, stage: Stage) -> Any:
        try:
            answer = decode(frame)
        except TooMany as error:
            raise BrokerConnectionError(stage, self.address, str(error), lasting=True) from error
        except (ValueError, LookupError, TypeError, OverflowError, AssertionError, struct.error) as error:
            raise BrokerConnectionError(
                stage, self.address, f"its answer to {type(request).__name__} cannot be read: it may be no Kafka broker"
            ) from error
        self.throttled_seconds += getattr(answer, "throttle_time_ms", 0) / 1000
        return answer

    def close(self) -> None:
        """Hang up."""
        self._wire.close()

    def __enter__(self) -> BrokerConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _agree(self, deadline: Deadline, stage: Stage) -> None:
        answer = self.ask_again(_which_versions(self.client_id), deadline, stage)
        if answer.error_code == UNSUPPORTED_VERSION:
            raise BrokerConnectionError(
                stage, self.address, "is older than Kafka 2.8: too old to be asked", lasting=True
            )
        if answer.error_code:
            raise BrokerConnectionError(
                stage, self.address, f"answered ApiVersions with {error_name(answer.error_code)}"
            )
        self._versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        self.metadata_offset = answer.finalized_features_epoch
        self.features = {feature.name: feature.max_version_level for feature in answer.finalized_features or ()}

    def _authenticate(self, connection: Connection, sasl: Exchange, deadline: Deadline) -> None:
        security = connection.security
        answer = self.ask(
            SaslHandshakeRequest(version=1, mechanism=str(security.mechanism)),
            SaslHandshakeResponse,
            deadline,
            Stage.SASL,
        )
        if answer.error_code == UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(str(one) for one in Mechanism if one in answer.mechanisms) or "none that is supported"
            wanted = security.called("mechanism")
            message = f"does not offer the SASL mechanism {security.mechanism}: choose one of {offered} as {wanted}"
            raise BrokerConnectionError(Stage.SASL, self.address, message, lasting=True)
        if answer.error_code == ILLEGAL_SASL_STATE:
            message = (
                "this listener does not use SASL: check the port, or set security.protocol other than"
                f" {security.protocol}"
            )
            raise BrokerConnectionError(Stage.SASL, self.address, message, lasting=True)
        if answer.error_code:
            raise BrokerConnectionError(
                Stage.SASL, self.address, f"answered SaslHandshake with {error_name(answer.error_code)}"
            )
        version = self.version(SaslAuthenticateRequest, 2) or 0
        for number in range(sasl.rounds()):
            answer = self.ask(
                SaslAuthenticateRequest(version=version, auth_bytes=HiddenBytes(sasl.message(number))),
                SaslAuthenticateResponse,
                deadline,
                Stage.SASL,
            )
            problem, ours = "", True
            if answer.error_code:
                problem = f"refused {security.principal} ({error_name(answer.error_code)})"
            else:
                try:
                    sasl.answer(number, bytes(answer.auth_bytes))
                except ValueError as error:
                    problem, ours = str(error), security.oauth is not None
            if problem:
                message = f"{problem}: {sasl.remedy()}" if ours else problem
                sasl.refused()
                raise BrokerConnectionError(Stage.SASL, self.address, message, lasting=True, refused=ours)
