"""An undo record survives being written down, whatever is in it; what cannot be read is refused in words."""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.adapters import undo_record_codec
from bellwether.adapters.bounded_json import UNPACKED_LIMIT
from bellwether.adapters.undo_record_codec import PART_ENTRIES
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.log_dirs import DemotedLogDir, LogDir
from bellwether.core.model.restoration_waves import RestorationTrigger, ReturningBroker
from bellwether.core.model.undo_record import (
    FORMAT_VERSION,
    OUTSTANDING_LIMIT,
    ApplicationEnd,
    BrokenLink,
    Cause,
    DemotedBroker,
    EntryState,
    Link,
    PlanApplication,
    SentOrder,
    SkippedPartition,
    UndoEntry,
    UndoRecord,
)
from bellwether.ports.errors import Terminal

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORDERS = st.lists(st.integers(0, 2**31 - 1), max_size=6).map(tuple)
TIMES = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=2))]))
ENTRIES = st.builds(
    UndoEntry,
    topic=st.text(max_size=20),
    baseline=ORDERS,
    written=ORDERS,
    replaced=st.none() | ORDERS,
    outstanding=st.lists(st.builds(SentOrder, ORDERS, st.none() | st.integers(0, 2**31 - 1)), max_size=4).map(tuple),
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
    signal=st.sampled_from(["", "Prometheus", "MoonPhase"]),
    drained_since=st.none() | TIMES,
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
LOG_DIRS = st.builds(
    DemotedLogDir,
    st.builds(LogDir, st.integers(0, 2**31 - 1), st.text(max_size=20)),
    st.text(max_size=20),
    st.text(max_size=40),
    TIMES,
    st.text(max_size=20),
)
LINKS = st.builds(
    BrokenLink,
    st.builds(Link, st.integers(0, 9), st.integers(10, 2**31 - 1)),
    TIMES,
    st.integers(1, 10**6),
)
RECORDS = st.builds(
    UndoRecord,
    cluster_id=st.text(max_size=22),
    epoch=st.integers(0, 10**9),
    demoted=st.lists(DEMOTED, max_size=4).map(lambda found: {d.broker: d for d in found}),
    entries=st.dictionaries(KEYS, ENTRIES, max_size=8),
    application=st.none() | APPLICATIONS,
    returning=st.lists(RETURNING, max_size=3).map(lambda found: {r.broker: r for r in found}),
    log_dirs=st.lists(LOG_DIRS, max_size=3).map(lambda found: {one.log_dir: one for one in found}),
    links=st.lists(LINKS, max_size=3).map(lambda found: {one.link: one for one in found}),
)


@given(RECORDS)
def test_an_exported_record_reads_back_as_it_was(record: UndoRecord) -> None:
    assert undo_record_codec.import_record(undo_record_codec.export_record(record), "test") == record


@pytest.mark.parametrize(
    ("row", "replaced", "outstanding"),
    [
        pytest.param([0, "D", [1, 2, 3], [2, 3, 1], []], None, (), id="displaced, and nothing before it"),
        pytest.param([0, "D", [1, 2, 3], [2, 3, 1], [[3, 2, 1]]], None, ((3, 2, 1),), id="displaced twice"),
        pytest.param([0, "I", [1, 2, 3], [2, 3, 1], []], None, ((2, 3, 1),), id="perhaps sent"),
        pytest.param(
            [0, "R", [1, 2, 3], [1, 2, 3], [[2, 3, 1]]],
            (2, 3, 1),
            ((1, 2, 3), (2, 3, 1)),
            id="perhaps being restored",
        ),
        pytest.param(
            [0, "T", [1, 2, 3], [1, 2, 3], [[2, 3, 1]], "2026-01-01T00:00:00+00:00", 0, None],
            None,
            ((2, 3, 1),),
            id="a tombstone",
        ),
    ],
)
def test_orders_that_the_former_format_remembers_are_outstanding_at_an_unknown_broker(
    row: list[Any], replaced: tuple[int, ...] | None, outstanding: tuple[tuple[int, ...], ...]
) -> None:
    former = zlib.compress(json.dumps([["id", "orders", [row]]]).encode())
    made = undo_record_codec.unpack_entries(former, "test")[PartitionKey("id", 0)]
    assert (made.replaced, made.outstanding) == (replaced, tuple(SentOrder(order, None) for order in outstanding))
    assert (made.baseline, made.written, made.contests) == ((1, 2, 3), tuple(row[3]), 0)


def test_a_demotion_of_a_version_that_recorded_no_signal_is_read():
    one = DemotedBroker(1, Cause.SIGNALS, "AlertFiring", "disk", datetime(2026, 1, 1, tzinfo=UTC))
    assert "signal" not in (text := undo_record_codec.pack_demoted({1: one}))
    assert undo_record_codec.unpack_demoted(text, "test") == {1: one}


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
    assert (
        undo_record_codec.unpack_log_dirs(undo_record_codec.pack_log_dirs(record.log_dirs), "test") == record.log_dirs
    )

    assert undo_record_codec.unpack_links(undo_record_codec.pack_links(record.links), "test") == record.links


RETURNS = BrokenLink(Link(1, 2), NOW, 2, ReturningBroker(1, 10, NOW, NOW, cutoff=12.5))


def test_a_link_whose_leaders_return_reads_back_as_it_was() -> None:
    document = undo_record_codec.export_record(UndoRecord("c", links={RETURNS.link: RETURNS}))
    assert undo_record_codec.import_record(document, "test").links == {RETURNS.link: RETURNS}


def test_a_record_without_links_is_the_document_that_versions_before_them_wrote() -> None:
    document = json.loads(undo_record_codec.export_record(UndoRecord("c")))
    assert "links" not in document
    assert undo_record_codec.import_record(json.dumps(document).encode(), "old.json").links == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"brokers": [2, 1]}, "are not two brokers in order of their ids"),
        ({"brokers": [1, 1]}, "are not two brokers in order of their ids"),
        ({"brokers": [1]}, "not enough values"),
        ({"brokers": [-1, 2]}, "is not the number of a broker"),
        ({"brokers": ["1", 2]}, "is not the number of a broker"),
        ({"brokers": None}, "TypeError"),
        ({"since": "2026-01-01T00:00:00"}, "a time without time zone"),
        ({"since": "yesterday"}, "Invalid isoformat"),
        ({"since": 5}, "is not text"),
        ({"times": -1}, "is not a count"),
        ({"times": 1.5}, "is not a count"),
        ({"times": True}, "is not a count"),
        ({"wave": {}}, "KeyError"),
        ({"wave": {"broker": 2}}, "KeyError"),
        ({"wave": "soon"}, "TypeError"),
    ],
)
def test_nonsense_about_a_link_is_named(change: dict[str, Any], words: str) -> None:
    document = json.loads(undo_record_codec.export_record(UndoRecord("c", links={RETURNS.link: RETURNS})))
    document["links"][0].update(change)
    with pytest.raises(Terminal, match=f"old.json: the undo record is damaged.*{words}"):
        undo_record_codec.import_record(json.dumps(document).encode(), "old.json")
    with pytest.raises(Terminal, match=f"configmap a/b: the undo record is damaged.*{words}"):
        undo_record_codec.unpack_links(json.dumps(document["links"]), "configmap a/b")


