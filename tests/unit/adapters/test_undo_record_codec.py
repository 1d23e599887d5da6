"""An undo record survives being written down, whatever is in it; what cannot be read is refused by its field."""

from __future__ import annotations

import json
import re
import zlib
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.adapters import undo_record_codec
from bellwether.adapters.json_codec import SIZE_LIMIT
from bellwether.adapters.undo_record_codec import PART_ENTRIES
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.log_dirs import DemotedLogDir
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
IDS = st.integers(0, 2**31 - 1)
TEXT = st.text(max_size=20)
ORDERS = st.lists(IDS, max_size=6).map(tuple)
TIMES = st.timedeltas(timedelta(0), timedelta(days=36500)).map(
    lambda passed: datetime(2000, 1, 1, tzinfo=timezone(timedelta(hours=passed.days % 3))) + passed
)
COUNTS = st.integers(0, 10**7)
SENT = st.lists(st.builds(SentOrder, ORDERS, st.none() | IDS), max_size=4).map(tuple)
STATES = st.sampled_from(EntryState)
ENTRIES = st.builds(
    UndoEntry, TEXT, ORDERS, ORDERS, st.none() | ORDERS, SENT, STATES, st.none() | TIMES, COUNTS, st.none() | TIMES
)
KEYS = st.builds(PartitionKey, TEXT, IDS)
DEMOTED = st.builds(DemotedBroker, IDS, st.sampled_from(Cause), TEXT, TEXT, TIMES, TEXT, st.none() | TIMES)
SKIPPED = st.lists(st.builds(SkippedPartition, TEXT, IDS, TEXT), max_size=3).map(tuple)
LEFT = st.dictionaries(TEXT, COUNTS, max_size=4)
ENDS = st.none() | st.sampled_from(ApplicationEnd)
APPLICATIONS = st.builds(
    PlanApplication, TEXT, COUNTS, TIMES, TIMES, COUNTS, LEFT, st.integers(0, 2**63 - 1), SKIPPED, ENDS, TEXT
)
SHARES, CUTOFFS = st.integers(0, 100), st.none() | st.floats(0, 100)
RETURNING = st.builds(ReturningBroker, IDS, SHARES, TIMES, TIMES, st.sampled_from(RestorationTrigger), CUTOFFS)
LOG_DIRS = st.builds(DemotedLogDir, IDS, TEXT, TEXT, TEXT, TIMES, TEXT)
LINKS = st.builds(
    BrokenLink, st.builds(Link, st.integers(0, 9), st.integers(10, 99)), TIMES, COUNTS, st.none() | RETURNING
)
RECORDS = st.builds(
    UndoRecord,
    TEXT,
    COUNTS,
    st.lists(DEMOTED, max_size=4).map(lambda found: {one.broker: one for one in found}),
    st.dictionaries(KEYS, ENTRIES, max_size=8),
    st.none() | APPLICATIONS,
    st.lists(RETURNING, max_size=3).map(lambda found: {one.broker: one for one in found}),
    st.lists(LOG_DIRS, max_size=3).map(lambda found: {one.log_dir: one for one in found}),
    st.lists(LINKS, max_size=3).map(lambda found: {one.link: one for one in found}),
)


