"""Each fault that the starters can play breaks what it names, and nothing else."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer

from realparts.kafka import KafkaCluster, create_topics
from realparts.kafka_topics import live_brokers
from realparts.slowdisk import Mode, SlowDisk
from realparts.toxiproxy import Toxiproxy
from waiting import limit, until

pytestmark = pytest.mark.slow


def proxy_of(cluster: KafkaCluster) -> Toxiproxy:
    assert cluster.proxy is not None
    return cluster.proxy


def connects(address: str) -> bool:
    host, port = address.split(":")
    try:
        with socket.create_connection((host, int(port)), timeout=2):
            return True
    except OSError:
        return False


def until_it_names_all(address: str) -> None:
    """Wait until the broker that answers there, in good time, names all three brokers."""
    until(lambda: live_brokers(address), 60, so={1, 2, 3}.__eq__)


@pytest.mark.kafka
def test_a_cut_proxy_cuts_the_external_way_alone(breakable_kafka: KafkaCluster) -> None:
    broker = breakable_kafka.broker(2)
    proxy_of(breakable_kafka).cut(broker.proxy_name)
    assert not connects(broker.external)
    assert connects(broker.internal)
    assert connects(broker.external_listen)
    assert connects(breakable_kafka.broker(1).external)
    proxy_of(breakable_kafka).mend(broker.proxy_name)
    until_it_names_all(broker.external)


@pytest.mark.kafka
@pytest.mark.parametrize("fault", ["blackhole", "reset_peer"])
def test_a_poisoned_proxy_connects_but_answers_nothing(breakable_kafka: KafkaCluster, fault: str) -> None:
    broker = breakable_kafka.broker(3)
    getattr(proxy_of(breakable_kafka), fault)(broker.proxy_name)
    assert connects(broker.external)
    assert live_brokers(broker.external, timeout_seconds=1.5) == frozenset()
    proxy_of(breakable_kafka).mend(broker.proxy_name)
    until_it_names_all(broker.external)


@pytest.mark.kafka
def test_a_slow_way_answers_late(breakable_kafka: KafkaCluster) -> None:
    broker = breakable_kafka.broker(1)
    proxy_of(breakable_kafka).slow(broker.proxy_name, 400)
    started = time.monotonic()
    assert live_brokers(broker.external, timeout_seconds=60) == {1, 2, 3}
    assert time.monotonic() - started >= 0.4


@pytest.mark.kafka
def test_a_frozen_broker_connects_but_answers_nothing_and_comes_back(breakable_kafka: KafkaCluster) -> None:
    broker = breakable_kafka.broker(1)
    broker.pause()
    assert connects(broker.internal)
    assert live_brokers(broker.internal, timeout_seconds=1) == frozenset()
    broker.resume()
    broker.wait_ready()


@pytest.mark.kafka
def test_a_broker_restarts_at_its_old_addresses(breakable_kafka: KafkaCluster) -> None:
    broker = breakable_kafka.broker(3)
    before = broker.process.pid
    broker.restart()
    assert broker.process.pid != before
    until_it_names_all(broker.external)


@pytest.mark.kafka
def test_a_slow_disk_slows_what_its_own_broker_leads(breakable_kafka: KafkaCluster) -> None:
    topic = f"slowed-{uuid.uuid4()}"
    placed = [[broker] for broker in (1, 2, 3)]
    create_topics(breakable_kafka.bootstrap, {topic: 3}, assignments={topic: placed})
    latencies_of_leader(breakable_kafka, topic, 2)  # the first writes open files and load classes
    breakable_kafka.slow_disk(2).set(80)
    # Each write is delayed, or none is: the quickest tells, however busy the machine.
    assert min(latencies_of_leader(breakable_kafka, topic, 2)) >= 0.08
    assert min(latencies_of_leader(breakable_kafka, topic, 1)) < 0.08
    assert min(latencies_of_leader(breakable_kafka, topic, 3)) < 0.08
    breakable_kafka.slow_disk(2).clear()
    assert min(latencies_of_leader(breakable_kafka, topic, 2)) < 0.08


def latencies_of_leader(cluster: KafkaCluster, topic: str, broker: int) -> list[float]:
    """Seconds until each acks=1 write to the partition on that broker is acknowledged."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": 1, "linger.ms": 0})
    producer.list_topics(topic, timeout=limit(30))
    taken = []
    for _ in range(9):
        started = time.monotonic()
        producer.produce(topic, b"x", partition=broker - 1)
        assert producer.flush(30) == 0
        taken.append(time.monotonic() - started)
    return taken


TIMED = """
import mmap, os, sys, time
for name in sys.argv[1:]:
    with open(name, "w+b", buffering=0) as file:
        began = time.monotonic(); file.write(b"x"); wrote = time.monotonic()
        os.fdatasync(file); synced = time.monotonic()
        os.preadv(file.fileno(), [mmap.mmap(-1, 4096)], 0); read = time.monotonic()
    print(wrote - began, synced - wrote, read - synced)
"""


@pytest.mark.parametrize(
    ("mode", "delayed"),
    [("fsync", (False, True, False)), ("write+fsync", (True, False, False)), ("read", (False, False, True))],
)
def test_the_shim_delays_one_directory_in_the_named_mode(
    tmp_path: Path, mode: Mode, delayed: tuple[bool, bool, bool]
) -> None:
    disk = SlowDisk(tmp_path / "slow", tmp_path / "control")
    disk.set(60, mode)
    beside = tmp_path / "slow-but-another"
    beside.mkdir()
    assert tuple(seconds >= 0.06 for seconds in quickest(disk, disk.directory / "file")) == delayed
    assert max(quickest(disk, beside / "file")) < 0.06
    disk.clear()
    assert max(quickest(disk, disk.directory / "file")) < 0.06


def quickest(disk: SlowDisk, file: Path) -> tuple[float, ...]:
    """Seconds of the quickest write, sync and read of nine: a real disk has slow moments, too."""
    command = [sys.executable, "-I", "-c", TIMED, *[str(file)] * 9]
    ended = subprocess.run(command, env=disk.environment(), capture_output=True, text=True, check=True)
    rows = [[float(number) for number in line.split()] for line in ended.stdout.splitlines()]
    return tuple(min(column) for column in zip(*rows, strict=True))
