"""Each fault that the starters can play breaks what it names, and nothing beside it."""

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


@pytest.mark.kafka
def test_a_cut_proxy_cuts_the_external_way_alone(breakable_kafka: KafkaCluster) -> None:
    broker = breakable_kafka.broker(2)
    proxy_of(breakable_kafka).cut(broker.proxy_name)
    assert not connects(broker.external)
    assert connects(broker.internal)
    assert connects(broker.external_listen)
    assert connects(breakable_kafka.broker(1).external)
    proxy_of(breakable_kafka).mend(broker.proxy_name)
    assert live_brokers(broker.external) == {1, 2, 3}


@pytest.mark.kafka
@pytest.mark.parametrize("fault", ["blackhole", "reset_peer"])
def test_a_poisoned_proxy_connects_but_answers_nothing(breakable_kafka: KafkaCluster, fault: str) -> None:
    broker = breakable_kafka.broker(3)
    getattr(proxy_of(breakable_kafka), fault)(broker.proxy_name)
    assert connects(broker.external)
    assert live_brokers(broker.external, timeout_seconds=1.5) == frozenset()
    proxy_of(breakable_kafka).mend(broker.proxy_name)
    assert live_brokers(broker.external) == {1, 2, 3}


@pytest.mark.kafka
def test_a_slow_way_answers_late(breakable_kafka: KafkaCluster) -> None:
    broker = breakable_kafka.broker(1)
    proxy_of(breakable_kafka).slow(broker.proxy_name, 400)
    started = time.monotonic()
    assert live_brokers(broker.external, timeout_seconds=10) == {1, 2, 3}
    assert time.monotonic() - started >= 0.4


@pytest.mark.kafka
def test_a_frozen_broker_connects_but_answers_nothing_and_comes_back(breakable_kafka: KafkaCluster) -> None:
    broker = breakable_kafka.broker(1)
    broker.pause()
    assert connects(broker.internal)
    assert live_brokers(broker.internal, timeout_seconds=1) == frozenset()
    broker.resume()
    broker.wait_ready(30)


@pytest.mark.kafka
def test_a_broker_restarts_at_its_old_addresses(breakable_kafka: KafkaCluster) -> None:
    broker = breakable_kafka.broker(3)
    before = broker.process.pid
    broker.restart()
    assert broker.process.pid != before
    assert live_brokers(broker.external) == {1, 2, 3}


@pytest.mark.kafka
def test_a_slow_disk_slows_what_its_own_broker_leads(breakable_kafka: KafkaCluster) -> None:
    topic = f"slowed-{uuid.uuid4()}"
    placed = [[broker] for broker in (1, 2, 3)]
    create_topics(breakable_kafka.bootstrap, {topic: 3}, assignments={topic: placed})
    latency_of_leader(breakable_kafka, topic, 2)  # the first writes open files and load classes
    breakable_kafka.slow_disk(2).set(80)
    assert latency_of_leader(breakable_kafka, topic, 2) >= 0.08
    assert latency_of_leader(breakable_kafka, topic, 1) < 0.06
    assert latency_of_leader(breakable_kafka, topic, 3) < 0.06
    breakable_kafka.slow_disk(2).clear()
    assert latency_of_leader(breakable_kafka, topic, 2) < 0.06


def latency_of_leader(cluster: KafkaCluster, topic: str, broker: int) -> float:
    """Median seconds until an acks=1 write to the partition on that broker is acknowledged."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": 1, "linger.ms": 0})
    producer.list_topics(topic, timeout=10)
    taken = []
    for _ in range(9):
        started = time.monotonic()
        producer.produce(topic, b"x", partition=broker - 1)
        assert producer.flush(10) == 0
        taken.append(time.monotonic() - started)
    return sorted(taken)[len(taken) // 2]


TIMED = """
import os, sys, time
for name in sys.argv[1:]:
    with open(name, "wb", buffering=0) as file:
        started = time.monotonic(); file.write(b"x"); wrote = time.monotonic()
        os.fdatasync(file); synced = time.monotonic()
    print(wrote - started, synced - wrote)
"""


@pytest.mark.parametrize(("mode", "slow_write"), [("fsync", False), ("write+fsync", True)])
def test_the_shim_delays_one_directory_in_the_named_mode(tmp_path: Path, mode: Mode, slow_write: bool) -> None:
    disk = SlowDisk(tmp_path / "slow", tmp_path / "control")
    disk.set(60, mode)
    beside = tmp_path / "slow-but-another"
    beside.mkdir()
    inside_write, inside_sync, outside_write, outside_sync = timed(disk, disk.directory / "file", beside / "file")
    assert (inside_write >= 0.06) is slow_write
    assert inside_sync >= 0.06
    assert outside_write < 0.06
    assert outside_sync < 0.06
    disk.clear()
    assert max(timed(disk, disk.directory / "file")) < 0.06


def timed(disk: SlowDisk, *files: Path) -> list[float]:
    command = [sys.executable, "-I", "-c", TIMED, *(str(file) for file in files)]
    ended = subprocess.run(command, env=disk.environment(), capture_output=True, text=True, check=True)
    return [float(number) for number in ended.stdout.split()]