WAVE = ReturningBroker(5, 10, NOW, NOW, RestorationTrigger.RELEASED, 12.5)
LOG_DIR = DemotedLogDir(3, "/data/a", "LogDirSlow", "slow", NOW, "StorageLatency")
LINK = BrokenLink(Link(1, 2), NOW, 2, ReturningBroker(1, 0, NOW, NOW))
WHOLE = UndoRecord(
    "cluster-a",
    7,
    {
        1: DemotedBroker(1, Cause.SIGNALS, "StorageSlow", "80 ms", NOW, "StorageLatency"),
        2: DemotedBroker(2, Cause.MAINTENANCE, "InMaintenance", "new disk", NOW, drained_since=NOW),
    },
    {
        PartitionKey("id-a", 0): UndoEntry(
            "orders", (1, 2, 3), (2, 3, 1), outstanding=(SentOrder((2, 3, 1), 4), SentOrder((3, 2, 1), None))
        ),
        PartitionKey("id-a", 1): UndoEntry("orders", (1, 2), (1, 2), (2, 1), (), EntryState.RESTORED, NOW, 2, NOW),
    },
    PlanApplication(
        "0123456789abcdef",
        90,
        NOW,
        NOW,
        30,
        {"ChangedSincePlan": 2},
        500,
        (SkippedPartition("orders", 1, "ChangedSincePlan"),),
    ),
    {5: WAVE},
    {LOG_DIR.log_dir: LOG_DIR},
    {LINK.link: LINK},
)
TIME = '"2026-01-01T00:00:00+00:00"'
STORED = (
    '{"format":2,"clusterId":"cluster-a","epoch":7,"demoted":['
    f'{{"broker":1,"cause":"Signals","reason":"StorageSlow","message":"80 ms","since":{TIME},'
    '"signal":"StorageLatency"},'
    f'{{"broker":2,"cause":"Maintenance","reason":"InMaintenance","message":"new disk","since":{TIME},'
    f'"drainedSince":{TIME}}}],'
    '"topics":[["id-a","orders",[[0,"I",[1,2,3],[2,3,1],null,[4,[[3,2,1],null]]],'
    f'[1,"T",[1,2],[1,2],[2,1],[],{TIME},2,{TIME}]]]],'
    f'"rebalance":{{"digest":"0123456789abcdef","moves":90,"since":{TIME},"wavedAt":{TIME},"takenUp":30,'
    '"left":{"ChangedSincePlan":2},"leftLoad":500,"sample":[["orders",1,"ChangedSincePlan"]],"ended":"","message":""},'
    f'"returning":[{{"broker":5,"share":10,"since":{TIME},"wavedAt":{TIME},"coming":"Released","cutoff":12.5}}],'
    f'"logDirs":[{{"broker":3,"path":"/data/a","reason":"LogDirSlow","message":"slow","since":{TIME},'
    '"signal":"StorageLatency"}],'
    f'"links":[{{"brokers":[1,2],"since":{TIME},"times":2,"wave":{{"broker":1,"share":0,"since":{TIME},'
    f'"wavedAt":{TIME},"coming":"Recovered"}}}}]}}\n'
)
BARE = '{"format":2,"clusterId":"c","epoch":3,"demoted":[],"topics":[]}\n'


@pytest.mark.parametrize(("record", "stored"), [(WHOLE, STORED), (UndoRecord("c", 3), BARE)])
def test_stored_bytes_do_not_change(record: UndoRecord, stored: str) -> None:
    assert undo_record_codec.export_record(record).decode() == stored
    assert undo_record_codec.import_record(stored.encode(), "test") == record


@given(RECORDS)
def test_exported_record_is_read_back(record: UndoRecord) -> None:
    assert undo_record_codec.import_record(undo_record_codec.export_record(record), "test") == record


@given(RECORDS)
def test_header_and_entries_are_read_back(record: UndoRecord) -> None:
    entries = undo_record_codec.unpack_entries(undo_record_codec.pack_entries(record.entries.items()), "test")
    header = {**undo_record_codec.pack_header(record), "clusterId": record.cluster_id, "writer": "ignored"}
    assert undo_record_codec.unpack_header(header, record.epoch, entries, "test") == record


@given(st.dictionaries(KEYS, ENTRIES, max_size=8), st.randoms())
def test_packed_bytes_do_not_depend_on_order(entries: dict[PartitionKey, UndoEntry], dice: Any) -> None:
    shuffled = list(entries.items())
    dice.shuffle(shuffled)
    assert undo_record_codec.pack_entries(shuffled) == undo_record_codec.pack_entries(entries.items())


