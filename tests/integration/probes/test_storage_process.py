"""``bellwether probe storage`` as a process beside a real broker, on a disk that is slow when told to be."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.probes.storage.disk_write import FILE_NAME
from waiting import limit

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]


def started(bench: Any, kafka: KafkaCluster) -> Any:
    broker, disk = kafka.broker(1), kafka.slow_disk(1)
    process = bench.start(
        "storage", "--broker", "1", "--directory", str(broker.log_dir), environment=disk.environment()
    )
    bench.until(lambda: bench.entry(1).get("reading") == "Passing", 40)
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
    bench.until(lambda: bench.entry(1)["reading"] == "Failing", 50)
    assert "took more than 50 ms" in bench.entry(1)["message"]
    assert bench.entry(1)["latencyMicroseconds"] >= 80_000
    breakable_kafka.slow_disk(1).clear()
    bench.until(lambda: bench.entry(1)["reading"] == "Passing", 60)
    process.send_signal(signal.SIGTERM)
    assert process.wait(limit(60)) == 0, bench.logs()
    assert not (breakable_kafka.broker(1).log_dir / FILE_NAME).exists()


@pytest.mark.slow
def test_a_disk_that_stalls_fails_while_the_write_still_hangs(bench: Any, breakable_kafka: KafkaCluster) -> None:
    started(bench, breakable_kafka)
    breakable_kafka.slow_disk(1).set(60000, "fsync")
    bench.until(lambda: bench.entry(1)["reading"] == "Failing", 50)
    assert bench.entry(1)["message"] == "a write has not ended within 5 s"
    breakable_kafka.slow_disk(1).clear()


@pytest.mark.slow
def test_a_broker_starts_with_the_probes_file_in_its_log_directory(breakable_kafka: KafkaCluster) -> None:
    broker = breakable_kafka.broker(2)
    file = broker.log_dir / FILE_NAME
    file.write_bytes(b"\0" * 4096)
    try:
        broker.restart()
        assert file.exists()
    finally:
        file.unlink()
