"""The clock of a reconcile: a step of the machine's wall clock ends no timer early and none late. Jitter of waits."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bellwether.core.settings.policy import Demotion
from bellwether.core.signals import OverrideState, Reading
from bellwether.ports.clock import SHARE, jittered
from bellwether.simulation.memory_world import START, ManualClock
from bellwether.steady_clock import SteadyClock
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import site

STEPS = [60.0, -3600.0]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_of_the_wall_clock_is_taken_out(step: float) -> None:
    clock = ManualClock()
    steady = SteadyClock(clock, None)
    for _ in range(2):
        clock.advance(5)
        clock.step(step)
        steady = SteadyClock(clock, steady.reading)
    clock.advance(1)
    assert steady.now() == START + timedelta(seconds=11)
    assert steady.reading.wall == START + timedelta(seconds=10 + 2 * step)


def test_a_clock_that_is_slewed_is_followed() -> None:
    clock = ManualClock()
    first = SteadyClock(clock, None)
    clock.step(0.5)
    assert SteadyClock(clock, first.reading).now() == START + timedelta(seconds=0.5)


@pytest.mark.parametrize("step", STEPS)
def test_while_no_timer_runs_the_clock_returns_to_the_wall_clock_and_never_goes_back(step: float) -> None:
    clock = ManualClock()
    steady, before = SteadyClock(clock, None), START
    clock.step(step)
    for _ in range(1 + int(abs(step) / 6)):
        clock.advance(60)
        steady = SteadyClock(clock, steady.reading, slews=True)
        assert 54 <= (steady.now() - before).total_seconds() <= 66
        before = steady.now()
    assert steady.now() == clock.now()


@pytest.mark.parametrize(("ahead", "begins"), [(600.0, 600.0), (0.5, 0.0), (-60.0, 0.0), (9e6, 0.0)])
def test_a_new_process_begins_no_earlier_than_what_is_recorded(ahead: float, begins: float) -> None:
    past = START + timedelta(seconds=ahead)
    assert SteadyClock(ManualClock(), None, past).now() == START + timedelta(seconds=begins)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_within_the_dwell_time_changes_nothing(step: float) -> None:
    made = site()
    operator = Operator(made, replace(POLICY, demotion=Demotion(dwell_seconds=5)))
    made.signals.say(1, Reading.FAILING)
    operator.reconciles(2)
    made.clock.step(step)
    operator.reconciles(3)
    assert operator.memory is not None
    assert not operator.memory.record.demoted
    operator.reconciles(2)
    assert set(operator.memory.record.demoted) == {1}


@pytest.mark.parametrize("step", STEPS)
def test_written_times_are_right_again_but_not_while_broker_recovers(step: float) -> None:
    made = site()
    operator = Operator(made, replace(POLICY, promotion=replace(POLICY.promotion, stabilization_seconds=1000)))

    def wrong() -> float:
        return abs((operator.reports[-1].now - made.clock.now()).total_seconds())

    for broker in (1, 2, 3):
        made.signals.say(broker, Reading.FAILING if broker == 1 else Reading.PASSING)
    operator.reconciles(2)
    made.signals.say(1, Reading.PASSING)
    operator.reconciles(2)
    made.clock.step(step)
    operator.reconciles(50, 5.0)
    operator.reconcile()
    assert wrong() == abs(step)
    operator.reconciles(100, 10.0)
    operator.reconciles(int(abs(step) / 6) + 1, 60.0)
    operator.reconcile()
    assert wrong() < 1


def test_an_override_ends_when_the_wall_clock_says_so() -> None:
    made = site()
    operator = Operator(made)
    made.signals.override(1, OverrideState.DEMOTED, until=START + timedelta(hours=1))
    operator.reconciles(2)
    made.clock.step(3600)
    operator.reconciles(2)
    assert operator.memory is not None
    assert not operator.memory.record.demoted


def test_waits_differ_and_stay_near_what_was_meant() -> None:
    waits = [jittered(2.0) for _ in range(200)]
    assert all(2.0 * (1 - SHARE) <= wait <= 2.0 * (1 + SHARE) for wait in waits)
    assert len(set(waits)) > 100
    assert max(waits) - min(waits) > SHARE


def test_no_wait_stays_none() -> None:
    assert jittered(0.0) == 0.0