@pytest.mark.parametrize(
    ("part", "change", "problem"),
    [
        ("demoted", {"broker": "1"}, "demoted[0].broker is '1': expected a valid integer"),
        ("demoted", {"broker": 2**31}, "demoted[0].broker is 2147483648: expected less than or equal to 2147483647"),
        ("demoted", {"reason": 7}, "demoted[0].reason is 7: expected a valid string"),
        ("demoted", {"cause": "Moon"}, "demoted[0].cause is 'Moon': expected 'Signals', 'Override', 'Command'"),
        ("demoted", {"since": "2026-01-01T00:00:00"}, "demoted[0].since is '2026-01-01T00:00:00': expected timezone"),
        ("returning", {"broker": [1]}, "returning[0].broker is a list: expected a valid integer"),
        ("returning", {"since": "2026-01-01T00:00:00"}, "returning[0].since"),
        ("returning", {"share": True}, "returning[0].share is True: expected a valid integer"),
        ("returning", {"share": 101}, "returning[0].share is 101: expected less than or equal to 100"),
        ("returning", {"cutoff": 100.5}, "returning[0].cutoff is 100.5: expected less than or equal to 100"),
        ("returning", {"cutoff": "10"}, "returning[0].cutoff is '10': expected a valid number"),
        ("logDirs", {"since": "2026-01-01T00:00:00"}, "logDirs[0].since"),
        ("logDirs", {"path": None}, "logDirs[0].path is None: expected a valid string"),
        ("links", {"brokers": [2, 1]}, "links[0].brokers is a list: brokers 2 and 1 are not in order of their ids"),
        ("links", {"brokers": [1]}, "links[0].brokers[1] is missing"),
        ("links", {"brokers": [-1, 2]}, "links[0].brokers[0] is -1: expected greater than or equal to 0"),
        ("links", {"since": "yesterday"}, "links[0].since is 'yesterday': expected a time such as"),
        ("links", {"since": 5}, "links[0].since is 5: expected a time such as"),
        ("links", {"times": 1.5}, "links[0].times is 1.5: expected a valid integer"),
        ("links", {"weather": "fine"}, "links[0].weather is unknown"),
        ("links", {"wave": {"broker": 1}}, "links[0].wave.share is missing"),
        ("rebalance", {"moves": "many"}, "rebalance.moves is 'many': expected a valid integer"),
        ("rebalance", {"left": {"a": "b"}}, "rebalance.left.a is 'b': expected a valid integer"),
        ("rebalance", {"sample": [["t", "p", "r"]]}, "rebalance.sample[0][1] is 'p': expected a valid integer"),
    ],
)
def test_invalid_field_is_named(part: str, change: dict[str, Any], problem: str) -> None:
    document = json.loads(STORED)
    (document[part] if part == "rebalance" else document[part][0]).update(change)
    with pytest.raises(Terminal, match=re.escape(f"old.json: the undo record is damaged: {problem}")):
        undo_record_codec.import_record(json.dumps(document).encode(), "old.json")
    header = {"clusterId": "c", "demoted": "[]", part: json.dumps(document[part])}
    with pytest.raises(Terminal, match=re.escape(f"configmap a/b: the undo record is damaged: {problem}")):
        undo_record_codec.unpack_header(header, 1, {}, "configmap a/b")


@pytest.mark.parametrize("part", ["demoted", "rebalance", "returning", "logDirs", "links"])
@pytest.mark.parametrize("damage", ["", "{}x", "[1]", "7", '[{"broker": 1}]', "[" * 100_000])
def test_damaged_header_is_refused(part: str, damage: str) -> None:
    with pytest.raises(Terminal, match="configmap a/b: the undo record is damaged"):
        undo_record_codec.unpack_header({"clusterId": "c", "demoted": "[]", part: damage}, 1, {}, "configmap a/b")


@pytest.mark.parametrize("missing", ["clusterId", "demoted"])
def test_header_without_required_text_is_refused(missing: str) -> None:
    header = {"clusterId": "c", "demoted": "[]"}
    del header[missing]
    with pytest.raises(Terminal, match=f"damaged: {missing} is "):
        undo_record_codec.unpack_header(header, 1, {}, "configmap a/b")


@pytest.mark.parametrize(("version", "program"), [(FORMAT_VERSION + 1, "newer"), (FORMAT_VERSION - 1, "older")])
def test_other_format_names_program_to_run(version: int, program: str) -> None:
    document = {**json.loads(BARE), "format": version}
    with pytest.raises(Terminal, match=rf"old\.json: .*format version {version}.*: run the {program} version"):
        undo_record_codec.import_record(json.dumps(document).encode(), "old.json")


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b"nonsense", b'{"format": "x"}', b'{"format": 2}', b"\xff"])
def test_damaged_document_is_refused(damage: bytes) -> None:
    with pytest.raises(Terminal, match=r"^old\.json: "):
        undo_record_codec.import_record(damage, "old.json")


def packed(*topics: Any) -> bytes:
    return zlib.compress(json.dumps(topics).encode())


ROW = [0, "D", [1, 2], [2, 1], None, []]


