"""Digests of chunks whose lines are in several pieces."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest

from bellwether_load.plan.line_digest import CHUNK_LINES, chunk_digests
from bellwether_load.planning.digests import cut, in_order, merged


@pytest.mark.parametrize("seed", range(5))
def test_wherever_the_pieces_begin_the_digests_are_the_same(seed: int) -> None:
    dice, count = Random(seed), 5 * CHUNK_LINES + 13
    lines = [f"line {number}" for number in range(count)]
    cuts = sorted({0, count, CHUNK_LINES, *(dice.randrange(count) for _ in range(6))})
    pieces = [cut(pa.array(lines[a:b]), a) for a, b in pairwise(cuts)]
    dice.shuffle(pieces)
    assert list(in_order(merged(pieces))) == list(chunk_digests(f"{line}\n".encode() for line in lines))


def test_of_a_whole_chunk_only_the_digest_leaves_its_piece() -> None:
    found = cut(pa.array(["x"] * (2 * CHUNK_LINES + 1)), CHUNK_LINES - 1)
    assert [row["lines"] is None for row in found.to_pylist()] == [False, True, True]


def test_no_lines_are_no_chunk() -> None:
    assert list(in_order(merged([cut(pa.array([], pa.string()), 0)]))) == []
