"""Digests of many lines in chunks."""

from __future__ import annotations

import hashlib

import pytest

from bellwether_load.plan.line_digest import CHUNK_LINES, chunk_digests, digest_of_chunks
from bellwether_load.verify.row_streams import Fingerprint


def lines(count: int) -> list[bytes]:
    return [f"line {number}\n".encode() for number in range(count)]


def test_each_chunk_has_a_digest_and_the_last_one_is_shorter() -> None:
    found = list(chunk_digests(lines(2 * CHUNK_LINES + 1)))
    assert len(found) == 3
    assert found[2] == hashlib.sha256(f"line {2 * CHUNK_LINES}\n".encode()).hexdigest()


def test_no_lines_have_no_chunk_and_a_digest_of_the_first_line() -> None:
    assert list(chunk_digests([])) == []
    assert digest_of_chunks("first", []) == hashlib.sha256(b"first\n").hexdigest()


@pytest.mark.parametrize("count", [0, 1, CHUNK_LINES - 1, CHUNK_LINES, CHUNK_LINES + 1, 3 * CHUNK_LINES + 7])
def test_the_verifier_finds_the_same_digest(count: int) -> None:
    given = lines(count)
    found = Fingerprint("first")
    for line in given:
        found.add(line.decode().removesuffix("\n"))
    assert found.finish() == digest_of_chunks("first", chunk_digests(given))
