"""Certificates that are good, and ones that have expired: for the same name, signed by the same authority."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path

from cryptography import x509

from bellwether.adapters.clocks import SystemClock
from realparts.tls import Authority


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_an_expired_certificate_differs_from_a_good_one_by_its_time_alone(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    good, expired = (certificate(authority.issue("broker-1", expired=e)[0]) for e in (False, True))
    now = SystemClock().now()
    assert good.not_valid_before_utc < now < good.not_valid_after_utc
    assert expired.not_valid_before_utc < expired.not_valid_after_utc < now
    assert good.subject == expired.subject
    assert good.issuer == expired.issuer


def test_an_expired_certificate_has_files_of_its_own(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    good = authority.key_store("broker-1")
    content = good.read_bytes()
    assert authority.key_store("broker-1", expired=True) != good
    assert good.read_bytes() == content


def test_a_certificate_is_good_for_the_names_and_addresses_that_were_asked_for(tmp_path: Path) -> None:
    path, _ = Authority(tmp_path).issue("server", hosts=["10.0.0.1", "kubernetes.default.svc"])
    names = certificate(path).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "10.0.0.1"]
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "kubernetes.default.svc"]


def test_whoever_keeps_to_the_letter_of_the_standard_takes_our_certificates(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    chain, key = authority.issue("server")
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=str(authority.path))
    server.load_cert_chain(chain, key)
    client.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    far = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (near, far, near, far):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    assert near.version() is not None
