"""The certificate of a listener, on real sockets: what is shown, and what shows none."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.x509 import load_pem_x509_certificate

from bellwether.adapters.kafka.brokers.broker_certificate import CertificateReader
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Protocol, Security
from realparts.tls import Authority
from waiting import limit


@contextmanager
def listener(context: ssl.SSLContext | None) -> Iterator[str]:
    """A listener that answers one connection, by TLS or by closing it at the first bytes."""

    def answer() -> None:
        plain, _ = bound.accept()
        with plain:
            if context is None:
                plain.recv(16)
                return
            try:
                context.wrap_socket(plain, server_side=True).close()
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as bound:
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"127.0.0.1:{bound.getsockname()[1]}"
        thread.join(limit(5))


def server(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@pytest.mark.parametrize("expired", [False, True])
def test_a_certificate_of_an_unknown_authority_is_read(tmp_path: Path, expired: bool) -> None:
    certificate, key = Authority(tmp_path).issue("broker", expired=expired)
    with listener(server(certificate, key)) as address:
        found = CertificateReader().ends(address, limit(5))
    assert found == load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc


def test_a_listener_gets_the_client_certificate_of_the_connection(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("broker")
    context = server(certificate, key)
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # which refuses within the handshake
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.path)
    own, own_key = map(str, authority.issue("client"))
    security = Security(
        destinations=ANYWHERE, protocol=Protocol.SSL, ca_file=str(authority.path), cert_file=own, key_file=own_key
    )
    with listener(context) as address:
        assert CertificateReader(security).ends(address, limit(5)).tzinfo is not None
    with listener(context) as address, pytest.raises(OSError, match=r"(?i)certificate|alert"):
        CertificateReader().ends(address, limit(5))


def test_a_listener_without_tls_shows_no_certificate() -> None:
    with listener(None) as address, pytest.raises(OSError, match=r"."):
        CertificateReader().ends(address, limit(5))
