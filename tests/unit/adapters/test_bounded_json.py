"""Content of objects that others might have written costs no more than its limit."""

from __future__ import annotations

import json
import zlib

import pytest

from bellwether.adapters import bounded_json


def test_what_was_packed_is_read_back() -> None:
    assert bounded_json.unpack(zlib.compress(b'{"a": [1, 2]}')) == {"a": [1, 2]}


@pytest.mark.parametrize("limit", [100, 2 * bounded_json.UNPACKED_LIMIT])
def test_what_unpacks_to_just_the_limit_is_read(limit: int) -> None:
    text = json.dumps("x" * (limit - 2)).encode()
    assert bounded_json.unpack(zlib.compress(text), limit=limit) == "x" * (limit - 2)


@pytest.mark.parametrize("size", [101, 10_000_000])
def test_no_more_than_the_limit_is_unpacked(size: int) -> None:
    with pytest.raises(ValueError, match="unpacks to more than 100 bytes"):
        bounded_json.unpack(zlib.compress(b"[" + b" " * (size - 2) + b"]"), limit=100)


def test_a_compressed_part_that_was_cut_off_is_refused() -> None:
    with pytest.raises(ValueError, match="cut off"):
        bounded_json.unpack(zlib.compress(b"[1, 2, 3]")[:-2])


def test_text_that_is_too_long_is_not_parsed() -> None:
    with pytest.raises(ValueError, match="has 102 bytes; at most 100"):
        bounded_json.parse(b"[" + b" " * 100 + b"]", limit=100)


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_deep_nesting_is_an_ordinary_error(opening: bytes) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        bounded_json.parse(opening * 100_000)
