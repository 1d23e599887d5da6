from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from bellwether.recording.traces.trace_lines import (
    FORMAT_VERSION,
    Header,
    Instant,
    UnreadableTrace,
    following,
    read_header,
    read_instant,
)

AT = datetime(2026, 11, 21, 9, 0, 0, 125000, tzinfo=UTC)
HEADER = Header("main", "kafka", AT, "cluster-a", "0.1.0", anonymized=True, partitions=False)


def test_a_header_is_read_as_it_was_written():
    assert read_header(HEADER.line()) == HEADER


def test_an_instant_is_read_as_it_was_written():
    instant = Instant(12.345, AT, {"heard": {"ExternalReachability/a": 12.0}, "away": {"Kafka": None}})
    assert read_instant(instant.line(), 2) == instant


@pytest.mark.parametrize(
    ("version", "remedy"),
    [(FORMAT_VERSION + 1, "use the newer version"), (FORMAT_VERSION - 1, r"replay it with Bellwether 0\.1\.0")],
)
def test_trace_of_another_format_is_refused_with_the_remedy(version: int, remedy: str):
    with pytest.raises(UnreadableTrace, match=remedy):
        read_header(json.dumps({**json.loads(HEADER.line()), "version": version}))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "line 1: not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "not a trace"),
        ('{"format":"bellwether.dev/trace","version":"1"}', "not a positive number"),
        ('{"format":"bellwether.dev/trace","version":2}', "damaged"),
        (HEADER.line().replace("2026-11-21T09:00:00.125Z", "2026-11-21T09:00:00"), "started is .*timezone"),
        (HEADER.line().replace("2026-", "9999-"), "started is .*less than or equal to 9000"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(text: str, why: str):
    with pytest.raises(UnreadableTrace, match=why):
        read_header(text)


@pytest.mark.parametrize(
    "changed",
    [
        {"at": -1},
        {"at": True},
        {"at": "1"},
        {"at": 1e12},
        {"at": None},
        {"wall": "noon"},
        {"wall": None},
        {"news": []},
        {"news": None},
    ],
    ids=str,
)
def test_a_damaged_instant_is_refused_by_its_line(changed: dict[str, object]):
    with pytest.raises(UnreadableTrace, match="line 7"):
        read_instant(json.dumps({**json.loads(Instant(1, AT).line()), **changed}), 7)


@pytest.mark.parametrize("text", ['{"at":NaN}', '{"at":Infinity}', "[" * 100_000, "null"])
def test_what_is_not_json_is_refused(text: str):
    with pytest.raises(UnreadableTrace, match="line 3"):
        read_instant(text, 3)


def test_time_does_not_go_back():
    with pytest.raises(UnreadableTrace, match="goes back from 5 s to 4 s"):
        read_instant(Instant(4, AT).line(), 9, after=5)


def test_what_is_not_a_number_is_never_written():
    with pytest.raises(ValueError, match="JSON"):
        Instant(1, AT, {"x": float("nan")}).line()


def test_a_member_of_a_later_version_is_kept():
    assert following({}, {"weather": {"sunny": 1}}) == {"weather": {"sunny": 1}}


@pytest.mark.parametrize(
    "news",
    [
        {"signals": []},
        {"heard": 1},
        {"said": {"x": {}}},
        {"said": {"1": "Healthy"}},
        {"said": {"1": {"verdict": "Healthy"}}},
        {"overrides": {"-1": {}}},
        {"demoted": {"1" * 11: {}}},
        {"signals": {"1": 4}},
        {"returning": {"1": 10}},
        {"returning": {"x": {}}},
    ],
    ids=str,
)
def test_a_member_of_another_shape_is_refused(news: dict[str, object]):
    with pytest.raises(UnreadableTrace, match=r"(of|in) the trace"):
        following({}, news)


def test_news_that_nest_too_deeply_are_refused():
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(UnreadableTrace, match="too deeply"):
        following({}, deep)
