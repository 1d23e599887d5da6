"""How long this process was away while it timed something: its own absence is no slowness of others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.adapters.clocks import SystemClock
from bellwether.probes.storage.disk_timer import LONGEST_TICK_SECONDS, TICK_SECONDS, Absences, StallDetector
from waiting import limit, until


def awake_at(*times: float) -> Absences:
    found = Absences(0.0)
    for at in times:
        found.woke(at)
    return found


def test_a_process_that_wakes_in_time_was_never_away() -> None:
    found = Absences(0.0)
    for _ in range(100):
        found.woke(found.awake + found.tick + 0.001)
    assert found.away == []
    assert found.within(0.0, found.awake) == 0.0


def test_a_late_awakening_counts_from_when_it_was_due() -> None:
    found = awake_at(0.005, 0.105)
    assert found.away == [(pytest.approx(0.010), 0.105)]


def test_only_what_falls_into_the_stretch_counts() -> None:
    found = awake_at(0.005, 0.105)
    assert found.within(0.0, 0.060) == pytest.approx(0.050)
    assert found.within(0.055, 1.0) == pytest.approx(0.050)
    assert found.within(0.2, 1.0) == 0.0


def test_the_longer_it_lasts_the_less_often_it_looks() -> None:
    found = Absences(0.0)
    assert found.tick == TICK_SECONDS
    found.woke(0.3)
    assert found.tick == pytest.approx(0.03)
    found.woke(600.0)
    assert found.tick == LONGEST_TICK_SECONDS


@given(st.lists(st.floats(0.0, 5.0), max_size=30), st.floats(0.0, 100.0), st.floats(0.0, 100.0))
def test_absence_is_never_negative_nor_longer_than_the_stretch(steps: list[float], one: float, other: float) -> None:
    found = Absences(0.0)
    for step in steps:
        found.woke(found.awake + step)
    start, end = sorted((one, other))
    assert 0.0 <= found.within(start, end) <= end - start + 1e-9


class Leaping:
    """A clock that leaps ahead by ``leap`` in the next sleep, as one does for a process that was frozen meanwhile."""

    def __init__(self) -> None:
        self.leap = 0.0
        self._ahead = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
        self._ahead += self.leap
        self.leap = 0.0


@pytest.fixture
def clock() -> Leaping:
    return Leaping()


@pytest.fixture
def pauses(clock: Leaping) -> Iterator[StallDetector]:
    made = StallDetector(clock)
    made.start()
    yield made
    made.stop()


def test_loss_is_known_once_other_thread_had_its_turn(clock: Leaping, pauses: StallDetector) -> None:
    began = pauses.begin()
    clock.leap = 30.0
    until(lambda: clock.monotonic() - began > 30.0)
    now = clock.monotonic()
    until(lambda: pauses.lost(now) >= 29.0)  # asked once, it waits for the other thread a quarter of a second at most
    assert pauses.lost(now) <= now - began
    pauses.end()


def test_what_lies_before_the_beginning_is_not_lost(clock: Leaping, pauses: StallDetector) -> None:
    pauses.begin()
    clock.leap = 30.0
    until(lambda: not clock.leap)
    pauses.end()
    pauses.begin()
    time.sleep(0.05)
    assert pauses.lost(clock.monotonic()) < 15.0


def test_nothing_is_lost_while_nothing_is_timed(pauses: StallDetector) -> None:
    assert pauses.lost(time.monotonic() + 60) == 0.0


def test_a_thread_that_waits_for_a_disk_is_not_away(pauses: StallDetector) -> None:
    def at_work() -> bool:
        began = pauses.begin()
        threading.Event().wait(0.1)
        return pauses.lost(began + 0.1) < 0.1

    until(at_work)  # a machine that hangs for all of a try spoils that one


FROZEN = """
import sys, time
from bellwether.adapters.clocks import SystemClock
from bellwether.probes.storage.disk_timer import StallDetector
clock = SystemClock()
pauses = StallDetector(clock)
pauses.start()
began = pauses.begin()
print("timing", flush=True)
sys.stdin.readline()
now = clock.monotonic()
print(now - began, pauses.lost(now), flush=True)
"""


def test_a_process_that_was_frozen_knows_for_how_long() -> None:
    process = subprocess.Popen([sys.executable, "-c", FROZEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "timing\n"
        clock = SystemClock()
        os.kill(process.pid, signal.SIGSTOP)
        stopped = clock.monotonic()
        time.sleep(1.0)
        frozen = clock.monotonic() - stopped  # that long at least: we may pause before we wake it
        os.kill(process.pid, signal.SIGCONT)
        said, _ = process.communicate("\n", timeout=limit(30))
    finally:
        process.kill()
    took, lost = (float(signal) for signal in said.split())
    assert took >= frozen - 0.05
    assert frozen - 0.5 <= lost <= took
