"""What PEM text holds: certificates and when they end, and whether a private key can be used. Nothing is trusted here.

In: bytes of a Secret or a file. Out: facts, or ValueError that names what it is instead and the remedy, never what
is in it. Called before a TLS library is given the same bytes, whose own messages name neither the field nor the remedy.
The bytes may come from a hostile author: at most ``SIZE_LIMIT`` of them are read, each line once.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

SIZE_LIMIT = 512 * 1024
"""Bytes. The bundle of a whole operating system, about 150 authorities, has 220 KiB; a Secret may have 1 MiB."""

_BOUNDARY = re.compile(rb"-----(BEGIN|END) ([A-Z0-9 ]{1,64})-----")
_KEYS = ("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY")
_JAVA_KEY_STORES = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_SEQUENCE, _EXPLICIT_VERSION, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0xA0, 0x17, 0x18


@dataclass(frozen=True, slots=True)
class Validity:
    """From when until when a certificate is valid (RFC 5280, 4.1.2.5)."""

    starts: datetime
    ends: datetime


def validities(data: bytes) -> tuple[Validity, ...]:
    """Of every certificate in it, in order. ValueError when there is none, or one cannot be read."""
    found = [body for kind, body in _blocks_of(data) if kind in ("CERTIFICATE", "TRUSTED CERTIFICATE")]
    if not found:
        raise ValueError(f"holds no PEM certificate{_instead(data)}")
    try:
        return tuple(_validity(base64.b64decode(body)) for body in found)
    except (binascii.Error, IndexError, ValueError):
        raise ValueError("holds a certificate that is damaged: copy it again completely") from None


def check_key(data: bytes) -> None:
    """Refuse what is no usable private key. ValueError names the remedy."""
    kinds = [kind for kind, _ in _blocks_of(data)]
    if "ENCRYPTED PRIVATE KEY" in kinds or b"Proc-Type: 4,ENCRYPTED" in data:
        raise ValueError(
            "is a private key with a passphrase, which is not supported: store it without one "
            "(openssl pkey -in locked.key -out user.key); the Secret keeps it safe"
        )
    if not any(kind in _KEYS for kind in kinds):
        raise ValueError(f"holds no PEM private key{_instead(data)}")


def blocks(lines: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """Kind and body of each block (RFC 7468) in one pass; one in which another begins was cut off and is left out."""
    kind = b""
    parts: list[bytes] = []
    for line in lines:
        boundary = _BOUNDARY.fullmatch(line.strip())
        if boundary is None:
            parts.append(line)
            continue
        if boundary[1] == b"END" and boundary[2] == kind:
            yield kind.decode(), b"\n".join(parts)
        kind = boundary[2] if boundary[1] == b"BEGIN" else b""
        parts = []


def _blocks_of(data: bytes) -> Iterator[tuple[str, bytes]]:
    if len(data) > SIZE_LIMIT:
        raise ValueError(f"has {len(data)} bytes; PEM of at most {SIZE_LIMIT} is read: keep only what is needed in it")
    return blocks(data.splitlines())


def _instead(data: bytes) -> str:
    """What it seems to be, as the end of a sentence."""
    if not data.strip():
        return ": it is empty"
    if data.startswith(_JAVA_KEY_STORES):
        return (
            ": it is a Java key store; PEM is required (keytool -exportcert -rfc, or -importkeystore to PKCS#12 first)"
        )
    if data.startswith(b"\x30"):
        return (
            ": it is DER or PKCS#12; PEM is required (openssl pkcs12 -in FILE -nodes; Strimzi has it in .crt and .key)"
        )
    kinds = [kind for kind, _ in _blocks_of(data)]
    if kinds:
        return f": it holds a {kinds[0].lower()}"
    if b"-----BEGIN" in data:
        return ": a block has no proper end, so it was cut off or changed"
    return ": it is not PEM"


def _validity(certificate: bytes) -> Validity:
    """Certificate, TBSCertificate; in that: version (optional), serial number, algorithm, issuer, validity."""
    inner = _children(_children(certificate, _SEQUENCE)[0][1])
    fields = [content for tag, content in inner if tag != _EXPLICIT_VERSION]
    starts, ends = (_moment(tag, content) for tag, content in _children(fields[3])[:2])
    return Validity(starts, ends)


def _children(data: bytes, only: int | None = None) -> list[tuple[int, bytes]]:
    """Tag and content of each element of some DER, or the elements within the one of tag ``only`` that it is."""
    found = []
    at = 0
    while at < len(data):
        tag, size, at = data[at], data[at + 1], at + 2
        if size & 0x80:
            count = size & 0x7F
            size, at = int.from_bytes(data[at : at + count], "big"), at + count
        if at + size > len(data):
            raise ValueError("an element is longer than what holds it")
        found.append((tag, data[at : at + size]))
        at += size
    if only is None:
        return found
    if len(found) != 1 or found[0][0] != only:
        raise ValueError("not the element that was expected")
    return _children(found[0][1])


def _moment(tag: int, content: bytes) -> datetime:
    text = content.decode("ascii")
    if tag == _UTC_TIME:
        # Years from 50 on are of the last century (RFC 5280, 4.1.2.5.1).
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    elif tag != _GENERALIZED_TIME:
        raise ValueError("not a time")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
