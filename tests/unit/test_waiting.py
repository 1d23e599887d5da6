"""Waiting for what must come about: what it returns, when it gives up, and what it then says."""

from __future__ import annotations

import itertools

import pytest

import waiting
from bellwether.simulation.memory_world import ManualClock
from waiting import TooLate, done, limit, slowness, until


@pytest.fixture
def speeds(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No speed is known yet; what is set in the environment holds."""
    monkeypatch.setattr(waiting, "_measured", None)
    return monkeypatch


def test_it_returns_the_first_true_value() -> None:
    numbers = itertools.count()
    assert until(lambda: next(numbers), every=0) == 1


def test_it_returns_what_the_predicate_takes() -> None:
    numbers = itertools.count()
    assert until(lambda: next(numbers), so=lambda number: number > 4, every=0) == 5


def test_an_exception_that_is_ignored_counts_as_not_yet() -> None:
    answers = iter([KeyError("no"), KeyError("no"), 7])

    def ask() -> int:
        if isinstance(answer := next(answers), KeyError):
            raise answer
        return answer

    assert until(ask, so=done, every=0, ignoring=(KeyError,)) == 7


def test_any_other_exception_passes() -> None:
    with pytest.raises(ZeroDivisionError):
        until(lambda: 1 // 0, ignoring=(KeyError,))


def test_failure_names_limit_speed_and_what_was_there(speeds: pytest.MonkeyPatch) -> None:
    speeds.setenv("BELLWETHER_SLOWNESS", "3")
    with pytest.raises(TooLate) as late:
        until(lambda: 0, 0.001, "two brokers lead")
    assert "(0.001 s on the reference; this machine is 3.0 times slower): two brokers lead" in str(late.value)
    assert str(late.value).endswith("seen last: 0")


def test_a_condition_without_a_name_is_quoted() -> None:
    with pytest.raises(TooLate, match=r"until\(lambda: 1 > 2, 0\)"):
        until(lambda: 1 > 2, 0)


def test_what_has_ended_is_not_waited_for() -> None:
    with pytest.raises(TooLate, match="what it depends on has ended"):
        until(lambda: False, 3600, alive=lambda: False)


def test_limits_grow_with_slowness(speeds: pytest.MonkeyPatch) -> None:
    speeds.setenv("BELLWETHER_SLOWNESS", "2.5")
    assert limit(4) == 10


def test_a_fast_machine_shortens_no_limit(speeds: pytest.MonkeyPatch) -> None:
    speeds.setenv("BELLWETHER_SLOWNESS", "0.1")
    assert slowness() == 1


def test_a_machine_that_got_slower_meanwhile_gets_more_time(speeds: pytest.MonkeyPatch) -> None:
    speeds.setenv("BELLWETHER_SLOWNESS", "1")
    assert slowness() == 1
    speeds.setenv("BELLWETHER_SLOWNESS", "4")
    clock = ManualClock()
    speeds.setattr(waiting, "time", clock)
    assert until(clock.monotonic, 10, so=lambda now: now > 35, every=1) > 35
    with pytest.raises(TooLate, match=r"not within 4[01]\.0 s"):
        until(lambda: False, 10, every=1)
