"""Connection errors to a broker: stage, address, what happened, and what to do about it.

``Broken`` is raised inside this adapter alone; ``broker_pool`` and ``broker_probe`` turn it into what their callers
expect. The names of Kafka's error codes are the protocol's own (``org.apache.kafka.common.protocol.Errors``);
kafka-python's spelling differs for some.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from kafka.errors import kafka_errors

from bellwether.core.signals import UnreachableCause
from bellwether.ports.errors import BellwetherError, Terminal, Transient, Unauthenticated, Unauthorized

NONE = 0
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
REQUEST_TIMED_OUT = 7
REPLICA_NOT_AVAILABLE = 9
INVALID_TOPIC_EXCEPTION = 17
TOPIC_AUTHORIZATION_FAILED = 29
CLUSTER_AUTHORIZATION_FAILED = 31
UNSUPPORTED_SASL_MECHANISM = 33
ILLEGAL_SASL_STATE = 34
UNSUPPORTED_VERSION = 35
INVALID_REQUEST = 42
UNKNOWN_TOPIC_ID = 100

_NAMES = {
    -1: "UNKNOWN_SERVER_ERROR",
    0: "NONE",
    INVALID_TOPIC_EXCEPTION: "INVALID_TOPIC_EXCEPTION",
    39: "INVALID_REPLICA_ASSIGNMENT",
    UNKNOWN_TOPIC_ID: "UNKNOWN_TOPIC_ID",
}


class Stage(StrEnum):
    """How far a conversation with a broker came before it broke."""

    CONNECT = "Connect"
    TLS = "Tls"
    SASL = "Sasl"
    REQUEST = "Request"
    WRONG_BROKER = "WrongBroker"


TIMEOUT = "Timeout"

_SILENT = {Stage.CONNECT: UnreachableCause.NO_CONNECTION, Stage.TLS: UnreachableCause.TLS_SILENT}


class BrokerConnectionError(Exception):
    """A conversation with one broker broke.

    ``lasting``: repeating it will not help, a person must act. ``suspicious``: it may be a wrong configuration (a wrong
    port or protocol) as well as a broker in trouble; it is lasting only while the configuration has never yet worked.
    ``refused``: the broker rejected the authentication. ``silent``: it did not answer in time. ``no_evidence``: what
    failed is not the broker, such as the name service. ``cause`` is None where it has no name of its own.
    """

    def __init__(
        self,
        stage: Stage,
        address: str,
        message: str,
        *,
        lasting: bool = False,
        suspicious: bool = False,
        refused: bool = False,
        silent: bool = False,
        no_evidence: bool = False,
        cause: UnreachableCause | None = None,
    ) -> None:
        super().__init__(f"{address}: {message}")
        self.stage = stage
        self.address = address
        self.message = message
        self.lasting = lasting
        self.suspicious = suspicious
        self.refused = refused
        self.silent = silent
        self.no_evidence = no_evidence
        if cause is None and silent:
            cause = _SILENT.get(stage, UnreachableCause.NO_ANSWER)
        self.cause = UnreachableCause.CREDENTIALS_REFUSED if refused else cause

    @property
    def outcome(self) -> str:
        """The label in metrics: the stage that failed, or ``Timeout`` if TLS or SASL got no answer in time."""
        # A timeout is no rejected certificate or password.
        return TIMEOUT if self.silent and self.stage in (Stage.TLS, Stage.SASL) else str(self.stage)


def error_name(code: int) -> str:
    """The protocol's name of an error code, as Kafka's own tools print it."""
    if code in _NAMES:
        return _NAMES[code]
    known = kafka_errors.get(code)
    return str(known.message) if known is not None else f"ERROR_{code}"


def from_attempts(attempts: Sequence[BrokerConnectionError], *, proven: bool) -> BellwetherError:
    """What to raise when no broker answered: Terminal if one gave a permanent reason, else Transient.

    Unauthenticated if it failed during TLS or SASL.

    ``proven``: this configuration has worked before, so a dead connection is not taken for a wrong one.
    """
    if not attempts:
        return Transient("no time was left to ask any broker; try again")
    lasting = [broken for broken in attempts if broken.lasting or (broken.suspicious and not proven)]
    if lasting:
        ours = any(broken.stage in (Stage.TLS, Stage.SASL) for broken in lasting)
        return (Unauthenticated if ours else Terminal)(_sentence(lasting))
    return Transient(
        f"no broker answered: {_sentence(attempts)}. Check that Kafka runs and that these addresses are right"
    )


def from_code(code: int, address: str, what: str, acl: str) -> BellwetherError:
    """What an error that covers the whole answer of ``what`` means; ``acl`` is the permission that it needs.

    The answer's own text is left out: status, which a policy's author reads, repeats no text of a server.
    """
    if code == CLUSTER_AUTHORIZATION_FAILED:
        return Unauthorized(f"{address} refused {what}: not authorised. Grant this user the ACL {acl}")
    said = f"{address} answered {what} with {error_name(code)}"
    known = kafka_errors.get(code)
    if code == REQUEST_TIMED_OUT:
        return Transient(f"{said}: it may have been carried out")
    if code == -1 or known is None or known.retriable:
        return Transient(said)
    return Terminal(said)


def _sentence(attempts: Sequence[BrokerConnectionError]) -> str:
    """Errors by broker; the same error of several brokers appears once, with at most three addresses."""
    said: dict[str, list[str]] = {}
    for broken in attempts:
        said.setdefault(broken.message, []).append(broken.address)
    return "; ".join(f"{_names(addresses)}: {message}" for message, addresses in said.items())


def _names(addresses: Sequence[str]) -> str:
    rest = f" and {len(addresses) - 3} more" if len(addresses) > 3 else ""
    return ", ".join(addresses[:3]) + rest
