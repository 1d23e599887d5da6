"""A sampler's life: when its rounds begin, what it writes and keeps while the store is away, and what it says, once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.model.cluster import TopicPartition
from bellwether.ports.errors import Terminal, Transient
from bellwether.simulation.memory_world import ManualClock
from bellwether_load.sampling.rounds import Rounds
from bellwether_load.sampling.sampler import MOST_KEPT, PATIENCE, Sampler, Schedule, ScheduleStep
from bellwether_load.sampling.sampler_metrics import SamplingMetrics
from bellwether_load.store.samples.sample_files import Rows
from bellwether_load.store.store_errors import StoreUnavailable
from testkit.kafka.sampled_cluster import Site, partition
from testkit.messages import assert_wording
from waiting import limit

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@dataclass
class Shelf:
    """A store that takes rounds, unless it is away."""

    taken: list[Rows] = field(default_factory=list)
    away: Exception | None = None

    def write(self, rows: Rows) -> int:
        if self.away is not None:
            raise self.away
        self.taken.append(rows)
        return 100


@dataclass
class Life:
    site: Site
    shelf: Shelf
    sampler: Sampler
    metrics: SamplingMetrics

    def figure(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"bellwether_sampler_{name}", labels) or 0.0

    def rounds(self, count: int, first: int = 0) -> None:
        for minute in range(first, first + count):
            self.sampler.round(NOON + timedelta(minutes=minute))


@pytest.fixture
def life() -> Iterator[Life]:
    site = Site(
        partitions=(partition("a", 0, 1), partition("a", 1, 2)),
        ends={TopicPartition("a", 0): 1, TopicPartition("a", 1): 2},
    )
    shelf, metrics = Shelf(), SamplingMetrics()
    rounds = Rounds(site.sources(), site.clock, timeout_seconds=5, period_seconds=60)
    yield Life(site, shelf, Sampler(rounds, shelf.write, Schedule(60), site.clock, metrics), metrics)
    rounds.close()


def minutes(rounds: list[Rows]) -> list[int]:
    return [(one.at - NOON) // timedelta(minutes=1) for one in rounds]


def test_each_round_is_written_and_counted(life: Life) -> None:
    life.rounds(3)
    assert minutes(life.shelf.taken) == [0, 1, 2]
    assert life.figure("rounds_total", result="complete") == 3
    assert life.figure("rows_total", end="known") == 6
    assert life.figure("written_bytes_total", kind="round") == 300
    assert life.figure("last_written_timestamp_seconds") == (NOON + timedelta(minutes=2)).timestamp()
    assert life.figure("partitions") == 2


def test_a_round_without_a_broker_is_partial_and_names_it_once(life: Life) -> None:
    life.site.silent = {2}
    with structlog.testing.capture_logs() as said:
        life.rounds(3)
        life.site.silent = set()
        life.rounds(2, first=3)
    assert [(line["log_level"], line["step"]) for line in said] == [("warning", "broker 2"), ("info", "broker 2")]
    assert life.figure("rounds_total", result="partial") == 3
    assert life.figure("broker_failures_total", broker="2") == 3
    assert life.figure("rows_total", end="unknown") == 3


def test_a_round_that_comes_to_nothing_is_counted_and_the_next_one_is_taken(life: Life) -> None:
    life.site.unmapped = Terminal("refused user 'x': check username, password and mechanism")
    with structlog.testing.capture_logs() as said:
        life.rounds(2)
        life.site.unmapped = None
        life.rounds(1, first=2)
    assert minutes(life.shelf.taken) == [2]
    assert life.figure("rounds_total", result="failed") == 2
    assert [line["event"] for line in said] == ["sampling_failed", "sampling_recovered"]
    assert "check username" in said[0]["error"]


def test_rounds_that_the_store_does_not_take_are_written_once_it_does(life: Life) -> None:
    life.shelf.away = StoreUnavailable("s3://b: cannot be written: timeout")
    with structlog.testing.capture_logs() as said:
        life.rounds(3)
        assert life.shelf.taken == []
        life.shelf.away = None
        life.rounds(1, first=3)
    assert minutes(life.shelf.taken) == [0, 1, 2, 3]
    assert life.figure("store_failures_total") == 3
    assert life.figure("lost_rounds_total") == 0
    assert [line["step"] for line in said] == ["store", "store"]


def test_a_store_that_stays_away_costs_the_oldest_rounds_and_no_more_memory(life: Life) -> None:
    life.shelf.away = StoreUnavailable("away")
    life.rounds(MOST_KEPT + 4)
    life.shelf.away = None
    life.rounds(1, first=MOST_KEPT + 4)
    assert minutes(life.shelf.taken) == list(range(4, MOST_KEPT + 5))
    assert life.figure("lost_rounds_total") == 4


def test_a_broker_that_is_gone_takes_its_series_along(life: Life) -> None:
    life.site.silent = {2}
    life.rounds(1)
    life.site.partitions = (partition("a", 0, 1),)
    life.rounds(1, first=1)
    assert life.metrics.registry.get_sample_value("bellwether_sampler_broker_failures_total", {"broker": "2"}) is None


class Told(ManualClock):
    """A clock that goes on as the sampler waits."""

    def __init__(self, start: datetime, after: Callable[[], None]) -> None:
        super().__init__()
        self.time = start
        self._after = after

    def now(self) -> datetime:
        self._after()
        return self.time


class AtOnce(threading.Event):
    """No real waiting."""

    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - the standard library's
        return self.is_set()


@pytest.fixture
def stop() -> threading.Event:
    return AtOnce()


def run(life: Life, stop: threading.Event, times: list[float], prepare: Callable[[], None] = lambda: None) -> list[Any]:
    """Live through these times, in seconds from noon on; what was said."""
    left = list(times)

    def tick() -> None:
        if not left:
            stop.set()
            return
        clock.time = NOON + timedelta(seconds=left.pop(0))

    clock = Told(NOON, tick)
    life.sampler._clock = clock
    with structlog.testing.capture_logs() as said:
        life.sampler.run(stop, prepare)
    return said


def test_rounds_begin_on_the_grid(life: Life, stop: threading.Event) -> None:
    run(life, stop, [10, 30, 60, 61, 119, 120.2, 125])
    assert [one.at for one in life.shelf.taken] == [NOON + timedelta(seconds=s) for s in (60, 120)]


def test_late_rounds_are_counted_and_logged(life: Life, stop: threading.Event) -> None:
    said = run(life, stop, [60, 250, 300])
    assert minutes(life.shelf.taken) == [1, 5]
    assert life.figure("late_rounds_total") == 3
    assert [line["event"] for line in said] == ["sampling_rounds_skipped"]


def test_a_clock_that_jumps_back_by_an_hour_does_not_stop_the_sampler(life: Life, stop: threading.Event) -> None:
    said = run(life, stop, [60, -3590, -3580, -3540])
    assert minutes(life.shelf.taken) == [1, -59]
    assert said[0]["event"] == "clock_set_back"


def test_a_failed_preparation_is_logged_once_and_delays_no_round(life: Life, stop: threading.Event) -> None:
    def prepare() -> None:
        raise Transient("the API server does not answer")

    said = run(life, stop, [60, 120, 180], prepare)
    assert minutes(life.shelf.taken) == [1, 2, 3]
    assert_wording([line["error"] for line in said])


def test_what_is_kept_is_tried_once_more_at_the_end(life: Life, stop: threading.Event) -> None:
    life.shelf.away = StoreUnavailable("away")
    life.rounds(1)
    life.shelf.away = None
    stop.set()
    life.sampler.run(stop)
    assert minutes(life.shelf.taken) == [0]


def test_hanging_round_is_reported_and_a_slow_one_is_not(life: Life) -> None:
    go, met, stop = threading.Event(), threading.Event(), threading.Event()

    def hang() -> None:
        met.set()
        go.wait(limit(30))
        stop.set()

    assert life.sampler.problems(60) == [], "it has not begun"
    life.site.clock.advance(60)
    thread = threading.Thread(target=life.sampler.run, args=(stop, hang), daemon=True)
    thread.start()
    while not met.wait(0.02):
        life.site.clock.advance(1)
    life.site.clock.advance(60)
    assert life.sampler.problems(60) == []
    life.site.clock.advance(1)
    (text,) = life.sampler.problems(60)
    assert_wording(text)
    go.set()
    thread.join(limit(10))
    assert not thread.is_alive()


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def begun(schedule: Schedule, seconds: float) -> ScheduleStep:
    """Let it wait until a round begins, as a process that is always woken in time."""
    now = at(seconds)
    while (step := schedule.next_step(now)).begin is None:
        assert step.wait > 0
        now += timedelta(seconds=step.wait)
    return step


def test_rounds_begin_at_whole_minutes_whenever_the_process_was_started() -> None:
    for start in (0.2, 17, 59.9):
        assert begun(Schedule(60), start).begin == at(60)
    assert begun(Schedule(60), 0).begin == at(0)


def test_a_period_that_does_not_fit_into_an_hour_goes_on_across_it() -> None:
    schedule = Schedule(7)
    first = begun(schedule, 1).begin
    second = begun(schedule, 10).begin
    assert first is not None
    assert second is not None
    assert int(first.timestamp()) % 7 == 0
    assert second - first == timedelta(seconds=7)


def test_a_round_is_begun_once() -> None:
    schedule = Schedule(60)
    assert begun(schedule, 0).begin == at(0)
    assert schedule.next_step(at(0.5)).begin is None
    assert begun(schedule, 1).begin == at(60)


def test_who_is_woken_a_little_late_still_takes_the_round_by_the_time_that_it_is() -> None:
    schedule = Schedule(60)
    schedule.next_step(at(1))
    assert schedule.next_step(at(62.4)) == ScheduleStep(begin=at(62))


def test_rounds_that_passed_while_one_took_too_long_are_counted_and_not_made_up_for() -> None:
    schedule = Schedule(60)
    begun(schedule, 0)
    assert schedule.next_step(at(190)) == ScheduleStep(missed=3)
    assert begun(schedule, 190).begin == at(240)


def test_a_round_whose_moment_has_just_passed_is_left_out() -> None:
    schedule = Schedule(60)
    begun(schedule, 0)
    assert schedule.next_step(at(64)) == ScheduleStep(missed=1)
    assert begun(schedule, 64).begin == at(120)


def test_no_wait_is_longer_than_a_second_as_the_clock_may_be_set() -> None:
    schedule = Schedule(3600)
    assert schedule.next_step(at(10)) == ScheduleStep(wait=1.0)
    assert schedule.next_step(at(3599.5)) == ScheduleStep(wait=0.5)


def test_a_clock_that_was_set_back_a_little_is_waited_for() -> None:
    schedule = Schedule(60)
    begun(schedule, 0)
    back = at(-PATIENCE.total_seconds() + 10)
    assert schedule.next_step(back) == ScheduleStep(wait=1.0)
    assert schedule.next_step(at(59)).wait == 1.0
    assert schedule.next_step(at(60)).begin == at(60)


def test_a_clock_set_far_back_is_followed_and_reported() -> None:
    schedule = Schedule(60)
    begun(schedule, 0)
    step = schedule.next_step(at(-3600))
    assert step == ScheduleStep(set_back=3600.0)
    assert begun(schedule, -3600).begin == at(-3540)


def test_a_clock_that_was_set_forward_counts_the_rounds_that_it_jumped_over() -> None:
    schedule = Schedule(60)
    begun(schedule, 0)
    assert schedule.next_step(at(3630)) == ScheduleStep(missed=60)
    assert begun(schedule, 3630).begin == at(3660)


@pytest.mark.parametrize("period", [1, 2])
def test_a_short_period_forgives_less_than_itself(period: int) -> None:
    schedule = Schedule(period)
    begun(schedule, 0)
    assert schedule.next_step(at(period + 1.1)).missed >= 1


@given(st.integers(1, 3600), st.lists(st.floats(-4000, 8000), min_size=1, max_size=40))
def test_whatever_the_clock_does_no_two_rounds_have_one_time_unless_it_was_set_back_far(
    period: int, jumps: list[float]
) -> None:
    schedule, now, rounds = Schedule(period), NOON, []
    for jump in jumps:
        now += timedelta(seconds=jump)
        step = schedule.next_step(now)
        assert (step.begin is not None) + (step.wait > 0) + (step.missed > 0) + (step.set_back > 0) == 1
        assert step.wait <= 1.0
        if step.set_back:
            assert step.set_back > PATIENCE.total_seconds()
            rounds = []
        if step.begin is not None:
            rounds.append(step.begin)
    assert rounds == sorted(set(rounds))
