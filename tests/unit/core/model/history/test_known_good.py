"""Only seconds between two good reads count as recovery."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bellwether.core.model.history.known_good import MOST_BETWEEN_READS, NOT_YET_GOOD, KnownGood
from testkit.values.builders import after


def read(*reads: tuple[float, bool | None], enough: float = 60, known: KnownGood = NOT_YET_GOOD) -> float:
    for at, good in reads:
        known = known.after(good, after(at), enough)
    return known.seconds


@pytest.mark.parametrize(
    ("reads", "seconds"),
    [
        pytest.param([(0, True)], 0, id="one good read"),
        pytest.param([(0, True), (4, True)], 4, id="between two good reads"),
        pytest.param([(0, True), (70, True)], MOST_BETWEEN_READS, id="a gap without reads"),
        pytest.param([(0, True), (4, True), (5, None), (6, True), (8, True)], 6, id="a read that knows nothing"),
        pytest.param([(0, True), (9, None), (3600, None), (3601, True)], 0, id="a long silence"),
        pytest.param([(0, True), (4, True), (5, False), (6, True), (8, True)], 2, id="a failure"),
        pytest.param([(0, True), (4, True), (-3600, True), (-3599, True)], 5, id="a clock that goes back"),
    ],
)
def test_seconds_count_between_two_good_reads(reads: Sequence[tuple[float, bool | None]], seconds: float):
    assert read(*reads) == seconds


def test_only_enough_episodes_count_and_none_is_removed():
    assert read((0, True), (9, True), enough=5) == 5
    assert read((0, True), (9, True), enough=5, known=KnownGood(8.0)) == 8


@pytest.mark.parametrize("good", [True, None])
def test_a_source_that_passes_since_another_time_failed_in_between(good: bool | None):
    sources = [{("Canary", "a"): after(0)}, {}, {("Canary", "a"): after(7)}]
    known = NOT_YET_GOOD.after(True, after(0), 60, sources[0]).after(True, after(8), 60, sources[0])
    assert known.seconds == 8
    assert known.after(None, after(9), 60, sources[1]).after(good, after(10), 60, sources[2]).seconds == 0
