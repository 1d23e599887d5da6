"""``bellwether probe storage`` as a process next to a real broker, on a disk that is slow on request."""

from __future__ import annotations

import re
import shutil
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.probes.storage.disk_write import FILE_NAME
from waiting import limit

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]


def entry(bench: Any, type_: str = "StorageLatency") -> dict[str, Any]:
    return dict(bench.entry(1, type_))


def started(bench: Any, kafka: KafkaCluster) -> Any:
    broker, disk = kafka.broker(1), kafka.slow_disk(1)
    process = bench.start("storage", "--directory", str(broker.log_dir), environment=disk.environment())
    bench.until(lambda: entry(bench).get("reading") == "Passing", 40)
    return process


@pytest.mark.slow
def test_a_slow_disk_fails_a_cleared_one_passes_and_a_settled_one_causes_no_write(
    bench: Any, breakable_kafka: KafkaCluster
) -> None:
    process = started(bench, breakable_kafka)
    version = bench.versions(1)
    time.sleep(5)
    assert bench.versions(1) == version
    breakable_kafka.slow_disk(1).set(80)
    bench.until(lambda: entry(bench)["reading"] == "Failing", 50)
    assert "(writes over 50 ms: median" in entry(bench)["message"]
    assert entry(bench)["harm"]["lostMilliseconds"] >= 900
    bench.until(lambda: entry(bench)["latencyMicroseconds"] >= 80_000, 50)
    breakable_kafka.slow_disk(1).clear()
    bench.until(lambda: entry(bench)["reading"] == "Passing", 60)
    process.send_signal(signal.SIGTERM)
    assert process.wait(limit(60)) == 0, bench.logs()
    assert not (breakable_kafka.broker(1).log_dir / FILE_NAME).exists()


@pytest.mark.slow
def test_a_disk_that_stalls_fails_while_the_write_still_hangs(bench: Any, breakable_kafka: KafkaCluster) -> None:
    started(bench, breakable_kafka)
    breakable_kafka.slow_disk(1).set(60000)
    bench.until(lambda: entry(bench)["reading"] == "Failing", 50)
    assert "(a write has not ended for " in entry(bench)["message"]
    breakable_kafka.slow_disk(1).clear()


@pytest.mark.slow
def test_slow_syncs_alone_are_no_harm_and_are_reported(bench: Any, breakable_kafka: KafkaCluster) -> None:
    started(bench, breakable_kafka)
    breakable_kafka.slow_disk(1).set(800, "fsync")
    bench.until(lambda: float(entry(bench).get("value") or 0) >= 0.5, 60)
    assert (entry(bench)["reading"], entry(bench).get("harm")) == ("Passing", None)
    breakable_kafka.slow_disk(1).clear()
    bench.until(lambda: float(entry(bench).get("value") or 0) < 0.5, 60)


@pytest.mark.slow
def test_reads_that_are_slow_alone_fail_by_a_signal_of_their_own(bench: Any, breakable_kafka: KafkaCluster) -> None:
    old = breakable_kafka.broker(1).log_dir / "old-segments-0"
    old.mkdir()
    for offset in (0, 500):
        (old / f"{offset:020}.log").write_bytes(b"x" * 65536)
    try:
        started(bench, breakable_kafka)
        bench.until(lambda: entry(bench, "ReadLatency").get("reading") == "Passing", 40)
        breakable_kafka.slow_disk(1).set(80, "read")
        bench.until(lambda: entry(bench, "ReadLatency")["reading"] == "Failing", 50)
        # The message of a read that has not ended yet is another one.
        assert re.search(
            "\\((reads over 50 ms: median|a read has not ended within 50 ms)", entry(bench, "ReadLatency")["message"]
        )
        assert entry(bench)["reading"] == "Passing"
        breakable_kafka.slow_disk(1).clear()
        bench.until(lambda: entry(bench, "ReadLatency")["reading"] == "Passing", 60)
    finally:
        breakable_kafka.slow_disk(1).clear()
        shutil.rmtree(old)


@pytest.mark.slow
def test_broker_starts_with_probes_file_in_its_log_directory(breakable_kafka: KafkaCluster) -> None:
    broker = breakable_kafka.broker(2)
    file = broker.log_dir / FILE_NAME
    file.write_bytes(b"\0" * 4096)
    try:
        broker.restart()
        assert file.exists()
    finally:
        file.unlink()
