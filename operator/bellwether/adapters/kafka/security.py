"""Turns a security configuration into a TLS context and into SASL tokens. Used by ``wire`` and ``dialogue``.

The configuration itself is ``bellwether.connections``, which imports no client, so that everybody may hold it.
"""

from __future__ import annotations

import ssl
from functools import lru_cache
from pathlib import Path

from kafka.net.sasl.scram import ScramClient

from bellwether.connections import Mechanism, Security
from bellwether.ports import Terminal


def tls_context(security: Security) -> ssl.SSLContext:
    """A client context, to be shared. Rotated certificates count: it is made anew when one of its files has changed.

    Terminal names a bad file.
    """
    default = ssl.get_default_verify_paths()
    files = (security.ca_file or default.cafile or "", security.cert_file, security.key_file)
    return _context(security, tuple(_version(file) for file in files))


def _version(file: str) -> tuple[int, ...] | None:
    """What changes when a file does; ``None`` when there is none."""
    try:
        found = Path(file).stat() if file else None
    except OSError:
        return None
    return None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size)


@lru_cache(16)
def _context(security: Security, _versions: tuple[tuple[int, ...] | None, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = security.verify_hostname
    try:
        if security.ca_file:
            context.load_verify_locations(cafile=security.ca_file)
        else:
            context.load_default_certs()
    except OSError as error:
        raise Terminal(f"ca_file {security.ca_file} is not a readable PEM file: {_why(error)}") from error
    if security.cert_file:
        key = security.key_file or security.cert_file
        try:
            # Without a callback OpenSSL would ask the terminal for the passphrase, and wait.
            context.load_cert_chain(security.cert_file, key, password=lambda: "")
        except OSError as error:
            raise Terminal(
                f"cert_file {security.cert_file} with key_file {key} cannot be used: {_why(error)}. They must be "
                "PEM, belong together, and the key must have no passphrase"
            ) from error
    return context


def _why(error: OSError) -> str:
    return getattr(error, "reason", None) or error.strerror or "unreadable"


class Tokens:
    """The client's side of one SASL exchange: PLAIN (RFC 4616) or SCRAM (RFC 5802)."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._scram: ScramClient | None = None
        if security.mechanism is not Mechanism.PLAIN:
            # kafka-python does not escape the name as RFC 5802 (5.1) asks.
            name = security.username.replace("=", "=3D").replace(",", "=2C")
            self._scram = ScramClient(name, security.password, str(security.mechanism))

    def rounds(self) -> int:
        """How many tokens the client sends."""
        return 1 if self._scram is None else 2

    def token(self, number: int) -> bytes:
        """The client's token of a round (0, 1)."""
        if self._scram is None:
            return f"\0{self._security.username}\0{self._security.password}".encode()
        return bytes(self._scram.first_message() if number == 0 else self._scram.final_message())

    def answer(self, number: int, token: bytes) -> None:
        """Take the server's token of a round; ValueError when it does not prove that it knows the password."""
        if self._scram is None:
            return
        try:
            if number == 0:
                self._scram.process_server_first_message(token)
            else:
                self._scram.process_server_final_message(token)
        except (KeyError, UnicodeError, ValueError):
            raise ValueError("the server's SCRAM answer is not valid") from None
