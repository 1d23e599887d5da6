"""A dataclass as a JSON document and back: options of a codec, limits, and errors that name the field."""

from __future__ import annotations

import json
import re
import tracemalloc
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, NamedTuple

import pytest
from pydantic import Field

from bellwether.adapters.json_codec import SIZE_LIMIT, JsonCodec, parse, unpack
from bellwether.core.stored_documents import InvalidDocument


class Point(NamedTuple):
    row: int
    column: int


@dataclass(frozen=True, slots=True)
class Part:
    at: datetime
    place: Point
    load_percent: float = 0.0


@dataclass(frozen=True, slots=True)
class Whole:
    name: str
    parts: tuple[Part, ...] = ()
    more_parts: int = 0


WHOLE: JsonCodec[Whole] = JsonCodec(
    Whole,
    names={"more_parts": "rest"},
    fields={"load_percent": Annotated[float, Field(le=100)], "Point.row": Annotated[int, Field(le=9)]},
    omit=["more_parts"],
)
VALUE = Whole("a", (Part(datetime(2026, 1, 1, tzinfo=UTC), Point(3, 40), 2.5),))
TEXT = b'{"name":"a","parts":[{"at":"2026-01-01T00:00:00+00:00","place":[3,40],"loadPercent":2.5}]}'


def test_dataclass_is_written_and_read_back() -> None:
    assert WHOLE.encode(VALUE) == TEXT
    assert WHOLE.decode(TEXT) == WHOLE.decode(TEXT.decode()) == WHOLE.from_json(json.loads(TEXT)) == VALUE
    assert WHOLE.unpack(zlib.compress(TEXT)) == VALUE


def test_omitted_field_is_written_unless_default() -> None:
    assert WHOLE.to_json(Whole("a", more_parts=2)) == {"name": "a", "parts": [], "rest": 2}


def test_times_are_written_as_codec_says() -> None:
    days: JsonCodec[Whole] = JsonCodec(Whole, time=lambda moment: f"{moment:%F}T00:00:00Z")
    assert b'"at":"2026-01-01T00:00:00Z"' in days.encode(VALUE)
    assert days.decode(days.encode(VALUE)) == VALUE


def test_unknown_field_is_ignored_where_codec_says_so() -> None:
    lenient: JsonCodec[Whole] = JsonCodec(Whole, unknown="ignore")
    assert lenient.decode(b'{"name":"a","weather":"fine"}') == Whole("a")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b'{"name":"a","weather":1}', "weather is unknown: written by another version, or misspelled"),
        (b'{"name":"a","more_parts":1}', "more_parts is unknown"),
        (b"{}", "name is missing"),
        (b'{"name":5}', "name is 5: expected a valid string"),
        (b'{"name":"a","rest":-1}', "rest is -1: expected greater than or equal to 0"),
        (b'{"name":"a","rest":9223372036854775808}', "rest is 9223372036854775808: expected less than or equal to"),
        (b'{"name":"a","rest":true}', "rest is True: expected a valid integer"),
        (b'{"name":"a","parts":{}}', "parts is an object: expected a valid array"),
        (TEXT.replace(b"[3,", b"[10,"), "parts[0].place[0] is 10: expected less than or equal to 9"),
        (TEXT.replace(b"2.5", b"NaN"), "parts[0].loadPercent is nan: expected a finite number"),
        (TEXT.replace(b"+00:00", b""), "parts[0].at is '2026-01-01T00:00:00': expected timezone info"),
        (TEXT.replace(b"2026-", b"26-"), "parts[0].at is '26-01-01T00:00:00+00:00': expected a time such as"),
        (
            TEXT.replace(b"2026-01-01T00:00:00+00:00", b"1767225600"),
            "parts[0].at is '1767225600': expected a time such",
        ),
        (b'{"name":1,"parts":1,"rest":-1,"x":1,"y":1}', "; and 2 more"),
        (b'{"name":"a","parts":[1,2]}', "parts[0] is 1: expected "),
        (b"[]", "the document is a list: expected an object"),
        (b"", "the document is damaged: Invalid JSON: EOF"),
        (TEXT + b"x", "the document is damaged: Invalid JSON: trailing characters"),
        (b'{"name":"\xff"}', "the document is damaged: Invalid JSON: invalid unicode"),
        (b"[" * 100_000, "the document is nested too deeply"),
        (b'{"a":' * 100_000, "the document is nested too deeply"),
    ],
)
def test_invalid_document_is_refused_by_field(text: bytes, problem: str) -> None:
    with pytest.raises(InvalidDocument, match=re.escape(problem)):
        WHOLE.decode(text)


@pytest.mark.parametrize(
    "text",
    [
        b'{"name":"a","parts":[' + b"1," * 50_000 + b"1]}",
        b'{"name":"a",' + b",".join(b'"x%d":1' % n for n in range(50_000)) + b"}",
    ],
    ids=["items", "fields"],
)
def test_document_of_many_errors_takes_little_memory(text: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidDocument):
            WHOLE.decode(text)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_time_without_zone_is_not_written() -> None:
    with pytest.raises(ValueError, match="without time zone"):
        WHOLE.encode(Whole("a", (Part(datetime(2026, 1, 1), Point(1, 1)),)))  # noqa: DTZ001


@pytest.mark.parametrize("limit", [100, 2 * SIZE_LIMIT])
def test_document_of_just_the_limit_is_unpacked(limit: int) -> None:
    assert len(unpack(zlib.compress(b" " * limit), limit)) == limit


@pytest.mark.parametrize("size", [101, 10_000_000])
def test_no_more_than_the_limit_is_unpacked(size: int) -> None:
    with pytest.raises(InvalidDocument, match="unpacks to more than 100 bytes"):
        unpack(zlib.compress(b" " * size), limit=100)


@pytest.mark.parametrize(
    ("data", "problem"), [(zlib.compress(b"[]")[:-2], "cut off"), (b"nonsense", "cannot be unpacked")]
)
def test_damaged_compressed_document_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(InvalidDocument, match=problem):
        WHOLE.unpack(data)


def test_document_beyond_limit_is_not_parsed() -> None:
    for read in (WHOLE.decode, parse):
        with pytest.raises(InvalidDocument, match="has 102 bytes; at most 100"):
            read(b"[" + b" " * 100 + b"]", 100)


@pytest.mark.parametrize(("text", "problem"), [(b"[" * 100_000, "nested too deeply"), (b"x", "not JSON")])
def test_parse_refuses_what_is_no_document(text: bytes, problem: str) -> None:
    with pytest.raises(InvalidDocument, match=problem):
        parse(text)
