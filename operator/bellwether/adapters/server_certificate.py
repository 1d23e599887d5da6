"""A server's certificate and key from files, read again when they change. Called by ``webhook_server``."""

from __future__ import annotations

import ssl
from pathlib import Path

from bellwether.ports.errors import Terminal

Stamp = tuple[int, int, int]


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