@pytest.mark.parametrize(
    "row",
    [
        pytest.param([0, "D", ["a"], [2, 1], None, []], id="a baseline that is no broker"),
        pytest.param([0, "D", "12", [2, 1], None, []], id="a baseline that is text"),
        pytest.param([0, "D", [True], [2, 1], None, []], id="a baseline that is a truth value"),
        pytest.param([0, "D", [1, 2], [-1], None, []], id="an order with no leader"),
        pytest.param([0, "D", [1, 2], [2**31], None, []], id="an order beyond Kafka's ids"),
        pytest.param([0, "D", [1, 2], [2, 1], [1.5], []], id="a replaced order in fractions"),
        pytest.param([0, "D", list(range(1001)), [2, 1], None, []], id="more replicas than there can be"),
        pytest.param(["0", "D", [1, 2], [2, 1], None, []], id="a partition that is text"),
        pytest.param([0, "X", [1, 2], [2, 1], None, []], id="an unknown state"),
        pytest.param([*ROW, None, "many", None], id="contests that are text"),
        pytest.param([0, "D", [1, 2], [2, 1], None, {}], id="outstanding reorders that are no list"),
        pytest.param([0, "D", [1, 2], [2, 1], None, [1] * 65], id="more outstanding reorders than there can be"),
        pytest.param([0, "D", [1, 2], [2, 1], []], id="a row of format 1"),
    ],
)
def test_invalid_entry_is_refused_by_its_place(row: list[Any]) -> None:
    with pytest.raises(Terminal, match=re.escape("configmap a/b: the undo record is damaged: [0][2][1]")):
        undo_record_codec.unpack_entries(packed(["id", "t", [ROW, row]]), "configmap a/b")


@pytest.mark.parametrize("topic", [[1, "t", [ROW]], ["id", None, [ROW]], ["id", "t", 5], ["id", "t"], "id", {}])
def test_invalid_topic_is_refused(topic: Any) -> None:
    with pytest.raises(Terminal, match="the undo record is damaged"):
        undo_record_codec.unpack_entries(packed(topic), "configmap a/b")


@given(st.binary(max_size=50))
def test_damaged_entries_are_refused(damage: bytes) -> None:
    with pytest.raises(Terminal, match="configmap a/b: the undo record is damaged"):
        undo_record_codec.unpack_entries(damage, "configmap a/b")


def test_entries_beyond_size_limit_are_refused() -> None:
    bomb = zlib.compress(b"[" + b" " * SIZE_LIMIT + b"]")
    assert len(bomb) < 20_000
    with pytest.raises(Terminal, match=f"unpacks to more than {SIZE_LIMIT} bytes"):
        undo_record_codec.unpack_entries(bomb, "configmap a/b")


def test_entries_nested_too_deeply_are_refused() -> None:
    with pytest.raises(Terminal, match="nested too deeply"):
        undo_record_codec.unpack_entries(zlib.compress(b"[" * 100_000), "configmap a/b")


def test_partitions_beyond_limit_are_refused_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = UndoEntry("t", (1, 2), (2, 1))
    three = undo_record_codec.pack_entries((PartitionKey("id", n), entry) for n in range(3))
    monkeypatch.setattr(undo_record_codec, "PART_ENTRIES", 2)
    with pytest.raises(Terminal, match="more than 2 partitions"):
        undo_record_codec.unpack_entries(three, "configmap a/b")
    with pytest.raises(Terminal, match="would have 3 partitions"):
        undo_record_codec.pack_entries((PartitionKey("id", n), entry) for n in range(3))


def test_fields_beyond_limit_are_refused_before_they_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = undo_record_codec.export_record(UndoRecord("c"))[:-2] + b',"a":1,"b" :1}'
    monkeypatch.setattr(undo_record_codec, "_DOCUMENT_NAMES", 6)
    with pytest.raises(Terminal, match="more than 6 fields"):
        undo_record_codec.import_record(text, "a file")
    monkeypatch.setattr(undo_record_codec, "_DOCUMENT_NAMES", 7)
    with pytest.raises(Terminal, match="a is unknown"):
        undo_record_codec.import_record(text, "a file")


def test_largest_real_shard_is_below_limits() -> None:
    """A tenth of an eighth of 200,000 partitions with long orders, every outstanding order and every time."""
    order = tuple(range(100_000, 100_005))
    sent = (SentOrder(order, 100_000),) * OUTSTANDING_LIMIT
    entry = UndoEntry("t", order, order, order, sent, EntryState.RESTORED, NOW, 9, NOW)
    entries = {PartitionKey("5C8ShY1VTxGdT0lM18We3A", n): entry for n in range(2_500)}
    assert len(entries) * 40 <= PART_ENTRIES
    assert undo_record_codec.unpack_entries(undo_record_codec.pack_entries(entries.items()), "x") == entries


def test_a_time_without_a_zone_is_not_recorded() -> None:
    record = UndoRecord(
        "c",
        entries={
            PartitionKey("t", 0): UndoEntry("t", (1,), (1,), finished_at=datetime(2026, 1, 1)),  # noqa: DTZ001
        },
    )
    with pytest.raises(ValueError, match="without time zone"):
        undo_record_codec.export_record(record)
