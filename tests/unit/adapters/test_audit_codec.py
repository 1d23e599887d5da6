"""Entries of the audit trail survive being written down, and what a newer version added is skipped."""

from __future__ import annotations

import json
import random
import zlib
from dataclasses import replace

import pytest

from bellwether.adapters import audit_codec
from bellwether.adapters.kubernetes.objects.audit_log import FULL
from bellwether.core.model.quarantine_order import QuarantineChange
from bellwether.core.reporting.audit import (
    CHANGES_SHOWN,
    EVIDENCE_SIZE,
    ORDERS_KEPT,
    TEXT_LIMIT,
    AuditEntry,
    AuditOutcome,
    BrokerChange,
    MoveSummary,
    PlanStep,
    UnansweredOrder,
)
from bellwether.ports.errors import Terminal
from testkit.values.builders import START, after

WHOLE = AuditEntry(
    at=START,
    cluster_id="c",
    epoch=7,
    occasion="the policy is being deleted",
    changes=(BrokerChange(1, True, "signals", "StorageSlow", "80 ms", ("StorageLatency b1: Failing",)),),
    more_changes=3,
    moves=MoveSummary(2, 40, 20, 1, "0123456789abcdef", {1: 20}, {2: 12, 3: 8}, ("orders-0: [1, 2] -> [2, 1]",)),
    plan=PlanStep("fedcba9876543210", "field manager kubectl", 30, 90, "Done"),
    quarantines=(QuarantineChange(1, True, "QuarantineLimit", "held for 600 s", 598.5),),
    outcome=AuditOutcome(40, 19, 1, {"NoAnswer": 2}, "NoAnswer: none"),
    times=4,
    last=after(90),
)
BARE = AuditEntry(START, "c", 1)


def rows(*found: object) -> bytes:
    return zlib.compress(json.dumps(found).encode())


@pytest.mark.parametrize("entry", [WHOLE, BARE], ids=["whole", "bare"])
def test_what_is_written_is_read_back(entry: AuditEntry) -> None:
    assert audit_codec.unpack(audit_codec.pack([entry, BARE]), "here") == [entry, BARE]


def order(number: int) -> UnansweredOrder:
    """An order of the longest topic name, which cannot be compressed."""
    name = random.Random(number).randbytes(125).hex()[:249]
    return UnansweredOrder(name[:22], name, 0, (1, 2, 3), (2, 3, 1), 1)


def test_segment_of_many_unanswered_orders_fits_into_config_map() -> None:
    orders = tuple(map(order, range(ORDERS_KEPT)))
    made = [replace(BARE, at=after(n), orders=orders) for n in range(3)]
    packed = audit_codec.pack(made)
    assert len(packed) <= audit_codec.PACKED_LIMIT < 1 << 20
    found = audit_codec.unpack(packed, "here")
    assert [entry.at for entry in found] == [entry.at for entry in made]
    assert found[-1].orders == orders[: len(found[-1].orders)]
    assert len(found[-1].orders) >= ORDERS_KEPT / 4, "the newest entry keeps its orders"


def test_oldest_entries_go_where_orders_are_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_codec, "PACKED_LIMIT", 10_000)
    words = random.Random(1)
    changes = [BrokerChange(1, True, "", "", words.randbytes(2000).hex()) for _ in range(8)]
    made = [replace(BARE, at=after(n), changes=(change,)) for n, change in enumerate(changes)]
    packed = audit_codec.pack(made)
    assert len(packed) <= audit_codec.PACKED_LIMIT
    assert audit_codec.unpack(packed, "here") == made[4:]


def test_what_is_empty_is_left_out() -> None:
    assert set(audit_codec.to_json(BARE)) == {"at", "clusterId", "epoch"}


def test_unknown_field_is_ignored() -> None:
    assert audit_codec.unpack(rows({**audit_codec.to_json(BARE), "weather": "fine"}), "here") == [BARE]


@pytest.mark.parametrize("data", [b"", b"nonsense", audit_codec.pack([])[:-3]])
def test_damage_is_named_with_its_place(data: bytes) -> None:
    with pytest.raises(Terminal, match="configmap x: this part of the audit trail is damaged"):
        audit_codec.unpack(data, "configmap x")


def test_entries_of_the_largest_size_fit_into_a_segment() -> None:
    change = BrokerChange(2**31 - 1, True, "x" * 63, "y" * 40, "z" * TEXT_LIMIT, ("e" * TEXT_LIMIT,) * EVIDENCE_SIZE)
    largest = AuditEntry(START, "c" * 22, 1, changes=(change,) * CHANGES_SHOWN)
    assert FULL * len(json.dumps(audit_codec.to_json(largest))) < audit_codec.UNPACKED_LIMIT


def segment_of(size: int) -> bytes:
    """One entry, compressed, that unpacks to that many bytes."""
    row = json.dumps([audit_codec.to_json(BARE)]).encode()
    return zlib.compress(row[:-1] + b" " * (size - len(row)) + b"]")


def test_a_segment_of_just_the_limit_is_read() -> None:
    assert audit_codec.unpack(segment_of(audit_codec.UNPACKED_LIMIT), "here") == [BARE]


def test_a_segment_one_byte_above_the_limit_is_refused() -> None:
    with pytest.raises(Terminal, match=f"unpacks to more than {audit_codec.UNPACKED_LIMIT} bytes"):
        audit_codec.unpack(segment_of(audit_codec.UNPACKED_LIMIT + 1), "here")


MOVES = {"topics": 1, "reorders": 1, "elections": 1, "restores": 1, "digest": "d", "coming": {}, "sample": []}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(zlib.compress(b"[" + b" " * audit_codec.UNPACKED_LIMIT + b"]"), id="far larger than it looks"),
        pytest.param(zlib.compress(b"[" * 100_000), id="nested without end"),
        pytest.param(rows({**audit_codec.to_json(BARE), "moves": {**MOVES, "leaving": []}}), id="a list for a mapping"),
        pytest.param(
            zlib.compress(b'[{"at": "2026-01-01T00:00:00+00:00", "clusterId": "c", "epoch": 1e999}]'), id="inf"
        ),
        pytest.param(rows({**audit_codec.to_json(BARE), "outcome": {"held": {"x": "many"}}}), id="text for a number"),
        pytest.param(rows("text"), id="no entry at all"),
    ],
)
def test_hostile_content_is_damage_like_any_other(data: bytes) -> None:
    with pytest.raises(Terminal, match="configmap x: this part of the audit trail is damaged"):
        audit_codec.unpack(data, "configmap x")


def test_a_hundred_entries_take_little_room() -> None:
    assert len(audit_codec.pack([WHOLE] * 100)) < 20_000
