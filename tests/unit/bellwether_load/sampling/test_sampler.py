"""A sampler's life: when its rounds begin, what it writes and keeps while the store is away, and what it says, once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog

from bellwether.core.model.cluster import TopicPartition
from bellwether.ports.errors import Terminal, Transient
from bellwether.simulation.memory_world import ManualClock
from bellwether_load.sampling.rounds import Rounds
from bellwether_load.sampling.sampler import MOST_KEPT, Sampler
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
    yield Life(site, shelf, Sampler(rounds, shelf.write, 60, site.clock, metrics), metrics)
    rounds.close()


def minutes(rounds: list[Rows]) -> list[int]:
    return [(one.at - NOON) // timedelta(minutes=1) for one in rounds]


def test_each_round_is_written_and_counted(life: Life) -> None:
    life.rounds(3)
    assert minutes(life.shelf.taken) == [0, 1, 2]
    assert life.figure("rounds_total", result="complete") == 3
    assert life.figure("last_written_timestamp_seconds") == (NOON + timedelta(minutes=2)).timestamp()


def test_a_round_without_a_broker_is_partial_and_names_it_once(life: Life) -> None:
    life.site.silent = {2}
    with structlog.testing.capture_logs() as said:
        life.rounds(3)
        life.site.silent = set()
        life.rounds(2, first=3)
    assert [(line["log_level"], line["step"]) for line in said] == [("warning", "broker 2"), ("info", "broker 2")]
    assert life.figure("rounds_total", result="partial") == 3
    assert life.figure("broker_failures_total", broker="2") == 3


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


def test_a_round_a_little_late_is_taken_by_the_time_that_it_is(life: Life, stop: threading.Event) -> None:
    run(life, stop, [1, 62.4, 64, 126, 190])
    assert [one.at for one in life.shelf.taken] == [NOON + timedelta(seconds=62)]
    assert life.figure("late_rounds_total") == 2


def test_a_clock_set_back_does_not_stop_the_sampler(life: Life, stop: threading.Event) -> None:
    run(life, stop, [60, 70, 10, 30, 60, -3590, -3580, -3540])
    assert minutes(life.shelf.taken) == [1, 1, -59]


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
