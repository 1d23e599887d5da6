"""TLS context and SASL client from the security settings of a connection. For ``transport`` and ``broker_connection``.

The configuration itself is ``bellwether.kafka_connection``, which imports no client, so that any module may use it.
"""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from bellwether.adapters import pem
from bellwether.adapters.clocks import SystemClock
from bellwether.kafka_connection import Mechanism, Security
from bellwether.ports.errors import Unauthenticated

if TYPE_CHECKING:
    from kafka.net.sasl.scram import ScramClient

_STATUSES = {"insufficient_scope", "invalid_request", "invalid_token"}
_ITERATIONS = 4_096, 100_000
"""Least and most of SCRAM's hash: few let a false server guess the password (RFC 7677, 4), many cost CPU. Kafka
allows 4,096 to 16,384."""
_NOT_SCRAM = "the server's SCRAM answer is not valid"
_Versions = tuple[tuple[int, ...] | None, ...]
_contexts: WeakKeyDictionary[Security, tuple[_Versions, ssl.SSLContext]] = WeakKeyDictionary()
"""One for as long as a connection has these settings, however many clusters there are."""


def tls_context(security: Security) -> ssl.SSLContext:
    """A client context, to be shared. Rotated certificates count: it is rebuilt when one of its files has changed.

    Unauthenticated names a bad file.
    """
    default = ssl.get_default_verify_paths()
    files = (security.ca_file or default.cafile or "", security.cert_file, security.key_file)
    versions = tuple(_version(file) for file in files)
    known = _contexts.get(security)
    if known is None or known[0] != versions:
        known = _contexts[security] = versions, _context(security)
    return known[1]


def _version(file: str) -> tuple[int, ...] | None:
    """What changes when a file does; ``None`` when there is none."""
    try:
        found = Path(file).stat() if file else None
    except OSError:
        return None
    return None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size)


def _context(security: Security) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = security.verify_hostname
    try:
        if security.ca_file:
            context.load_verify_locations(cafile=security.ca_file)
        else:
            context.load_default_certs()
    except OSError as error:
        raise Unauthenticated(f"{security.called('ca_file')} is not a readable PEM file: {_why(error)}") from error
    if security.cert_file:
        key = security.key_file or security.cert_file
        try:
            # Without a callback OpenSSL would ask the terminal for the passphrase, and wait.
            context.load_cert_chain(security.cert_file, key, password=lambda: "")
        except OSError as error:
            pair = security.called("cert_file")
            if security.key_file:
                pair += f" with {security.called('key_file')}"
            raise Unauthenticated(
                f"{pair} cannot be used: {_why(error)}. They must be PEM, belong together, and the key must have no "
                "passphrase"
            ) from error
    return context


def expiry(security: Security) -> str:
    """Why the client's own certificate would be refused now, as the end of a sentence; empty when it is in its time."""
    if not security.cert_file:
        return ""
    try:
        own = pem.validities(Path(security.cert_file).read_bytes())[0]
    except (OSError, ValueError):
        return ""
    now = SystemClock().now()
    if own.ends < now:
        return f"which has expired on {own.ends:%Y-%m-%d at %H:%M} UTC: renew it"
    return f"which is not valid before {own.starts:%Y-%m-%d %H:%M} UTC: check clocks" if own.starts > now else ""


def certificate_ends(security: Security) -> dict[str, float | None]:
    """When the last of the trusted certificates (``authority``) and the client's (``own``) end; None for none."""
    found: dict[str, float | None] = {}
    for which, path in (("authority", security.ca_file), ("own", security.cert_file)):
        try:
            ends = [v.ends.timestamp() for v in pem.validities(Path(path).read_bytes())] if path else []
        except (OSError, ValueError):
            ends = []  # connecting reports what is wrong with it
        # During a CA rotation both CAs are in the file; of a chain the first certificate is the client's.
        found[which] = None if not ends else max(ends) if which == "authority" else ends[0]
    return found


