from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.detection.harm import HarmCounter
from bellwether.core.settings.harm import LARGEST_LOST_SECONDS
from bellwether.core.signals import Reading
from bellwether.probes.result_window import Streak, lost_text
from testkit.messages import assert_wording

START = datetime(2026, 1, 1, tzinfo=UTC)
results = st.lists(st.booleans(), max_size=80)
thresholds = st.integers(1, 8)


@dataclass(frozen=True)
class Counted:
    failure_threshold: int
    success_threshold: int


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def streak_of(seen: list[bool], failures: int, successes: int) -> list[Streak]:
    settings = Counted(failures, successes)
    streak, all_of_them = Streak(), []
    for second, ok in enumerate(seen):
        streak = streak.seen(ok, at(second), settings)
        all_of_them.append(streak)
    return all_of_them


def test_a_lost_reading_is_unknown_and_restarts_the_count() -> None:
    known = streak_of([False, False], 2, 2)[-1]
    lost = known.lost(at(5))
    assert lost == Streak(Reading.UNKNOWN, at(5))
    assert (lost.lost(at(9)), Streak().lost(at(9))) == (lost, Streak(Reading.UNKNOWN, at(9)))


def test_what_was_never_seen_is_unknown() -> None:
    assert (Streak().reading, Streak().since) == (Reading.UNKNOWN, None)


def test_a_streak_turns_at_its_thresholds_and_remembers_since_when() -> None:
    found = streak_of([True, True, False, False, True, False, False, False], 3, 2)
    assert [s.reading for s in found] == [Reading.UNKNOWN, *[Reading.PASSING] * 6, Reading.FAILING]
    assert found[6].since == at(1)
    assert found[7].since == at(7)


@given(results, thresholds, thresholds)
def test_streak_says_failing_only_after_so_many_failures_in_row(
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


def test_harm_is_said_with_time_in_which_it_was_lost() -> None:
    lost = HarmCounter(lost_seconds=8.1, since=at(0), counted_until=at(31))
    assert_wording(lost_text(lost))


def test_counter_at_limit_says_clients_may_have_lost_more() -> None:
    lost = HarmCounter(lost_seconds=LARGEST_LOST_SECONDS, since=at(0), counted_until=at(900))
    assert_wording(lost_text(lost))


def test_a_clock_that_was_set_back_leaves_the_loss_alone() -> None:
    lost = HarmCounter(lost_seconds=8.1, since=at(3600), counted_until=at(81))
    assert lost_text(lost) == "probes lost 8.1 s"
