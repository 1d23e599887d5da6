from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.core.settings.detection import StorageLatency
from bellwether.core.settings.harm import SLOW_SYNC_SECONDS, Objectives
from bellwether.core.signals import Reading, Signal
from bellwether.ports.clock import Clock
from bellwether.probes.storage import disk_write
from bellwether.probes.storage.disk_write import APPEND_BYTES, FILE_NAME, SYNC_BYTES, DiskWriter, words
from bellwether.probes.storage.write_probe import WriteProbe, measure_once
from bellwether.simulation.memory_world import ManualClock
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics
from testkit.messages import assert_wording
from waiting import limit, until

QUICK = Objectives(produce_milliseconds=100)

pytestmark = pytest.mark.usefixtures("quick_harm")


@pytest.fixture(autouse=True)
def _quick_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StorageLatency, "period_seconds", 0.02)


class Disk:
    def __init__(self) -> None:
        self.hang = threading.Event()
        self.sync_hang = threading.Event()
        self.go_on = threading.Event()
        self.error: OSError | None = None
        self.removed = False
        self.hanging = False
        self.metadata_log: bool | None = None

    def holds_metadata_log(self) -> bool | None:
        return self.metadata_log

    def sync(self) -> None:
        if self.sync_hang.is_set():
            self.go_on.wait(limit(60))

    def append(self) -> None:
        if self.hang.is_set():
            self.hanging = True
            self.go_on.wait(limit(60))
            self.hanging = False
        if self.error is not None:
            raise self.error

    def own_trouble(self, error: OSError) -> bool:
        return error.errno == errno.EMFILE

    def remove(self) -> None:
        self.removed = True


class Bench:
    def __init__(self, clock: Clock | None = None) -> None:
        self.disk = Disk()
        self.posts: list[Signal] = []
        clock = clock or SystemClock()
        self.probe = WriteProbe(1, "b", self.disk, QUICK, self.posts.append, clock, ProbeMetrics())
        self.probe.start()

    def reads(self, reading: Reading) -> Callable[[], bool]:
        return lambda: bool(self.posts) and self.posts[-1].reading is reading


def test_a_hanging_write_is_reported_while_it_hangs() -> None:
    bench = Bench()
    until(bench.reads(Reading.PASSING))
    bench.disk.hang.set()
    until(bench.reads(Reading.FAILING))
    assert bench.probe.alive()
    bench.disk.hang.clear()
    bench.disk.go_on.set()
    until(bench.reads(Reading.PASSING))
    bench.probe.stop()
    assert bench.disk.removed


def test_the_metadata_log_is_posted_once_the_broker_created_it() -> None:
    bench = Bench()
    until(bench.reads(Reading.PASSING))
    assert bench.posts[-1].metadata_log is None
    for found in (False, True):
        bench.disk.metadata_log = found
        until(lambda: bench.posts[-1].metadata_log is bench.disk.metadata_log)
    bench.probe.stop()


@pytest.mark.parametrize(
    ("files", "found"),
    [
        pytest.param(["meta.properties", "__cluster_metadata-0/0.log"], True, id="the log directory has it"),
        pytest.param(["meta.properties", "orders-0/0.log"], False, id="the log directory does not have it"),
        pytest.param(["kafka-log1/meta.properties"], False, id="a volume of a log directory without it"),
        pytest.param(["kafka-log0/meta.properties", "kafka-log0/__cluster_metadata-0/0.log"], True, id="a volume"),
        pytest.param(["__cluster_metadata-0"], None, id="no log directory"),
        pytest.param(["meta.properties", "__cluster_metadata-0"], False, id="a file of that name"),
    ],
)
def test_a_log_directory_has_the_metadata_log_or_not(tmp_path: Path, files: list[str], found: bool | None) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert DiskWriter(tmp_path).holds_metadata_log() is found


def test_a_full_disk_fails_and_recovers() -> None:
    bench = Bench()
    until(bench.reads(Reading.PASSING))
    bench.disk.error = OSError(errno.ENOSPC, "No space left on device")
    until(bench.reads(Reading.FAILING))
    assert_wording(bench.posts[-1].message)
    bench.disk.error = None
    until(bench.reads(Reading.PASSING))
    bench.probe.stop()