def _why(error: OSError) -> str:
    return getattr(error, "reason", None) or error.strerror or "unreadable"


class Exchange:
    """The client's side of one SASL exchange: PLAIN (RFC 4616), SCRAM (RFC 5802) or OAUTHBEARER (RFC 7628).

    Construct it before connecting: a token may have to be fetched first, for which ``wait_seconds`` is the limit.
    ``host`` is where the token goes. Raises what fetching raises, which is no evidence about any broker.
    """

    def __init__(self, security: Security, wait_seconds: float = 0.0, host: str = "") -> None:
        self._security = security
        self._scram: ScramClient | None = None
        self._source = self._token = None
        # Each mechanism's client is imported where it is used: a command that connects without it starts sooner.
        if security.oauth is not None:
            from bellwether.adapters.kafka.tokens.token_source import source_of  # noqa: PLC0415 - see above

            if not security.oauth.allows(host):
                raise Unauthenticated(
                    f"{security.oauth.called('hosts')} does not allow {host}, so it gets no token: add the host there,"
                    " or correct the address"
                )
            self._source = source_of(security.oauth)
            self._token = self._source.token(wait_seconds)
        elif security.mechanism is not Mechanism.PLAIN:
            from kafka.net.sasl.scram import ScramClient  # noqa: PLC0415 - see above

            # kafka-python does not escape the name as RFC 5802 (5.1) asks.
            name = security.username.replace("=", "=3D").replace(",", "=2C")
            self._scram = ScramClient(name, security.password, str(security.mechanism))

    def rounds(self) -> int:
        """How many messages the client sends."""
        return 1 if self._scram is None else 2

    def message(self, number: int) -> bytes:
        """The client's message of a round (0, 1)."""
        if self._token is not None:
            return f"n,,\x01auth=Bearer {self._token.text}\x01\x01".encode()
        if self._scram is None:
            return f"\0{self._security.username}\0{self._security.password}".encode()
        return bytes(self._scram.first_message() if number == 0 else self._scram.final_message())

    def answer(self, number: int, message: bytes) -> None:
        """Take the server's message of a round; ValueError when it refuses us, or does not prove who it is."""
        if self._token is not None:
            if message:
                raise ValueError(f"refused the token of {self._security.principal} ({_refusal(message)})")
            return
        if self._scram is None:
            return
        if number == 0:
            _check_iterations(message)
        try:
            if number == 0:
                self._scram.process_server_first_message(message)
            else:
                self._scram.process_server_final_message(message)
        except (KeyError, UnicodeError, ValueError):
            raise ValueError(_NOT_SCRAM) from None

    def refused(self) -> None:
        """The broker did not take it: another token is fetched soon, as this one may be at fault."""
        if self._source is not None and self._token is not None:
            self._source.refuse(self._token)

    def remedy(self) -> str:
        """What to check after a refusal."""
        if self._security.oauth is not None:
            return self._security.oauth.remedy
        named = dict(self._security.names)
        return f"check {named.get('username', 'username')}, {named.get('password', 'password')} and mechanism"


def _check_iterations(message: bytes) -> None:
    """Raises before anything is hashed, so the server gets nothing that was made of the password."""
    least, most = _ITERATIONS
    for asked in [part[2:] for part in message.split(b",") if part.startswith(b"i=")]:
        if not (asked.isdigit() and len(asked) < 10):
            raise ValueError(_NOT_SCRAM)
        if not least <= int(asked) <= most:
            raise ValueError(
                f"asks for {int(asked):,} SCRAM iterations, not {least:,} to {most:,}: set this user's password again"
                f" with iterations={least} (kafka-configs.sh --alter --add-config)"
            )


def _refusal(message: bytes) -> str:
    """The status in the broker's answer (RFC 7628, 3.2.2)."""
    try:
        status = json.loads(message)["status"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return "no reason given"
    return status if isinstance(status, str) and status in _STATUSES else "no reason given"
