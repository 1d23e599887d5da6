"""What PEM text is taken for, and what is said of what it is not."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs12

from bellwether.adapters import pem
from realparts.tls import Authority


def certificate(starts: datetime, ends: datetime) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x" * 60)])
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    built = built.serial_number(x509.random_serial_number()).not_valid_before(starts).not_valid_after(ends)
    return built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def private(form: serialization.PrivateFormat, *, locked: bool = False, key: object = None) -> bytes:
    key = key or ec.generate_private_key(ec.SECP256R1())
    lock = serialization.BestAvailableEncryption(b"passphrase") if locked else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, lock)  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize(
    ("starts", "ends"),
    [
        pytest.param(datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC), id="both short"),
        pytest.param(datetime(1999, 1, 1, tzinfo=UTC), datetime(2049, 12, 31, tzinfo=UTC), id="the last short one"),
        pytest.param(datetime(2020, 1, 1, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC), id="the first long one"),
    ],
)
def test_a_certificate_tells_from_when_until_when_it_is_valid(starts: datetime, ends: datetime):
    assert pem.validities(certificate(starts, ends)) == (pem.Validity(starts, ends),)


def test_every_certificate_of_bundle_counts_without_text_between(tmp_path: Path):
    one, other = Authority(tmp_path / "a").path.read_bytes(), Authority(tmp_path / "b").path.read_bytes()
    assert len(pem.validities(b"# ours\r\n" + one + b"\n\n# theirs\n" + other)) == 2


def test_an_expired_certificate_is_one_whose_end_lies_behind_us(tmp_path: Path):
    made, _ = Authority(tmp_path).issue("client", expired=True)
    (found,) = pem.validities(made.read_bytes())
    assert timedelta(hours=23) < datetime.now(UTC) - found.ends < timedelta(hours=25)  # noqa: TID251 - made just now


def test_the_authorities_of_the_system_can_be_read():
    bundle = ssl.get_default_verify_paths().cafile
    if bundle is None or not Path(bundle).exists():
        pytest.skip("this machine has no bundle of authorities")
    assert len(pem.validities(Path(bundle).read_bytes())) > 10


KEY_STORE = pkcs12.serialize_key_and_certificates(
    b"x", rsa.generate_private_key(65537, 2048), None, None, serialization.NoEncryption()
)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"", "it is empty", id="nothing"),
        pytest.param(b" \n", "it is empty", id="blanks"),
        pytest.param(b"hunter2", "it is not PEM", id="something else"),
        pytest.param(KEY_STORE, "DER or PKCS#12", id="PKCS#12"),
        pytest.param(b"\xfe\xed\xfe\xed\0\0\0\2", "Java key store", id="JKS"),
        pytest.param(private(serialization.PrivateFormat.PKCS8), "it holds a private key", id="a key"),
        pytest.param(b"-----BEGIN CERTIFICATE-----\nMIIB", "a block has no proper end", id="cut off"),
        pytest.param(
            b"-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----", "is damaged", id="not base64 at all"
        ),
        pytest.param(
            b"-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----", "is damaged", id="no DER inside"
        ),
    ],
)
def test_non_certificate_is_described_and_not_shown(data: bytes, said: str):
    with pytest.raises(ValueError, match=said) as caught:
        pem.validities(data)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_every_line_is_read_once_despite_unfinished_blocks():
    visited = 0

    def lines() -> Iterator[bytes]:
        nonlocal visited
        for _ in range(2000):
            visited += 1
            yield b"-----BEGIN A-----"

    assert list(pem.blocks(lines())) == []
    assert visited == 2000


def test_block_interrupted_by_another_is_cut_off():
    whole = certificate(datetime(2020, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC))
    assert len(pem.validities(b"-----BEGIN CERTIFICATE-----\nMIIB\n" + whole)) == 1


@pytest.mark.parametrize("read", [pem.validities, pem.check_key])
def test_more_than_any_bundle_is_refused_before_reading(read: Callable[[bytes], object]):
    hostile = b"-----BEGIN A-----\n" * (pem.SIZE_LIMIT // 18 + 1)
    with pytest.raises(ValueError, match=f"has {len(hostile)} bytes.* at most {pem.SIZE_LIMIT}"):
        read(hostile)


def test_a_certificate_that_lost_its_end_is_damaged():
    whole = certificate(datetime(2020, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)).splitlines()
    short = b"\n".join([*whole[:3], whole[-1]])
    with pytest.raises(ValueError, match="is damaged"):
        pem.validities(short)


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(private(serialization.PrivateFormat.PKCS8), id="PKCS#8"),
        pytest.param(private(serialization.PrivateFormat.TraditionalOpenSSL), id="EC"),
        pytest.param(
            private(serialization.PrivateFormat.TraditionalOpenSSL, key=rsa.generate_private_key(65537, 2048)), id="RSA"
        ),
        pytest.param(
            private(serialization.PrivateFormat.PKCS8, key=ed25519.Ed25519PrivateKey.generate()), id="Ed25519"
        ),
    ],
)
def test_a_private_key_of_any_common_form_will_do(key: bytes):
    pem.check_key(key)


@pytest.mark.parametrize(
    "form", [serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.TraditionalOpenSSL], ids=["new", "old"]
)
def test_a_key_with_a_passphrase_is_refused_with_the_remedy(form: serialization.PrivateFormat):
    with pytest.raises(ValueError, match="openssl pkey -in"):
        pem.check_key(private(form, locked=True))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"", "it is empty", id="nothing"),
        pytest.param(KEY_STORE, "DER or PKCS#12", id="PKCS#12"),
        pytest.param(
            certificate(datetime(2020, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)),
            "it holds a certificate",
            id="a certificate",
        ),
    ],
)
def test_what_is_no_private_key_is_called_what_it_is(data: bytes, said: str):
    with pytest.raises(ValueError, match=said):
        pem.check_key(data)
