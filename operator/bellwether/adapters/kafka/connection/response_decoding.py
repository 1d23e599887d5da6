"""Decode Kafka responses in linear time and bounded memory, whatever the peer sends.

kafka-python's decoder is linear in the frame with two exceptions, both quadratic: a length of more than five bytes is
read into an ever longer integer, and each structure with a tagged field (KIP-482) copies the rest of the frame. Here
the first is refused before decoding and the second is counted. Called by ``broker_connection``.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from kafka.protocol.metadata import ApiVersionsResponse

SMALL_LIMIT = 8 << 20
"""Bytes of an ordinary response: 10,000 partitions with names of 249 characters take 3 MB."""

LARGE_LIMIT = 24 << 20
"""Bytes of a response about the whole cluster, unless an administrator allows more (``--metadata-limit``): metadata of
200,000 partitions takes 8.5 MB, and 22 MB if each of them is a topic of its own. Decoding the worst content takes about
0.7 s and 19 MB of memory for each MB."""

LARGEST_LIMIT = 192 << 20
"""The most that can be allowed. What claims to be longer is no frame: these are the first bytes of TLS or HTTP. Two
answers of that size are received, or given up, before a reconcile counts as stuck (``Limits.longest_read_seconds``)."""

MOST_BROKERS = 2000
"""Brokers of one cluster. Twice the largest cluster that Bellwether is measured with; each costs an object of ours."""


class TooMany(ValueError):
    """A readable answer with more than is held in memory; the message has the figures and the remedy."""


_COPIED_LIMIT = 4 << 30
# The bytes of a length but the last have the highest bit set. Names, ids and numbers have far shorter runs of them.
_HIGHEST_BITS = bytes(0xFF if byte & 0x80 else 0 for byte in range(256))
_ENDLESS_LENGTH = b"\xff" * 1024


class _Frame(bytes):
    """Counts the bytes that are copied by slices to the end of the frame."""

    copied = 0

    def __getitem__(self, key: Any) -> Any:
        if type(key) is slice and key.stop is None:
            self.copied += len(self) - key.start
            if self.copied > _COPIED_LIMIT:
                raise ValueError("too many structures with tagged fields")
        return bytes.__getitem__(self, key)


def decode(response: Any, version: int, frame: bytes | bytearray) -> Any:
    """The body of a response's frame, which begins with its header. Raises as decoding does, ValueError if hostile."""
    # Not by a regular expression, which would start again at each byte of a run that is too short.
    if _ENDLESS_LENGTH in frame.translate(_HIGHEST_BITS):
        raise ValueError("a length of more than 1,024 bytes")
    header = io.BytesIO(frame)
    response.parse_header(header, version=version)
    start = header.tell()
    if response is ApiVersionsResponse and frame[start : start + 2] != bytes(2):
        version = 0  # an error, whose body every client can read (KIP-511)
    flexible = response.flexible_version_q(version)
    # ``response.decode`` reads from a memoryview, in which nothing can be counted.
    read = response._struct.compiled_decode_from(version, compact=flexible, tagged=flexible, data_class=response)
    answer = read(_Frame(frame), start)[0]
    _refuse_null_lists(answer, response._struct.fields.values(), version)
    return answer


def _refuse_null_lists(item: Any, fields: Iterable[Any], version: int) -> None:
    """Raises ValueError for a list that is null where the protocol has none: it would be gone through as a list."""
    for field in fields:
        if not field.is_array() or field.tag is not None or not field.for_version_q(version):
            continue
        found = getattr(item, field.name)
        if found is None and not field.nullable_for_version_q(version):
            raise ValueError(f"{field.name} is null")
        inner = [one for one in (field.fields or {}).values() if one.is_array()]
        for one in (found or ()) if inner else ():
            _refuse_null_lists(one, inner, version)
