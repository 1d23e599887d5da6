from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.settings.detection import ReplicationLag, StorageLatency
from bellwether.core.signals import Reading
from bellwether.probes.result_window import Streak, Window

START = datetime(2026, 1, 1, tzinfo=UTC)
results = st.lists(st.booleans(), max_size=80)
thresholds = st.integers(1, 8)


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def streak_of(seen: list[bool], failures: int, successes: int) -> list[Streak]:
    settings = ReplicationLag(failure_threshold=failures, success_threshold=successes)
    streak, all_of_them = Streak(), []
    for second, ok in enumerate(seen):
        streak = streak.seen(ok, at(second), settings)
        all_of_them.append(streak)
    return all_of_them


def windows_of(seen: list[bool], samples: int, failures: int, successes: int) -> list[Window]:
    settings = StorageLatency(window_samples=samples, failure_threshold=failures, success_threshold=successes)
    window, all_of_them = Window(), []
    for second, ok in enumerate(seen):
        window = window.seen(ok, at(second), settings)
        all_of_them.append(window)
    return all_of_them


def test_what_is_no_longer_known_is_unknown_since_then_and_counted_anew() -> None:
    known = streak_of([False, False], 2, 2)[-1]
    lost = known.lost(at(5))
    assert lost == Streak(Reading.UNKNOWN, at(5))
    assert (lost.lost(at(9)), Streak().lost(at(9))) == (lost, Streak(Reading.UNKNOWN, at(9)))


def test_what_was_never_seen_is_unknown() -> None:
    assert (Streak().reading, Streak().since) == (Reading.UNKNOWN, None)
    assert (Window().reading, Window().since) == (Reading.UNKNOWN, None)


def test_a_streak_turns_at_its_thresholds_and_remembers_since_when() -> None:
    found = streak_of([True, True, False, False, True, False, False, False], 3, 2)
    assert [s.reading for s in found] == [Reading.UNKNOWN, *[Reading.PASSING] * 6, Reading.FAILING]
    assert found[6].since == at(1)
    assert found[7].since == at(7)


@given(results, thresholds, thresholds)
def test_a_streak_says_failing_only_after_so_many_failures_in_a_row(
    seen: list[bool], failures: int, successes: int
) -> None:
    before = Reading.UNKNOWN
    for index, streak in enumerate(streak_of(seen, failures, successes)):
        tail = seen[: index + 1]
        if streak.reading is not before:
            run = failures if streak.reading is Reading.FAILING else successes
            assert tail[-run:] == [streak.reading is Reading.PASSING] * run
            assert streak.since == at(index)
        elif len(tail) >= failures and not any(tail[-failures:]):
            assert streak.reading is Reading.FAILING
        elif len(tail) >= successes and all(tail[-successes:]):
            assert streak.reading is Reading.PASSING
        before = streak.reading


@given(results, thresholds, thresholds, thresholds)
def test_a_window_fails_only_on_enough_bad_results_since_it_last_passed(
    seen: list[bool], samples: int, failures: int, successes: int
) -> None:
    before, passed_at = Reading.UNKNOWN, -1
    for index, window in enumerate(windows_of(seen, samples, failures, successes)):
        if window.reading is not before:
            assert window.since == at(index)
            if window.reading is Reading.FAILING:
                recent = seen[passed_at + 1 : index + 1][-samples:]
                assert recent.count(False) >= min(samples, failures)
            else:
                assert seen[index + 1 - successes : index + 1] == [True] * successes
                passed_at = index
        before = window.reading


@given(results, thresholds, thresholds, thresholds)
def test_a_good_result_never_makes_a_window_fail(seen: list[bool], samples: int, failures: int, successes: int) -> None:
    found = [Window(), *windows_of(seen, samples, failures, successes)]
    for before, after, ok in zip(found, found[1:], seen, strict=False):
        if ok and after.reading is Reading.FAILING:
            assert before.reading is Reading.FAILING


def test_an_outright_failure_needs_no_counting_and_recovers_by_counting() -> None:
    window = Window().failed(at(0))
    assert (window.reading, window.since) == (Reading.FAILING, at(0))
    settings = StorageLatency(window_samples=5, failure_threshold=3, success_threshold=2)
    for second in (1, 2):
        window = window.seen(True, at(second), settings)
    assert (window.reading, window.since) == (Reading.PASSING, at(2))
