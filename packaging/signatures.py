"""Signs files with a key on this machine: ECDSA on P-256 with SHA-256, in Base64.

In: a private key in PEM without a password. Out: ``FILE.sig``, which openssl verifies, too.
"""

from __future__ import annotations

import base64
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

METHOD = ec.ECDSA(SHA256())


def new_key(target: Path) -> None:
    """Write a new private key."""
    key = ec.generate_private_key(ec.SECP256R1())
    target.touch(mode=0o600)
    target.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def private_key(file: Path) -> ec.EllipticCurvePrivateKey:
    """The key that a file holds. Raises ValueError where it is no such key."""
    try:
        found = load_pem_private_key(file.read_bytes(), None)
    except TypeError as problem:  # it has a password
        raise ValueError(str(problem)) from problem
    if not isinstance(found, ec.EllipticCurvePrivateKey) or not isinstance(found.curve, ec.SECP256R1):
        raise ValueError(f"{file} is no key of P-256")
    return found


def sign(file: Path, private: ec.EllipticCurvePrivateKey) -> None:
    """Write the signature and the public key next to the file."""
    signature = private.sign(file.read_bytes(), METHOD)
    file.with_name(f"{file.name}.sig").write_bytes(base64.b64encode(signature))
    public = file.with_name("release.pub")
    public.write_bytes(private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def verified(file: Path, public: Path) -> bool:
    """Whether the signature next to the file is that of this key."""
    key = load_pem_public_key(public.read_bytes())
    if not isinstance(key, ec.EllipticCurvePublicKey):
        return False
    try:
        key.verify(base64.b64decode(file.with_name(f"{file.name}.sig").read_bytes()), file.read_bytes(), METHOD)
    except InvalidSignature:
        return False
    return True
