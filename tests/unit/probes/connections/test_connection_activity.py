from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bellwether.core.settings.detection import SelfReachability
from bellwether.core.signals import Reading, SignalType
from bellwether.probes.connections.connection_activity import ConnectionActivity, ConnectionSample
from testkit.messages import assert_wording

SETTINGS = SelfReachability()
START = datetime(2026, 1, 1, tzinfo=UTC)
TALKED_TO = ConnectionSample(connections=2, last_received_seconds=0.1)
SILENT = ConnectionSample(connections=2)
EMPTY = ConnectionSample()


class Watch:
    """A prober's looks, one a second."""

    def __init__(self) -> None:
        self.known = ConnectionActivity()
        self.at = 1000.0

    def sees(self, sample: ConnectionSample, times: int = 1) -> Watch:
        for _ in range(times):
            self.at += 1
            self.known = self.known.after(sample, SETTINGS, START + timedelta(seconds=self.at), self.at)
        return self


def last_received(*spells: tuple[ConnectionSample, int]) -> Watch:
    watch = Watch()
    for sample, times in spells:
        watch.sees(sample, times)
    return watch


def message(watch: Watch) -> str:
    return watch.known.message(9094, SETTINGS)


def reading(watch: Watch) -> Reading:
    return watch.known.streak.reading


def test_broker_that_is_talked_to_passes_after_success_threshold_looks() -> None:
    assert reading(last_received((TALKED_TO, 2))) is Reading.UNKNOWN
    assert reading(last_received((TALKED_TO, 3))) is Reading.PASSING


def test_a_broker_fails_once_it_is_quiet_for_enough_looks() -> None:
    watch = last_received((TALKED_TO, 3), (SILENT, 29 + 2))
    assert reading(watch) is Reading.PASSING  # the last word was 0.1 s before the third look
    assert reading(watch.sees(SILENT)) is Reading.FAILING
    assert_wording(message(watch))
    signal = watch.known.signal(2, "broker-2", 9094, SETTINGS)
    assert signal is not None
    assert (signal.type, signal.reading, signal.broker) == (SignalType.SELF_REACHABILITY, Reading.FAILING, 2)
    assert signal.value == pytest.approx(32.1)


def test_a_broker_without_any_connection_fails_after_equal_time() -> None:
    assert reading(last_received((EMPTY, 31))) is Reading.UNKNOWN
    watch = last_received((EMPTY, 34))
    assert reading(watch) is Reading.FAILING
    assert_wording(message(watch))


def test_silence_before_prober_started_does_not_count_at_once() -> None:
    """Visits that were over before the prober began cannot be known."""
    long_ago = [(replace(SILENT, last_received_seconds=500.0 + second), 1) for second in range(30)]
    assert reading(last_received(*long_ago)) is Reading.UNKNOWN


def test_recovery_after_silence_takes_three_looks() -> None:
    watch = last_received((TALKED_TO, 3), (SILENT, 40), (TALKED_TO, 2))
    assert reading(watch) is Reading.FAILING
    assert reading(watch.sees(TALKED_TO)) is Reading.PASSING


def test_down_broker_is_unknown_and_so_not_reported() -> None:
    down = ConnectionSample(listening=False)
    watch = last_received((TALKED_TO, 3), (down, 2))
    assert reading(watch) is Reading.PASSING
    watch = last_received((TALKED_TO, 3), (down, 3))
    assert reading(watch) is Reading.UNKNOWN
    assert_wording(message(watch))


def test_a_broker_that_came_back_is_watched_from_then_on() -> None:
    down = ConnectionSample(listening=False)
    watch = last_received((TALKED_TO, 3), (down, 60), (EMPTY, 25))
    assert reading(watch) is Reading.UNKNOWN
    assert_wording(message(watch))
    assert reading(last_received((TALKED_TO, 3), (down, 60), (EMPTY, 40))) is Reading.FAILING


def test_unreadable_table_changes_nothing_shortly_and_becomes_unknown_later() -> None:
    broken = ConnectionSample(problem="the kernel's socket table cannot be read (no buffers)")
    watch = last_received((TALKED_TO, 3), (broken, 2))
    assert reading(watch) is Reading.PASSING
    watch = last_received((TALKED_TO, 3), (broken, 3))
    assert reading(watch) is Reading.UNKNOWN
    assert "no buffers" in message(watch)
    signal = watch.known.signal(1, "b", 9094, SETTINGS)
    assert signal is not None
    assert signal.value is None


def test_a_prober_that_never_could_look_says_so() -> None:
    signal = last_received((ConnectionSample(problem="refused"), 3)).known.signal(1, "b", 9094, SETTINGS)
    assert signal is not None
    assert signal.reading is Reading.UNKNOWN


def test_a_table_that_hides_silence_makes_no_broker_fail() -> None:
    blind = ConnectionSample(connections=2, blind="only new connections show")
    watch = last_received((replace(blind, last_received_seconds=0.0), 3), (blind, 100))
    assert reading(watch) is Reading.UNKNOWN
    assert "only new connections show" in message(watch)
    assert reading(watch.sees(replace(blind, last_received_seconds=0.0), 3)) is Reading.PASSING


def test_a_look_with_gaps_restarts_the_count_of_silence() -> None:
    lost = ConnectionSample(blind="news were lost")
    watch = last_received((TALKED_TO, 3), (SILENT, 25), (lost, 1), (SILENT, 30))
    assert reading(watch) is Reading.PASSING
    assert reading(watch.sees(SILENT, 3)) is Reading.FAILING
    assert reading(watch.sees(lost).sees(SILENT, 40)) is Reading.FAILING


def test_going_on_as_before_is_no_news() -> None:
    watch = last_received((TALKED_TO, 3), (SILENT, 40))
    posted = watch.known.news()
    assert watch.sees(SILENT, 100).known.news() == posted
    assert watch.sees(TALKED_TO, 3).known.news() != posted


def test_the_time_of_a_reading_stays_while_it_does() -> None:
    watch = last_received((TALKED_TO, 3))
    since = watch.known.streak.since
    assert watch.sees(TALKED_TO, 50).known.streak.since == since


def test_late_look_is_judged_by_kernel_ages() -> None:
    """A prober that was starved for a minute looks once and finds data from a second ago."""
    watch = last_received((TALKED_TO, 3))
    watch.at += 60
    assert reading(watch.sees(ConnectionSample(connections=2, last_received_seconds=1.0))) is Reading.PASSING
    assert watch.known.silent_seconds == pytest.approx(1.0)
