from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether_load.sampling.schedules import PATIENCE, Schedule, ScheduleStep

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


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
