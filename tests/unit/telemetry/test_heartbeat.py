"""Signs of life: what counts as one, and after which time their absence is reported."""

from __future__ import annotations

import threading

import pytest

from bellwether.simulation.memory_world import ManualClock
from bellwether.telemetry.heartbeat import Heartbeat, WithHeartbeat
from testkit.messages import assert_wording


def test_silence_is_reported_once_it_exceeds_the_bound(clock: ManualClock) -> None:
    pulse = Heartbeat("the loop", clock.monotonic)
    clock.advance(10)
    assert pulse.unhealthy_reason(10) is None
    clock.advance(1)
    assert_wording(pulse.unhealthy_reason(10))


def test_of_what_has_not_begun_nothing_is_expected(clock: ManualClock) -> None:
    pulse = Heartbeat("the loop", clock.monotonic, begun=False)
    clock.advance(1000)
    assert pulse.unhealthy_reason(10) is None
    pulse.beat()
    clock.advance(11)
    assert pulse.unhealthy_reason(10) is not None


def test_of_what_rests_nothing_is_expected_before_it_beats_again(clock: ManualClock) -> None:
    pulse = Heartbeat("the loop", clock.monotonic)
    pulse.rest()
    clock.advance(1000)
    assert pulse.unhealthy_reason() is None
    pulse.beat()
    clock.advance(1000)
    assert pulse.unhealthy_reason() is not None


def test_waiting_for_long_is_not_silence() -> None:
    clock = ManualClock()
    pulse = Heartbeat("the loop", clock.monotonic)
    silences: list[str | None] = []

    class Passing(threading.Event):
        """An event that is never set: the time passes at once."""

        def wait(self, timeout: float | None = None) -> bool:
            clock.advance(timeout or 0.0)
            silences.append(pulse.unhealthy_reason(5))
            return False

    assert not pulse.wait(Passing(), 60, most_seconds=5)
    assert silences == [None] * 12


def test_an_event_ends_the_wait() -> None:
    event = threading.Event()
    event.set()
    assert Heartbeat("the loop").wait(event, 1000)


class Port:
    """Something with a method, a figure, and a fault."""

    figure = 4.5

    def answer(self, number: int, *, more: int = 0) -> int:
        return number + more

    def fail(self) -> None:
        raise ValueError("no")


def test_each_call_is_a_sign_of_life_before_and_after() -> None:
    beats: list[int] = []
    attended = WithHeartbeat(Port(), lambda: beats.append(1))
    assert attended.answer(1, more=2) == 3
    assert len(beats) == 2
    assert attended.figure == 4.5
    assert len(beats) == 2


def test_a_call_that_fails_is_one_too_and_fails() -> None:
    beats: list[int] = []
    with pytest.raises(ValueError, match="no"):
        WithHeartbeat(Port(), lambda: beats.append(1)).fail()
    assert len(beats) == 2
