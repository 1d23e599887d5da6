from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum

import pytest

from bellwether.core.strict_json import InvalidDocument, StrictObject, format_timestamp


class Colour(StrEnum):
    RED = "Red"
    BLUE = "Blue"


def test_fields_are_read_as_they_are() -> None:
    fields = StrictObject(
        {
            "name": "a",
            "none": None,
            "count": 3,
            "share": 0.5,
            "yes": True,
            "at": "2026-11-21T12:00:00Z",
            "colour": "Blue",
            "list": [1],
            "inner": {"x": 1},
            "map": {"1": 2},
        }
    )
    assert fields.text("name") == "a"
    assert fields.text_or_none("none") is None
    assert (fields.integer("count"), fields.number("share"), fields.boolean("yes")) == (3, 0.5, True)
    assert fields.timestamp("at") == datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert fields.enum("colour", Colour) is Colour.BLUE
    assert (fields.array("list"), fields.nested("inner").integer("x"), fields.mapping("map")) == ([1], 1, {"1": 2})
    fields.finish()


def test_what_is_missing_is_named_with_where_it_belongs() -> None:
    with pytest.raises(InvalidDocument, match=r"^outer\.name is missing$"):
        StrictObject({}, "outer").text("name")


def test_unknown_fields_are_named() -> None:
    with pytest.raises(InvalidDocument, match=r"unknown: outer\.colour, outer\.shape: "):
        StrictObject({"shape": 1, "colour": 2}, "outer").finish()


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (lambda f: f.text("x"), ""),
        (lambda f: f.text("x"), 3),
        (lambda f: f.text_or_none("x"), []),
        (lambda f: f.integer("x"), -1),
        (lambda f: f.integer("x"), 1.0),
        (lambda f: f.integer("x"), True),
        (lambda f: f.integer("x"), 2**63),
        (lambda f: f.integer("x", 1), 0),
        (lambda f: f.integer_or_none("x"), "3"),
        (lambda f: f.number("x"), math.nan),
        (lambda f: f.number("x"), math.inf),
        (lambda f: f.number("x"), -0.5),
        (lambda f: f.number("x"), False),
        (lambda f: f.number_or_none("x"), "none"),
        (lambda f: f.boolean("x"), 1),
        (lambda f: f.timestamp("x"), "21 November"),
        (lambda f: f.timestamp("x"), 3),
        (lambda f: f.enum("x", Colour), "Green"),
        (lambda f: f.enum("x", Colour), None),
        (lambda f: f.array("x"), {}),
        (lambda f: f.nested("x"), []),
        (lambda f: f.mapping("x"), []),
        (lambda f: f.constant("x", 1), 2),
        (lambda f: f.constant("x", 1), True),
    ],
)
def test_what_is_of_another_kind_is_refused_by_name(read: Callable[[StrictObject], object], value: object) -> None:
    with pytest.raises(InvalidDocument, match=r"^x is .*: expected"):
        read(StrictObject({"x": value}))


def test_nothing_is_let_through_only_where_it_may_be() -> None:
    assert StrictObject({"x": None}).integer_or_none("x") is None
    assert StrictObject({"x": None}).number_or_none("x") is None
    assert StrictObject({"x": ""}).text("x", empty=True) == ""
    with pytest.raises(InvalidDocument, match="missing"):
        StrictObject({}).number_or_none("x")


def test_a_long_value_is_cut_short_in_the_message() -> None:
    with pytest.raises(InvalidDocument) as caught:
        StrictObject({"x": "y" * 1000}).integer("x")
    assert len(str(caught.value)) < 160


def test_a_document_that_is_no_object_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="the document is a list: expected a JSON object"):
        StrictObject([])


def test_times_are_written_as_they_are_read() -> None:
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert StrictObject({"at": format_timestamp(noon)}).timestamp("at") == noon
