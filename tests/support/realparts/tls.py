"""A certificate authority for one test cluster. In: names. Out: PEM files: the CA's, a server's, a client's.

Called by the Kafka starter (the secure listener) and by the API server's (its own certificate, one for each user).
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = datetime.timedelta(days=30)
_DAY = datetime.timedelta(days=1)
_SIGNS = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)
SIGNING_KEY = "service-accounts-key.pem"


class Authority:
    """Signs certificates that are valid for 30 days on 127.0.0.1 and localhost, and writes them into one folder."""

    def __init__(self, folder: Path, *, formal: bool = True) -> None:
        """Make its own certificate; an informal one does not say what its key is for, as many clusters' do not."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "real parts' own CA")])
        unsigned = (
            _unsigned(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
        )
        if formal:
            unsigned = unsigned.add_extension(_SIGNS, critical=True)  # Python 3.13 insists, as RFC 5280 does
        self.path = folder / "ca.pem"
        self.path.write_bytes(unsigned.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(
        self, name: str, *, organizations: Sequence[str] = (), hosts: Sequence[str] = (), expired: bool = False
    ) -> tuple[Path, Path]:
        """A certificate and its private key, as two PEM files; Kubernetes reads organizations as groups.

        It is good for 127.0.0.1, localhost and ``hosts``, names or addresses. An ``expired`` one was good until
        yesterday, and has files of its own.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.COMMON_NAME, name),
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations),
            ]
        )
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        names = [_subject(host) for host in ("127.0.0.1", "localhost", *hosts)]
        certificate = (
            _unsigned(subject, self._name, key.public_key(), ends_in=-_DAY if expired else _LIFE)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        stem = name.replace(":", "-").replace("/", "-") + ("-expired" if expired else "")
        certificate_path, key_path = self._folder / f"{stem}.pem", self._folder / f"{stem}-key.pem"
        certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(key_path, key)
        return certificate_path, key_path

    def key_store(self, name: str, *, expired: bool = False) -> Path:
        """Key and certificate in one PEM file, as Kafka reads it."""
        certificate, key = self.issue(name, expired=expired)
        store = self._folder / f"{name}{'-expired' if expired else ''}-store.pem"
        _private(store, key.read_bytes() + certificate.read_bytes())
        return store


def signing_keys(folder: Path) -> tuple[Path, Path]:
    """A private and a public key to sign and to check service accounts' tokens with."""
    folder.mkdir(parents=True, exist_ok=True)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private, public = folder / SIGNING_KEY, folder / "service-accounts.pem"
    _write_key(private, key)
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, form))
    return private, public


def _subject(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, ends_in: datetime.timedelta = _LIFE
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, now + ends_in) - datetime.timedelta(minutes=5))
        .not_valid_after(now + ends_in)
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    form = serialization.PrivateFormat.PKCS8
    _private(path, key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))


def _private(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
