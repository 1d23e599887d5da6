"""How often cycles are looked for."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from bellwether.gc_tuning import collect_seldom


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def collections_while_making(values: int) -> int:
    before = gc.get_stats()[0]["collections"]
    kept = [[] for _ in range(values)]  # type: ignore[var-annotated]
    assert len(kept) == values
    return int(gc.get_stats()[0]["collections"]) - before


def test_many_values_are_made_with_few_looks_for_cycles() -> None:
    gc.set_threshold(700, 10, 10)
    often = collections_while_making(90_000)
    collect_seldom()
    assert collections_while_making(90_000) <= 1 < often


def test_cycles_are_still_found() -> None:
    collect_seldom()
    assert gc.isenabled()
    assert all(gc.get_threshold())
