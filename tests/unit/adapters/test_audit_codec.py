"""Entries of the audit trail survive being written down, and what a newer version added is passed over."""

from __future__ import annotations

import pytest

from bellwether.adapters import audit_codec
from bellwether.core.reporting.audit import AuditEntry, AuditOutcome, BrokerChange, MoveSummary, PlanStep
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
    outcome=AuditOutcome(40, 19, 1, {"NotApplied": 2}, "NoAnswer: none"),
    times=4,
    last=after(90),
)
BARE = AuditEntry(START, "c", 1)


@pytest.mark.parametrize("entry", [WHOLE, BARE], ids=["whole", "bare"])
def test_what_is_written_is_read_back(entry: AuditEntry) -> None:
    assert audit_codec.from_json(audit_codec.to_json(entry)) == entry
    assert audit_codec.unpack(audit_codec.pack([entry, BARE]), "here") == [entry, BARE]


def test_what_is_empty_is_left_out() -> None:
    assert set(audit_codec.to_json(BARE)) == {"at", "clusterId", "epoch"}


def test_what_a_newer_version_added_is_passed_over() -> None:
    assert audit_codec.from_json({**audit_codec.to_json(BARE), "weather": "fine"}) == BARE


@pytest.mark.parametrize("data", [b"", b"nonsense", audit_codec.pack([])[:-3]])
def test_damage_is_named_with_its_place(data: bytes) -> None:
    with pytest.raises(Terminal, match="configmap x: this part of the audit trail is damaged"):
        audit_codec.unpack(data, "configmap x")


def test_a_hundred_entries_take_little_room() -> None:
    assert len(audit_codec.pack([WHOLE] * 100)) < 20_000
