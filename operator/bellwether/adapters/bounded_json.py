"""JSON that is read from objects which others might have written: compressed or not, of bounded size and depth.

In: bytes or text. Out: the value, or one of ``DAMAGE``. A ConfigMap of 1 MiB can unpack to 1 GiB, so no more than a
limit is ever unpacked. Called by ``undo_record_codec`` and ``audit_codec``.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

UNPACKED_LIMIT = 8 << 20
"""Bytes of one compressed part. A shard of an undo record with 25,000 of 200,000 partitions and every optional field
has 5 MB. The worst content takes about 250 MB of memory while it is read."""

DAMAGE = (zlib.error, ValueError, KeyError, TypeError, AttributeError, OverflowError)
"""What reading and converting damaged content raises."""


def unpack(data: bytes, limit: int = UNPACKED_LIMIT) -> Any:
    """The value in compressed JSON. ValueError if it is incomplete or unpacks to more than ``limit`` bytes."""
    stream = zlib.decompressobj()
    text = stream.decompress(data, limit + 1)
    if len(text) > limit:
        raise ValueError(f"it unpacks to more than {limit} bytes")
    if not stream.eof:
        raise ValueError("it was cut off")
    return parse(text, limit)


def parse(text: bytes | str, limit: int = UNPACKED_LIMIT) -> Any:
    """The value in JSON. ValueError if it has more than ``limit`` bytes or is nested too deeply."""
    if len(text) > limit:
        raise ValueError(f"it has {len(text)} bytes; at most {limit} are read")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