def test_a_prober_without_file_descriptors_says_unknown() -> None:
    bench = Bench()
    until(bench.reads(Reading.PASSING))
    bench.disk.error = OSError(errno.EMFILE, "Too many open files")
    until(bench.reads(Reading.UNKNOWN))
    bench.probe.stop()


def test_a_hanging_sync_is_posted_and_is_no_harm() -> None:
    bench = Bench()
    until(bench.reads(Reading.PASSING))
    bench.disk.sync_hang.set()
    until(lambda: (bench.posts[-1].value or 0) >= SLOW_SYNC_SECONDS)
    assert (bench.posts[-1].reading, bench.posts[-1].harm) == (Reading.PASSING, None)
    assert "; syncs take " in bench.posts[-1].message
    bench.disk.sync_hang.clear()
    bench.disk.go_on.set()
    until(lambda: (bench.posts[-1].value or 0) < SLOW_SYNC_SECONDS)
    bench.probe.stop()


def test_files_are_hidden_grow_in_turn_and_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_write, "FULL_BYTES", 3 * APPEND_BYTES)
    writer, seen = DiskWriter(tmp_path), set[bytes]()
    for _ in range(10):
        writer.append()
        writer.sync()
        sizes = sorted(path.stat().st_size for path in tmp_path.iterdir())
        assert sizes[0] == SYNC_BYTES
        assert sizes[-1] <= 3 * APPEND_BYTES + SYNC_BYTES
        assert all(path.name.startswith(".") for path in tmp_path.iterdir())
        seen |= {path.read_bytes() for path in tmp_path.iterdir()}
    assert len(seen) > 10, "never the same bytes twice"
    writer.remove()
    assert list(tmp_path.iterdir()) == []


def test_while_no_sync_ends_appends_go_on_within_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_write, "FULL_BYTES", 2 * APPEND_BYTES)
    monkeypatch.setattr(disk_write, "MOST_BYTES", 4 * APPEND_BYTES)
    writer = DiskWriter(tmp_path)
    for _ in range(10):
        writer.append()
    assert (tmp_path / FILE_NAME).stat().st_size == 4 * APPEND_BYTES
    writer.sync()
    writer.append()
    assert writer.paths[1].stat().st_size == SYNC_BYTES + APPEND_BYTES
    writer.remove()


def test_a_link_in_the_files_place_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("keep")
    (tmp_path / FILE_NAME).symlink_to(target)
    with pytest.raises(OSError, match=FILE_NAME):
        DiskWriter(tmp_path).append()
    assert target.read_text() == "keep"


def test_directory_that_was_never_there_is_probers_own_trouble(tmp_path: Path) -> None:
    writer = DiskWriter(tmp_path / "absent")
    assert measure_once(writer, 1, SystemClock())[0].own_trouble


def test_unwritable_directory_is_not_said_to_be_missing() -> None:
    writer = DiskWriter(Path("/proc"))
    with pytest.raises(OSError, match="No such file") as refused:
        writer.append()
    assert_wording(words(refused.value))
    assert writer.own_trouble(refused.value)


def test_a_directory_that_vanishes_later_is_the_disks(tmp_path: Path) -> None:
    writer = DiskWriter(tmp_path)
    writer.append()
    assert not writer.own_trouble(OSError(errno.ENOENT, "gone"))


class Leaping(ManualClock):
    """A clock that leaps ahead in the next sleep, as for a process that was frozen, and does not move otherwise."""

    leap = 0.0

    def sleep(self, _seconds: float) -> None:
        time.sleep(0.001)
        self.advance(self.leap)
        self.leap = 0.0


def test_prober_frozen_while_writing_does_not_blame_disk() -> None:
    clock = Leaping()
    bench = Bench(clock)

    def passing_as_time_goes_on() -> bool:
        clock.advance(StorageLatency.period_seconds)
        return bench.reads(Reading.PASSING)()

    until(passing_as_time_goes_on)
    for _ in range(3):
        bench.disk.go_on.clear()
        bench.disk.hang.set()
        until(lambda: bench.disk.hanging)
        clock.leap = 30.0
        until(lambda: bench.probe._appends._stalls.lost(clock.monotonic()) > 29)
        bench.disk.hang.clear()
        bench.disk.go_on.set()
        until(lambda: not bench.disk.hanging)
    assert Reading.FAILING not in [post.reading for post in bench.posts]
    until(passing_as_time_goes_on)
    bench.probe.stop()
