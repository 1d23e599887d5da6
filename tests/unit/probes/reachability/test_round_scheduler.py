from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.probes.reachability.round_scheduler import Rounds, WorkerPool
from waiting import until

CLOCK = SystemClock()


class Watch:
    """One that is due again after ``period`` seconds, and once brings its turn forward."""

    def __init__(self, period: float) -> None:
        self.period = period
        self.begun: list[float] = []
        self.stopped = False
        self.waiting = False
        self.forward: float | None = None

    def begin(self) -> float:
        self.begun.append(CLOCK.monotonic())
        self.waiting = True
        return self.begun[-1] + self.period

    def collect(self) -> float | None:
        self.waiting = False
        forward, self.forward = self.forward, None
        return forward


@pytest.fixture
def rounds() -> Iterator[Rounds]:
    one = Rounds(WorkerPool(CLOCK), CLOCK)
    yield one
    one.stop(20)


def test_each_begins_again_when_it_is_due(rounds: Rounds) -> None:
    often, seldom = Watch(0.05), Watch(60)
    rounds.add(often)
    rounds.add(seldom, 0.2)
    until(lambda: len(often.begun) >= 8)
    assert len(seldom.begun) <= 1
    until(lambda: len(seldom.begun) == 1)
    assert all(later - earlier >= 0.05 for earlier, later in zip(often.begun, often.begun[1:], strict=False))


def test_round_that_is_brought_forward_replaces_one_that_was_due(rounds: Rounds) -> None:
    far, near = Watch(3600), Watch(0.1)
    far.forward = near.forward = CLOCK.monotonic()
    rounds.add(far)
    until(lambda: len(far.begun) == 2)
    rounds.add(near)
    until(lambda: len(near.begun) > 6)
    _, *later = (after - before for before, after in itertools.pairwise(near.begun))
    assert min(later) >= 0.1, "its pace is the old one, not twice that"


def test_one_that_has_stopped_begins_no_more(rounds: Rounds) -> None:
    watch = Watch(0.02)
    rounds.add(watch)
    until(lambda: len(watch.begun) > 2)
    watch.stopped = True
    other = Watch(0.02)
    rounds.add(other)
    until(lambda: len(other.begun) > 2)  # on the same thread: what was under way is over
    begun = len(watch.begun)
    until(lambda: len(other.begun) > 12)
    assert len(watch.begun) == begun


def test_it_can_be_stopped_and_started_again(rounds: Rounds) -> None:
    first = Watch(0.02)
    rounds.add(first)
    until(lambda: bool(first.begun))
    rounds.stop(20)
    begun = len(first.begun)
    second = Watch(0.02)
    rounds.add(second)
    until(lambda: len(second.begun) > 2)
    assert len(first.begun) == begun


def test_process_kept_from_its_work_knows_how_long(rounds: Rounds) -> None:
    """Held up by a thread that does not let go of the interpreter: to the rounds that is like too little CPU."""
    watch = Watch(0.05)
    rounds.add(watch)
    until(lambda: len(watch.begun) > 2)
    before = rounds.late_seconds
    held = CLOCK.monotonic()
    sum(range(30_000_000))  # one call in C, during which no other thread runs
    held = CLOCK.monotonic() - held
    until(lambda: rounds.late_seconds - before > held / 2)
