"""The reads of a real directory: late, hanging and impossible ones, on threads of their own."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.core.settings.detection import ReadLatency
from bellwether.core.settings.harm import Objectives
from bellwether.core.signals import Reading, Signal
from bellwether.probes.storage.disk_read import NO_OLD_SEGMENT, DiskReader, NothingToRead
from bellwether.probes.storage.read_probe import ReadProbe, read_once
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics
from testkit.messages import assert_wording
from waiting import limit, until

# Far above what a busy machine needs for nothing.
OBJECTIVES = Objectives(fetch_milliseconds=1000)


class Disk:
    def __init__(self) -> None:
        self.hang = threading.Event()
        self.go_on = threading.Event()
        self.error: Exception | None = None

    def open(self) -> None:
        if isinstance(self.error, NothingToRead):
            raise self.error

    def read(self) -> None:
        if self.hang.is_set():
            self.go_on.wait(limit(60))
        if self.error is not None:
            raise self.error


class Bench:
    def __init__(self) -> None:
        self.disk = Disk()
        self.posts: list[Signal] = []
        self.metrics = ProbeMetrics()
        self.probe = ReadProbe(1, "b", self.disk, self.posts.append, SystemClock(), self.metrics, period_seconds=0.05)
        self.probe.configure(ReadLatency(), OBJECTIVES)
        self.probe.start()

    def reads(self, reading: Reading) -> Callable[[], bool]:
        return lambda: bool(self.posts) and self.posts[-1].reading is reading


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.disk.go_on.set()
    made.probe.stop()


def test_hanging_read_is_reported_while_it_hangs_and_passes_again(bench: Bench) -> None:
    until(bench.reads(Reading.PASSING))
    bench.disk.hang.set()
    until(bench.reads(Reading.FAILING))
    assert bench.probe.alive()
    assert bench.posts[-1].harm is not None
    bench.disk.hang.clear()
    bench.disk.go_on.set()
    until(bench.reads(Reading.PASSING))


def test_errors_of_the_disk_fail(bench: Bench) -> None:
    bench.disk.error = OSError(errno.EIO, "Input/output error")
    until(bench.reads(Reading.FAILING))
    assert_wording(bench.posts[-1].message)


def test_a_prober_without_permission_says_so_and_does_not_fail(bench: Bench) -> None:
    bench.disk.error = OSError(errno.EACCES, "Permission denied")
    until(bench.reads(Reading.UNKNOWN))
    assert_wording(bench.posts[-1].message)


def test_a_probe_that_the_policy_disables_reads_nothing(bench: Bench) -> None:
    until(bench.reads(Reading.PASSING))
    bench.probe.configure(ReadLatency(enabled=False), OBJECTIVES)
    until(bench.reads(Reading.UNKNOWN))
    assert_wording(bench.posts[-1].message)


def test_a_directory_without_old_segments_is_no_failure(tmp_path: Path) -> None:
    sample = read_once(DiskReader(tmp_path), 30, SystemClock())
    assert (sample.own_trouble, sample.problem) == (True, NO_OLD_SEGMENT)


def test_one_endless_read_is_said_to_have_failed() -> None:
    disk = Disk()
    disk.hang.set()
    sample = read_once(disk, 0.1, SystemClock())
    disk.go_on.set()
    assert_wording(sample.problem)
