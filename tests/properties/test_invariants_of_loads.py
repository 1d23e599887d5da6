"""Whatever happens to a partition, its log and its sampler: the load is the true one, or none.

Each property makes up a partition whose true rate is known, lets things happen to what is seen of it, and measures.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bellwether_load.histories.loads import Levels, Loads
from bellwether_load.histories.samples import Samples
from bellwether_load.histories.sketches import ERROR
from testkit.loads.load_histories import Sample, measured, samples

OFF = (1 + ERROR) ** 2 * (1 + 1e-9)
"""Most by which a level is off: the error of a sketch, twice where bytes are known in other hours only."""

Mishap = Callable[[list[Sample]], list[Sample]]


@dataclass(frozen=True)
class Traffic:
    """So many messages a second, each of so many bytes, for so many minutes."""

    messages: int
    each: int
    minutes: int

    def seen(self, at: int) -> Sample:
        """What a sampler sees at a second of the day."""
        return Sample(at, self.messages * at, self.messages * at * self.each)

    @property
    def rate(self) -> float:
        """Bytes a second."""
        return float(self.messages * self.each)


def levels(found: Levels) -> tuple[float, float, float]:
    return (float(found.median[0]), float(found.p95[0]), float(found.peak[0]))


TRAFFIC = st.builds(Traffic, st.integers(1, 10_000), st.integers(1, 5000), st.integers(40, 300))


@st.composite
def mishaps(draw: st.DrawFn, minutes: int) -> list[Mishap]:
    """What may happen to a partition, each in a twelfth of its minutes at most."""
    some = st.lists(st.integers(1, minutes - 1), max_size=minutes // 12, unique=True)
    # First what happens to the logs, then who leads; then what the sampler misses.
    return [
        _deletions(draw(some), draw(st.integers(1, 10**9))),
        _elections(draw(some), draw(st.integers(0, 10**9))),
        *draw(st.permutations([_unsized(draw(some)), _missing(draw(some)), _unanswered(draw(some))])),
        _wrong(draw(some), draw(st.sampled_from([-1, -(2**60)]))),
    ]


def _deletions(at: list[int], size: int) -> Mishap:
    """Retention takes so many bytes away, or all that there are."""

    def befall(history: list[Sample]) -> list[Sample]:
        gone, found = 0, []
        for sample in history:
            assert sample.size is not None
            if sample.at // 60 in at:
                gone += min(size, sample.size - gone)
            found.append(replace(sample, size=sample.size - gone))
        return found

    return befall


def _elections(at: list[int], larger: int) -> Mishap:
    """Others lead in turn, whose logs are larger or smaller."""

    def befall(history: list[Sample]) -> list[Sample]:
        found = []
        for sample in history:
            assert sample.size is not None
            term = sum(minute <= sample.at // 60 for minute in at)
            size = sample.size + larger * (term * 2 % 3)
            found.append(replace(sample, leader=1 + term % 3, epoch=1 + term, size=size))
        return found

    return befall


def _at(at: list[int], change: Callable[[Sample], Sample]) -> Mishap:
    return lambda history: [change(s) if s.at // 60 in at else s for s in history]


def _wrong(at: list[int], size: int) -> Mishap:
    return _at(at, lambda s: replace(s, size=size, consume=math.nan))


def _unsized(at: list[int]) -> Mishap:
    return _at(at, lambda s: replace(s, size=None))


def _missing(at: list[int]) -> Mishap:
    return lambda history: [s for s in history if s.at // 60 not in at]


def _unanswered(at: list[int]) -> Mishap:
    return _at(at, lambda s: replace(s, end=None, size=None, leader=-1))


def noted(history: list[Sample]) -> list[Sample]:
    """As stretches tell it: a negative number is as good as none."""
    return [replace(s, size=None if s.size is None or s.size < 0 else s.size) for s in history]


@given(TRAFFIC.flatmap(lambda t: st.tuples(st.just(t), mishaps(t.minutes))), st.integers(0, 59), st.randoms())
def test_a_steady_rate_is_found_despite_gaps_and_resets(
    traffic_and_mishaps: tuple[Traffic, list[Mishap]], second: int, random: object
):
    traffic, befalling = traffic_and_mishaps
    # What two samplers see whose rounds begin at other seconds; the second one is not always there.
    history = [traffic.seen(60 * minute + s) for minute in range(traffic.minutes) for s in sorted({0, second})]
    for befall in befalling:
        history = befall(history)
    rows = noted([s for s in history if s.at % 60 == 0 or s.at // 600 % 2])
    rows += rows[::3]
    random.shuffle(rows)  # type: ignore[attr-defined]
    found = measured(rows)
    assume(found.samples[0] >= 2)
    assert found.sized.tolist() == [True]
    # Where a log was cut in many of the minutes that were seen well, a tenth may be missed; nothing is ever added.
    assert all(0.9 * traffic.rate / OFF <= level <= OFF * traffic.rate for level in levels(found.produce))
    assert 0 < found.covered[0] <= 60 * traffic.minutes
    assert found.samples[0] <= len(rows)


@given(st.lists(st.integers(0, 10**6), min_size=10, max_size=300), st.data())
def test_no_level_leaves_the_bounds_of_the_true_rates(per_minute: list[int], data: st.DataObject):
    ends = np.cumsum([0, *per_minute]).tolist()
    history = [Sample(60 * m, end, end * 7) for m, end in enumerate(ends)]
    for befall in data.draw(mishaps(len(history))):
        history = befall(history)
    found = measured(noted(history))
    assume(found.samples[0] >= 2)
    least, most = min(per_minute) / 60, max(per_minute) / 60
    if found.sized[0]:
        median, p95, peak = levels(found.produce)
        # Of a log that shrinks and grows at once up to three eighths may stay unseen; never is anything added.
        assert 0.625 * 7 * least / OFF <= median <= p95 <= peak <= 7 * most * OFF


@given(TRAFFIC, st.data())
def test_neither_order_nor_repetition_of_samples_matters(traffic: Traffic, data: st.DataObject):
    history = [traffic.seen(data.draw(st.integers(0, 60 * traffic.minutes))) for _ in range(30)]
    history += [replace(s, size=None, epoch=2) for s in history[:10]]
    again = [*history, *data.draw(st.lists(st.sampled_from(history)))]
    assert _same(measured(history), measured(data.draw(st.permutations(again))))


@given(TRAFFIC, st.integers(1, 7200), st.data())
def test_clock_that_is_set_back_does_not_change_load(traffic: Traffic, back: int, data: st.DataObject):
    traffic = replace(traffic, minutes=300)
    changed = 60 * data.draw(st.integers(120, traffic.minutes - 30))
    history = [traffic.seen(60 * m) for m in range(traffic.minutes)]
    _unchanged(traffic, [replace(s, at=s.at - back if s.at > changed else s.at) for s in history])


@given(TRAFFIC, st.integers(1, 7200), st.data())
def test_clock_that_runs_ahead_for_while_does_not_change_load(traffic: Traffic, ahead: int, data: st.DataObject):
    traffic = replace(traffic, minutes=300)
    start = 60 * data.draw(st.integers(0, 250))
    end = start + 60 * data.draw(st.integers(1, 60))
    history = [traffic.seen(60 * m) for m in range(traffic.minutes)]
    _unchanged(traffic, [replace(s, at=s.at + ahead if start <= s.at < end else s.at) for s in history])


def _unchanged(traffic: Traffic, history: list[Sample]) -> None:
    median, p95, peak = levels(measured(history).produce)
    assert median == pytest.approx(traffic.rate, rel=OFF - 1)
    assert p95 == pytest.approx(traffic.rate, rel=OFF - 1)
    # A single step may be measured too short; it lasts no five minutes.
    assert peak == pytest.approx(traffic.rate, rel=OFF - 1)


@given(TRAFFIC, st.integers(1, 10**9), st.data())
def test_log_cut_short_by_unclean_election_does_not_change_load(traffic: Traffic, lost: int, data: st.DataObject):
    at = 60 * data.draw(st.integers(1, traffic.minutes - 1))
    whole = [traffic.seen(60 * m) for m in range(traffic.minutes)]
    lost = min(lost, traffic.messages * at)
    cut = [
        replace(s, end=s.end - lost, size=s.size - lost * traffic.each, leader=2, epoch=2) if s.at >= at else s
        for s in whole
        if s.end is not None and s.size is not None
    ]
    assert levels(measured(cut).produce) == (pytest.approx(traffic.rate, rel=OFF - 1),) * 3


@given(TRAFFIC, TRAFFIC)
def test_a_topic_that_was_made_again_is_measured_by_itself(old: Traffic, new: Traffic):
    was = [old.seen(60 * m) for m in range(old.minutes)]
    now = [replace(new.seen(60 * m), at=60 * (old.minutes + m)) for m in range(new.minutes)]
    found = measured(was, now)
    assert found.produce.median.tolist() == [pytest.approx(old.rate, rel=OFF - 1), pytest.approx(new.rate, rel=OFF - 1)]


@given(st.lists(st.lists(st.tuples(st.integers(0, 10**5), st.integers(-1, 50), st.integers(-1, 50)), max_size=30)))
def test_nonsense_gives_a_load_or_none_but_nothing_that_is_no_number(histories: list[list[tuple[int, int, int]]]):
    given_rows = [
        [Sample(at, None if end < 0 else end, None if size < 0 else size) for at, end, size in history]
        for history in histories
    ]
    found = measured(*given_rows)
    known = (found.samples >= 2) & found.sized
    for level in (found.produce.median, found.produce.p95, found.produce.peak):
        assert np.isfinite(level[known]).all()
        assert (level[known] >= 0).all()
    assert (found.produce.median[known] <= found.produce.p95[known]).all()
    assert (found.produce.p95[known] <= found.produce.peak[known]).all()
    assert (found.covered[known] > 0).all()


def _same(one: Loads, other: Loads) -> bool:
    columns = zip(_columns(one), _columns(other), strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in columns)


def _columns(found: Loads) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    levels_of = [found.produce, found.consume]
    return [
        *(column for level in levels_of for column in (level.median, level.p95, level.peak)),
        *(column.astype(np.float64) for column in (found.samples, found.covered, found.produce_hours)),
    ]


def test_arrays_of_made_up_history_are_those_of_samples():
    assert isinstance(samples([Sample(0, 1)]), Samples)
