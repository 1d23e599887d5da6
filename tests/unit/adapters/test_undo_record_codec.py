"""An undo record survives being written down, whatever is in it; what cannot be read is refused in words."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.adapters import undo_record_codec
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.restoration_waves import RestorationTrigger, ReturningBroker
from bellwether.core.model.undo_record import (
    FORMAT_VERSION,
    ApplicationEnd,
    Cause,
    DemotedBroker,
    EntryState,
    PlanApplication,
    SkippedPartition,
    UndoEntry,
    UndoRecord,
)
from bellwether.ports.errors import Terminal

ORDERS = st.lists(st.integers(0, 2**31 - 1), max_size=6).map(tuple)
TIMES = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=2))]))
ENTRIES = st.builds(
    UndoEntry,
    topic=st.text(max_size=20),
    baseline=ORDERS,
    written=ORDERS,
    earlier=st.lists(ORDERS, max_size=4).map(tuple),
    state=st.sampled_from(EntryState),
    finished_at=st.none() | TIMES,
    contests=st.integers(0, 100),
    contested_at=st.none() | TIMES,
)
KEYS = st.builds(PartitionKey, st.text(max_size=22), st.integers(0, 10_000))
DEMOTED = st.builds(
    DemotedBroker,
    broker=st.integers(0, 2**31 - 1),
    cause=st.sampled_from(Cause),
    reason=st.text(max_size=10),
    message=st.text(max_size=40),
    since=TIMES,
)
APPLICATIONS = st.builds(
    PlanApplication,
    digest=st.text(alphabet="0123456789abcdef", min_size=16, max_size=16),
    moves=st.integers(0, 10**7),
    since=TIMES,
    waved_at=TIMES,
    taken_up=st.integers(0, 10**7),
    left=st.dictionaries(st.text(max_size=20), st.integers(0, 10**7), max_size=4),
    left_load=st.integers(0, 2**63),
    sample=st.lists(
        st.builds(SkippedPartition, st.text(max_size=20), st.integers(0, 99), st.text(max_size=20)), max_size=3
    ).map(tuple),
    ended=st.none() | st.sampled_from(ApplicationEnd),
    message=st.text(max_size=40),
)
RETURNING = st.builds(
    ReturningBroker,
    broker=st.integers(0, 2**31 - 1),
    share=st.integers(0, 100),
    since=TIMES,
    waved_at=TIMES,
    trigger=st.sampled_from(RestorationTrigger),
)
RECORDS = st.builds(
    UndoRecord,
    cluster_id=st.text(max_size=22),
    epoch=st.integers(0, 10**9),
    demoted=st.lists(DEMOTED, max_size=4).map(lambda found: {d.broker: d for d in found}),
    entries=st.dictionaries(KEYS, ENTRIES, max_size=8),
    application=st.none() | APPLICATIONS,
    returning=st.lists(RETURNING, max_size=3).map(lambda found: {r.broker: r for r in found}),
)


@given(RECORDS)
def test_an_exported_record_reads_back_as_it_was(record: UndoRecord) -> None:
    assert undo_record_codec.import_record(undo_record_codec.export_record(record), "test") == record


def test_a_drain_is_an_override_to_versions_before_it():
    one = DemotedBroker(1, Cause.MAINTENANCE, "InMaintenance", "new disk", datetime(2026, 1, 1, tzinfo=UTC))
    row = json.loads(undo_record_codec.pack_demoted({1: one}))[0]
    assert row["cause"] == "Override"
    del row["purpose"]  # they pass it over
    assert undo_record_codec.unpack_demoted(json.dumps([row]), "test")[1].cause is Cause.OVERRIDE


@given(RECORDS)
def test_packed_parts_read_back_as_they_were(record: UndoRecord) -> None:
    packed = undo_record_codec.pack_entries(record.entries.items())
    assert undo_record_codec.unpack_entries(packed, "test") == record.entries
    assert undo_record_codec.unpack_demoted(undo_record_codec.pack_demoted(record.demoted), "test") == record.demoted
    assert (
        undo_record_codec.unpack_returning(undo_record_codec.pack_returning(record.returning), "test")
        == record.returning
    )


@given(APPLICATIONS)
def test_how_far_a_plan_has_come_reads_back_as_it_was(application: PlanApplication) -> None:
    assert undo_record_codec.unpack_application(undo_record_codec.pack_application(application), "test") == application


@pytest.mark.parametrize("damage", ["", "{}", "[]", "null", '{"digest": "x"}'])
def test_a_damaged_word_on_how_far_a_plan_has_come_is_named(damage: str) -> None:
    with pytest.raises(Terminal, match="configmap a/b: the undo record is damaged"):
        undo_record_codec.unpack_application(damage, "configmap a/b")


@pytest.mark.parametrize("damage", ["", "{}x", "[1]", "null", '[{"broker": 1}]'])
def test_a_damaged_word_on_who_is_on_the_way_back_is_named(damage: str) -> None:
    with pytest.raises(Terminal, match="configmap a/b: the undo record is damaged"):
        undo_record_codec.unpack_returning(damage, "configmap a/b")


@pytest.mark.parametrize("share", [-1, 101, "10", True])
def test_a_share_that_is_none_is_named(share: object) -> None:
    wave = ReturningBroker(1, 10, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))
    document = json.loads(undo_record_codec.export_record(UndoRecord("c", returning={1: wave})))
    document["returning"][0]["share"] = share
    with pytest.raises(Terminal, match="not a share from 0 to 100 percent"):
        undo_record_codec.import_record(json.dumps(document).encode(), "old.json")


def test_what_versions_before_waves_wrote_and_read_is_the_same_document() -> None:
    wave = ReturningBroker(1, 10, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))
    before = json.loads(undo_record_codec.export_record(UndoRecord("c", 3)))
    now = json.loads(undo_record_codec.export_record(UndoRecord("c", 3, returning={1: wave})))
    assert "returning" not in before
    assert now.pop("returning")[0]["broker"] == 1
    assert now == before


def test_a_record_without_a_plan_is_the_document_that_versions_before_plans_wrote() -> None:
    assert "rebalance" not in json.loads(undo_record_codec.export_record(UndoRecord("c")))


@given(st.dictionaries(KEYS, ENTRIES, max_size=8), st.randoms())
def test_the_same_entries_give_the_same_bytes_in_any_order(entries: dict[PartitionKey, UndoEntry], dice: Any) -> None:
    shuffled = list(entries.items())
    dice.shuffle(shuffled)
    assert undo_record_codec.pack_entries(shuffled) == undo_record_codec.pack_entries(entries.items())


def test_a_newer_format_is_refused_and_the_remedy_named() -> None:
    document = json.loads(undo_record_codec.export_record(UndoRecord("c")))
    document["format"] = FORMAT_VERSION + 1
    with pytest.raises(Terminal, match=r"old\.json: the undo record has format version \d+.*run the newer version"):
        undo_record_codec.import_record(json.dumps(document).encode(), "old.json")


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b"nonsense", b'{"format": "x"}', b'{"format": 1}', b"\xff"])
def test_a_damaged_document_is_named(damage: bytes) -> None:
    with pytest.raises(Terminal, match=r"^old\.json: "):
        undo_record_codec.import_record(damage, "old.json")


@given(st.binary(max_size=50))
def test_damaged_entries_are_named(damage: bytes) -> None:
    with pytest.raises(Terminal, match="configmap a/b: the undo record is damaged"):
        undo_record_codec.unpack_entries(damage, "configmap a/b")


def test_a_time_without_a_zone_is_not_recorded() -> None:
    record = UndoRecord(
        "c",
        entries={
            PartitionKey("t", 0): UndoEntry("t", (1,), (1,), finished_at=datetime(2026, 1, 1)),  # noqa: DTZ001
        },
    )
    with pytest.raises(ValueError, match="without time zone"):
        undo_record_codec.export_record(record)