def test_the_wave_of_a_link_is_that_of_its_first_end() -> None:
    document = json.loads(undo_record_codec.export_record(UndoRecord("c", links={RETURNS.link: RETURNS})))
    document["links"][0]["wave"]["broker"] = 2
    with pytest.raises(Terminal, match="the wave of brokers 1 and 2 is that of broker 2"):
        undo_record_codec.import_record(json.dumps(document).encode(), "old.json")


@pytest.mark.parametrize("part", ["demoted", "returning", "logDirs"])
def test_a_time_without_a_zone_is_not_read_either(part: str) -> None:
    log_dir = DemotedLogDir(LogDir(3, "/a"), "r", "m", NOW, "s")
    whole = UndoRecord(
        "c",
        demoted={1: DemotedBroker(1, Cause.SIGNALS, "r", "m", NOW)},
        returning={2: ReturningBroker(2, 10, NOW, NOW)},
        log_dirs={log_dir.log_dir: log_dir},
    )
    document = json.loads(undo_record_codec.export_record(whole))
    document[part][0]["since"] = "2026-01-01T00:00:00"
    with pytest.raises(Terminal, match="a time without time zone"):
        undo_record_codec.import_record(json.dumps(document).encode(), "old.json")


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


@pytest.mark.parametrize("damage", ["", "{}x", "[1]", "null", '[{"broker": 1}]', '[{"broker": "1", "path": "/a"}]'])
def test_a_damaged_list_of_log_directories_is_named(damage: str) -> None:
    with pytest.raises(Terminal, match="configmap a/b: the undo record is damaged"):
        undo_record_codec.unpack_log_dirs(damage, "configmap a/b")


@pytest.mark.parametrize("share", [-1, 101, "10", True])
def test_a_share_that_is_none_is_named(share: object) -> None:
    wave = ReturningBroker(1, 10, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))
    document = json.loads(undo_record_codec.export_record(UndoRecord("c", returning={1: wave})))
    document["returning"][0]["share"] = share
    with pytest.raises(Terminal, match="not a share from 0 to 100 percent"):
        undo_record_codec.import_record(json.dumps(document).encode(), "old.json")


@pytest.mark.parametrize("cutoff", [-1, 100.5, "10", True])
def test_a_cutoff_that_is_none_is_named(cutoff: object) -> None:
    wave = ReturningBroker(1, 10, NOW, NOW, cutoff=12.5)
    document = json.loads(undo_record_codec.export_record(UndoRecord("c", returning={1: wave})))
    document["returning"][0]["cutoff"] = cutoff
    with pytest.raises(Terminal, match="not a cutoff from 0 to 100"):
        undo_record_codec.import_record(json.dumps(document).encode(), "old.json")


