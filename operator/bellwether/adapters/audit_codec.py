"""Encode and decode audit entries as JSON values, many of them as compressed bytes.

Called by ``objects.audit_log`` (to keep them), the log, and ``bellwether history``. A field that a newer version wrote
is skipped: an audit log must stay readable.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from bellwether.adapters.json_codec import JsonCodec
from bellwether.core.reporting.audit import ORDERS_KEPT, AuditEntry
from bellwether.core.stored_documents import InvalidDocument
from bellwether.ports.errors import Terminal

UNPACKED_LIMIT = 16 << 20
"""Bytes of a segment: 100 entries, each with the most changes, evidence and text that an entry can have."""

PACKED_LIMIT = 900_000
"""Bytes of a packed segment: a ConfigMap takes 1 MiB."""

_WORDS = {"Demoted": True, "Promoted": False}

_ENTRIES: JsonCodec[tuple[AuditEntry, ...]] = JsonCodec(
    tuple[AuditEntry, ...],
    names={"changes": "brokers", "more_changes": "moreBrokers", "plan": "loadPlan", "demoted": "became"},
    fields={
        "demoted": Annotated[
            bool, BeforeValidator(_WORDS.get), PlainSerializer(lambda demoted: "Demoted" if demoted else "Promoted")
        ]
    },
    omit=(
        *("occasion", "changes", "more_changes", "evidence", "moves", "plan", "quarantines", "outcome"),
        *("times", "last", "orders", "settled"),
    ),
    unknown="ignore",
)


def to_json(entry: AuditEntry) -> dict[str, Any]:
    """One entry without its orders, which are many; what is empty is left out."""
    row: dict[str, Any] = _ENTRIES.to_json((replace(entry, orders=()),))[0]
    return row


def pack(entries: Iterable[AuditEntry]) -> bytes:
    """Entries as compressed bytes, in the order given.

    Within the limits: with fewer orders of the older ones, and without the oldest where that is not enough.
    """
    kept, most = list(entries), 2 * ORDERS_KEPT
    while True:
        left = most
        for place in reversed(range(len(kept))):
            if len(kept[place].orders) > left:
                kept[place] = replace(kept[place], orders=kept[place].orders[:left])
            left -= len(kept[place].orders)
        encoded = _ENTRIES.encode(tuple(kept))
        packed = zlib.compress(encoded, 6)
        if len(packed) <= PACKED_LIMIT and len(encoded) <= UNPACKED_LIMIT:
            return packed
        if not most:
            del kept[: len(kept) // 2 or 1]
        most //= 2


def unpack(data: bytes, where: str) -> list[AuditEntry]:
    """The inverse of ``pack``. Terminal when the bytes are damaged; ``where`` names the object."""
    try:
        return list(_ENTRIES.unpack(data, UNPACKED_LIMIT))
    except InvalidDocument as error:
        raise Terminal(f"{where}: this part of the audit trail is damaged: {error}") from error
