"""The reads and writes of one directory on a disk that the shim makes slow: each is judged by its own latency."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from realparts.slowdisk import Mode, SlowDisk

MEASURING = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from bellwether.adapters.clocks import SystemClock
from bellwether.core.settings.harm import Objectives
from bellwether.probes.storage.disk_read import DiskReader
from bellwether.probes.storage.disk_write import DiskWriter
from bellwether.probes.storage.read_probe import ReadLatencies
from bellwether.probes.storage.read_probe import read_once
from bellwether.probes.storage.write_probe import measure_once
from bellwether.probes.storage.write_latency import Latencies

directory, clock, objectives = Path(sys.argv[1]), SystemClock(), Objectives(produce_milliseconds=200)
reader, writer = DiskReader(directory), DiskWriter(directory)
reads, writes = ReadLatencies(), Latencies()
for _ in range(9):
    reads = reads.after(read_once(reader, 60, clock), 1.0, 0.2, datetime.now(UTC))
    append, sync = measure_once(writer, 60, clock)
    writes = writes.after(append, objectives, datetime.now(UTC)).synced(sync.seconds)
read, write = reads.signal(1, "b", 0.2), writes.signal(1, "b", objectives)
print(read.reading, min(reads.times), read.harm.lost_seconds if read.harm else 0.0)
print(write.reading, min(writes.times), min(writes.syncs))
"""


@pytest.fixture
def disk(tmp_path: Path) -> SlowDisk:
    made = SlowDisk(tmp_path / "log", tmp_path / "control")
    partition = made.directory / "orders-0"
    partition.mkdir()
    for offset in (0, 500):
        (partition / f"{offset:020}.log").write_bytes(b"x" * 65536)
    return made


def measured(disk: SlowDisk) -> tuple[list[str], list[str]]:
    command = [sys.executable, "-c", MEASURING, str(disk.directory)]
    environment = {**disk.environment(), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    return said[0].split(), said[1].split()


def test_a_disk_that_is_slow_on_reads_alone_fails_in_reads_while_its_writes_pass(disk: SlowDisk) -> None:
    disk.set(500, "read")
    (reading, quickest, lost), write = measured(disk)
    assert reading == "Failing"
    assert float(quickest) >= 0.4
    assert float(lost) >= 5.0
    assert write[0] == "Passing"
    assert float(write[1]) < 0.4


@pytest.mark.parametrize(("mode", "verdict"), [("fsync", "Passing"), ("write+fsync", "Failing")])
def test_a_disk_that_is_slow_on_writes_fails_in_appends_and_one_that_is_slow_on_syncs_alone_does_not(
    disk: SlowDisk, mode: Mode, verdict: str
) -> None:
    disk.set(500, mode)
    read, (reading, append, sync) = measured(disk)
    assert read[0] == "Passing"
    assert reading == verdict
    assert (float(append) >= 0.4) is (verdict == "Failing")
    assert 0.4 <= float(sync) < 2.0