def test_a_wave_of_a_version_that_did_not_count_goes_by_its_share() -> None:
    wave = ReturningBroker(1, 10, NOW, NOW, cutoff=12.5)
    document = json.loads(undo_record_codec.export_record(UndoRecord("c", returning={1: wave})))
    del document["returning"][0]["cutoff"]
    read = undo_record_codec.import_record(json.dumps(document).encode(), "old.json")
    assert read.returning == {1: ReturningBroker(1, 10, NOW, NOW)}


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


def packed(*topics: Any) -> bytes:
    return zlib.compress(json.dumps(topics).encode())


ROW = [0, "D", [1, 2], [2, 1], []]


@pytest.mark.parametrize(
    "row",
    [
        pytest.param([0, "D", ["a"], [2, 1], []], id="a baseline that is no broker"),
        pytest.param([0, "D", "12", [2, 1], []], id="a baseline that is text"),
        pytest.param([0, "D", [True], [2, 1], []], id="a baseline that is a truth value"),
        pytest.param([0, "D", [1, 2], [-1], []], id="an order with no leader"),
        pytest.param([0, "D", [1, 2], [2**31], []], id="an order beyond Kafka's ids"),
        pytest.param([0, "D", [1, 2], [2, 1], [[1.5]]], id="an earlier order in fractions"),
        pytest.param([0, "D", list(range(1001)), [2, 1], []], id="more replicas than there can be"),
        pytest.param(["0", "D", [1, 2], [2, 1], []], id="a partition that is text"),
        pytest.param([*ROW, None, "many", None], id="contests that are text"),
        pytest.param([0, "D", [1, 2], [2, 1], {}], id="earlier orders that are no list"),
    ],
)
def test_entries_that_are_no_orders_are_refused(row: list[Any]) -> None:
    with pytest.raises(Terminal, match="configmap a/b: the undo record is damaged"):
        undo_record_codec.unpack_entries(packed(["id", "t", [row]]), "configmap a/b")


@pytest.mark.parametrize("topic", [[1, "t", [ROW]], ["id", None, [ROW]], ["id", "t", 5], ["id", "t"], "id", {}])
def test_topics_that_are_none_are_refused(topic: Any) -> None:
    with pytest.raises(Terminal, match="the undo record is damaged"):
        undo_record_codec.unpack_entries(packed(topic), "configmap a/b")


def test_entries_that_unpack_to_more_than_a_shard_can_have_are_refused() -> None:
    bomb = zlib.compress(b"[" + b" " * UNPACKED_LIMIT + b"]")
    assert len(bomb) < 20_000
    with pytest.raises(Terminal, match=f"unpacks to more than {UNPACKED_LIMIT} bytes"):
        undo_record_codec.unpack_entries(bomb, "configmap a/b")


def test_entries_that_are_nested_without_end_are_refused() -> None:
    with pytest.raises(Terminal, match="nested too deeply"):
        undo_record_codec.unpack_entries(zlib.compress(b"[" * 100_000), "configmap a/b")


def test_more_partitions_than_a_shard_can_have_are_neither_read_nor_written(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = UndoEntry("t", (1, 2), (2, 1))
    three = undo_record_codec.pack_entries((PartitionKey("id", n), entry) for n in range(3))
    monkeypatch.setattr(undo_record_codec, "PART_ENTRIES", 2)
    with pytest.raises(Terminal, match="more than 2 partitions"):
        undo_record_codec.unpack_entries(three, "configmap a/b")
    with pytest.raises(Terminal, match="would have 3 partitions"):
        undo_record_codec.pack_entries((PartitionKey("id", n), entry) for n in range(3))


def test_a_tenth_of_the_largest_real_shard_is_far_from_a_tenth_of_the_limits() -> None:
    """A tenth of an eighth of 200,000 partitions with long orders, every outstanding order and every time."""
    order = tuple(range(100_000, 100_005))
    sent = (SentOrder(order, 100_000),) * OUTSTANDING_LIMIT
    entry = UndoEntry("t", order, order, order, sent, EntryState.RESTORED, NOW, 9, NOW)
    entries = {PartitionKey("5C8ShY1VTxGdT0lM18We3A", n): entry for n in range(2_500)}
    assert len(entries) * 40 <= PART_ENTRIES
    assert undo_record_codec.unpack_entries(undo_record_codec.pack_entries(entries.items()), "x") == entries


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("demoted", "broker", "1"),
        ("demoted", "reason", 7),
        ("returning", "broker", [1]),
        ("rebalance", "moves", "many"),
        ("rebalance", "left", {"a": "b"}),
        ("rebalance", "sample", [["t", "p", "r"]]),
    ],
)
def test_a_field_of_the_wrong_kind_is_refused(part: str, key: str, value: Any) -> None:
    whole = UndoRecord(
        "c",
        demoted={1: DemotedBroker(1, Cause.SIGNALS, "r", "m", NOW)},
        returning={2: ReturningBroker(2, 10, NOW, NOW)},
        application=PlanApplication("d", 1, NOW, NOW),
    )
    document = json.loads(undo_record_codec.export_record(whole))
    (document[part] if part == "rebalance" else document[part][0])[key] = value
    with pytest.raises(Terminal, match="the undo record is damaged"):
        undo_record_codec.import_record(json.dumps(document).encode(), "old.json")


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
