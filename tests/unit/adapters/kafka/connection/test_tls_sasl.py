"""SASL tokens and TLS contexts, without a network."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate

from bellwether.adapters.kafka.connection import tls_sasl
from bellwether.adapters.kafka.connection.tls_sasl import Exchange, certificate_ends, tls_context
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Security
from bellwether.ports.errors import Terminal
from realparts.tls import Authority


def exchange(mechanism: str, username: str = "user") -> Exchange:
    return Exchange(
        Security(destinations=ANYWHERE, protocol="SASL_SSL", mechanism=mechanism, username=username, password="pencil")  # type: ignore[arg-type]
    )


def test_plain_sends_name_and_password_in_one_token() -> None:
    plain = exchange("PLAIN")
    assert plain.rounds() == 1
    assert plain.message(0) == b"\0user\0pencil"


def test_scram_escapes_what_rfc_5802_reserves_in_a_name() -> None:
    scram = exchange("SCRAM-SHA-512", username="a=b,c")
    assert scram.rounds() == 2
    assert scram.message(0).startswith(b"n,,n=a=3Db=2Cc,r=")


@pytest.mark.parametrize("answer", [b"", b"r=other,s=QSXCR+Q6sek8bf92,i=4096", b"r=x,s=!,i=many", b"\xff"])
def test_server_that_does_not_follow_scram_is_refused_without_password(answer: bytes) -> None:
    scram = exchange("SCRAM-SHA-256")
    scram.message(0)
    with pytest.raises(ValueError, match="SCRAM answer is not valid") as caught:
        scram.answer(0, answer)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("asked", ["1", "4095", "100001", "5000,i=1", "4096,i=1000000", "1,i=4096"])
def test_few_or_many_scram_iterations_are_refused_without_password(asked: str) -> None:
    scram = exchange("SCRAM-SHA-256")
    nonce = scram.message(0).rpartition(b"r=")[2]
    with pytest.raises(ValueError, match="SCRAM iterations, not 4,096 to 100,000"):
        scram.answer(0, b"r=" + nonce + b"server,s=QSXCR+Q6sek8bf92,i=" + asked.encode())


@pytest.mark.parametrize("asked", ["+5000", " 5000", "50_00", "0000005000", ""])
def test_scram_iterations_are_digits(asked: str) -> None:
    scram = exchange("SCRAM-SHA-256")
    nonce = scram.message(0).rpartition(b"r=")[2]
    with pytest.raises(ValueError, match="SCRAM answer is not valid"):
        scram.answer(0, b"r=" + nonce + b"server,s=QSXCR+Q6sek8bf92,i=" + asked.encode())


def test_server_that_cannot_prove_that_it_knows_password_is_refused() -> None:
    scram = exchange("SCRAM-SHA-256")
    nonce = scram.message(0).rpartition(b"r=")[2]
    scram.answer(0, b"r=" + nonce + b"server,s=QSXCR+Q6sek8bf92,i=4096")
    assert scram.message(1).startswith(b"c=biws,r=" + nonce + b"server,p=")
    with pytest.raises(ValueError, match="SCRAM answer is not valid"):
        scram.answer(1, b"v=AAAA")


def test_a_client_certificate_is_loaded_and_host_names_are_verified(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("client")
    files = {"ca_file": str(authority.path), "cert_file": str(certificate), "key_file": str(key)}
    context = tls_context(Security(destinations=ANYWHERE, protocol="SSL", **files))  # type: ignore[arg-type]
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1
    assert not tls_context(Security(destinations=ANYWHERE, protocol="SSL", verify_hostname=False)).check_hostname  # type: ignore[arg-type]


def test_hundred_clusters_keep_their_contexts_and_forgotten_ones_go(tmp_path: Path) -> None:
    names = ({"ca_file": str(Authority(tmp_path).path), "username": str(i), "password": "x"} for i in range(100))
    securities = [Security(destinations=ANYWHERE, protocol="SASL_SSL", mechanism="PLAIN", **name) for name in names]  # type: ignore[arg-type]
    before = [tls_context(security) for security in securities]
    assert all(tls_context(one) is context for one, context in zip(securities, before, strict=True))
    contexts = [weakref.ref(context) for context in before]
    del securities, before
    gc.collect()
    assert [context() for context in contexts] == [None] * 100


def test_key_with_passphrase_is_refused_without_prompting(tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path).issue("client")
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        load_pem_private_key(key.read_bytes(), None).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"passphrase"),
        )
    )
    security = Security(destinations=ANYWHERE, protocol="SSL", cert_file=str(certificate), key_file=str(locked))  # type: ignore[arg-type]
    with pytest.raises(Terminal, match="must have no passphrase") as caught:
        tls_context(security)
    assert str(locked) in str(caught.value)


@pytest.mark.parametrize("content", [None, "not a certificate"])
def test_an_authority_that_cannot_be_read_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(Terminal, match="not a readable PEM file") as caught:
        tls_context(Security(destinations=ANYWHERE, protocol="SSL", ca_file=str(path)))  # type: ignore[arg-type]
    assert str(path) in str(caught.value)


def test_context_is_shared_until_one_of_its_files_has_changed(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "one")
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(authority.path.read_bytes())
    security = Security(destinations=ANYWHERE, protocol="SSL", ca_file=str(trusted))  # type: ignore[arg-type]
    first = tls_context(security)
    assert tls_context(security) is first
    trusted.write_bytes(Authority(tmp_path / "two").path.read_bytes())
    rotated = tls_context(security)
    assert rotated is not first
    assert rotated.get_ca_certs() != first.get_ca_certs()
    trusted.unlink()
    with pytest.raises(Terminal, match=r"ca\.pem is not a readable PEM file"):
        tls_context(security)


def ends(path: Path) -> float:
    return load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc.timestamp()


def test_of_two_authorities_last_counts_and_of_chain_first(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own, _ = authority.issue("client")
    expired, _ = authority.issue("old", expired=True)
    for path in (authorities := tmp_path / "authorities.pem", chain := tmp_path / "chain.pem"):
        path.write_bytes(expired.read_bytes() + own.read_bytes())
    both = Security(destinations=ANYWHERE, protocol="SSL", ca_file=str(authorities), cert_file=str(chain))  # type: ignore[arg-type]
    assert certificate_ends(both) == {"authority": ends(own), "own": ends(expired)}


def test_certificates_that_are_not_there_have_no_end(tmp_path: Path) -> None:
    gone = Security(destinations=ANYWHERE, protocol="SSL", ca_file=str(tmp_path / "gone.pem"))  # type: ignore[arg-type]
    assert certificate_ends(gone) == {"authority": None, "own": None}


def test_a_refusal_that_is_nested_without_end_has_no_reason() -> None:
    assert tls_sasl._refusal(b'{"status": "invalid_token"}') == "invalid_token"
    assert tls_sasl._refusal(b"[" * 100_000) == "no reason given"
