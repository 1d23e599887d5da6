"""Webhook authentication: bearer tokens and a certificate from files, reloaded when they change.

In: paths. Out: yes or no to an Authorization header; a TLS context. No token ever leaves this module (invariant
11). Called by ``webhook_server``.
"""

from __future__ import annotations

import hmac
import ssl
from pathlib import Path

from bellwether.kafka_connection import Hidden
from bellwether.ports.errors import Terminal

SHORTEST_TOKEN = 16
_FILE_LIMIT = 64 * 1024
_MOST_TOKENS = 8

Stamp = tuple[int, int, int]


class TokenFile:
    """Bearer tokens, one a line, so that a new one can be let in before the old one is taken away."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: Stamp | None = None
        self._tokens: tuple[Hidden, ...] = ()

    def load(self) -> None:
        """Read the file if it has changed. Terminal when it holds no usable token; then every request is rejected."""
        try:
            stamp = _stamp(self._path)
            if stamp == self._stamp:
                return
            content = self._path.read_bytes()[:_FILE_LIMIT]
            lines = [line.strip() for line in content.decode("ascii").splitlines()]
        except OSError as error:
            self._stamp, self._tokens = None, ()
            raise Terminal(f"--token-file {self._path}: {error.strerror}: name a file that holds the token") from None
        except UnicodeDecodeError:
            lines = []
        found = tuple(Hidden(line) for line in lines if line)
        if not found or len(found) > _MOST_TOKENS or any(len(token) < SHORTEST_TOKEN for token in found):
            self._stamp, self._tokens = None, ()
            raise Terminal(
                f"--token-file {self._path}: needs a token of at least {SHORTEST_TOKEN} ASCII characters on each line,"
                f" {_MOST_TOKENS} lines at most: make one with 'openssl rand -hex 32'"
            )
        self._stamp, self._tokens = stamp, found

    def admits(self, authorization: str) -> bool:
        """Whether an Authorization header carries one of the tokens. Terminal while there is none."""
        self.load()
        scheme, _, given = authorization.partition(" ")
        offered = given.strip().encode("utf-8", "surrogateescape")
        # Every token is compared in constant time.
        equal = [hmac.compare_digest(offered, token.encode()) for token in self._tokens]
        return scheme.lower() == "bearer" and any(equal)


class ServerFiles:
    """A server's certificate and key, PEM."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self._stamp: tuple[Stamp, Stamp] | None = None
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """The TLS context of the files as they are now. Terminal at first when they cannot be used.

        Files that cannot be used later, as while they are being exchanged, change nothing.
        """
        try:
            stamp = (_stamp(self._certificate), _stamp(self._key))
            if self._context is None or stamp != self._stamp:
                made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                made.load_cert_chain(self._certificate, self._key)
                self._context, self._stamp = made, stamp
        except (OSError, ssl.SSLError) as error:
            if self._context is None:
                why = error.strerror or type(error).__name__
                raise Terminal(
                    f"--tls-cert {self._certificate}, --tls-key {self._key}: {why}: name a PEM certificate and its key"
                ) from None
        return self._context


def _stamp(path: Path) -> Stamp:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size
