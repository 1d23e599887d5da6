"""From real traffic to a plan and back: what is measured, forecast and moved, held against what the clients did.

Producers write at uneven, steady rates; the sampler samples; ``bellwether rebalance`` measures, plans,
rechecks and applies. Nothing of Bellwether's own is believed: what was sent is counted by the producers as brokers
acknowledge it, what a broker carries by the kernel (bytes that its process read and wrote), and data is held against
itself by reading all of it before and after.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.store.filesystems import Store
from bellwether.adapters.store.plans.plan_files import read_plan
from bellwether.core.model.cluster import Partition
from bellwether.kafka_connection import Connection
from realparts.kafka import create_topics
from waiting import limit

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(900)]

RECORD = 4000
# Records a second, heavy-tailed; the heaviest partitions are all led by broker 1 to begin with.
RATES = [40, 28, 22, 16, 12, 10, 8, 6, 5, 4, 3, 2]
ASSIGNMENT = [[1, 2, 3], [1, 3, 2], [1, 2, 3], [1, 3, 2], [1, 2, 3], [2, 3, 1], [3, 1, 2], [2, 1, 3], [3, 2, 1]] + [
    [1, 2, 3]
] * 3
MEASURED_SECONDS = 130
AFTERWARDS_SECONDS = 45
# Incompressible, and different for every record that is near another one.
BLOCKS = [hashlib.shake_256(str(n).encode()).digest(RECORD) for n in range(256)]


def payload(partition: int, number: int) -> bytes:
    return BLOCKS[(partition * 37 + number) % 256]


class Traffic:
    """Producers that keep to their rates until they are ended; counts what brokers have acknowledged, by partition."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5}
        self._producer = Producer(settings)
        self._topic = topic
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.acknowledged: dict[int, int] = defaultdict(int)
        self.refused: list[str] = []

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        self._over.set()
        self._thread.join(limit(60))
        assert self._producer.flush(60) == 0

    def counted(self) -> tuple[float, dict[int, int]]:
        return time.monotonic(), dict(self.acknowledged)

    def _run(self) -> None:
        began, sent = time.monotonic(), [0] * len(RATES)
        while not self._over.is_set():
            passed = time.monotonic() - began
            for partition, rate in enumerate(RATES):
                while sent[partition] < rate * passed:
                    self._producer.produce(
                        self._topic,
                        payload(partition, sent[partition]),
                        key=str(sent[partition]),
                        partition=partition,
                        on_delivery=self._count,
                    )
                    sent[partition] += 1
            self._producer.poll(0.02)

    def _count(self, error: Any, message: Any) -> None:
        if error is not None:
            self.refused.append(str(error))
        else:
            self.acknowledged[message.partition()] += 1


def rates(before: tuple[float, dict[int, int]], after: tuple[float, dict[int, int]]) -> dict[int, float]:
    """Bytes/s that were acknowledged between two countings, by partition."""
    seconds = after[0] - before[0]
    return {p: (after[1].get(p, 0) - before[1].get(p, 0)) * RECORD / seconds for p in range(len(RATES))}


def moved_by(brokers: KafkaCluster) -> dict[int, int]:
    """Bytes that each broker's process has read and written so far, files and sockets alike, as the kernel counts."""
    found = {}
    for number in (1, 2, 3):
        text = Path(f"/proc/{brokers.broker(number).process.pid}/io").read_text()
        said = dict(line.split(": ") for line in text.splitlines())
        found[number] = int(said["rchar"]) + int(said["wchar"])
    return found


class Checksums:
    """A digest over every record of a topic, partition by partition, each in its order up to a given end."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": f"check-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
        self._topic = topic

    def ends(self) -> dict[int, int]:
        consumer = Consumer(self._settings)
        found = {p: consumer.get_watermark_offsets(TopicPartition(self._topic, p), 30)[1] for p in range(len(RATES))}
        consumer.close()
        return found

    def read(self, ends: Mapping[int, int]) -> dict[int, str]:
        consumer = Consumer(self._settings)
        consumer.assign([TopicPartition(self._topic, p, 0) for p in ends])
        digests = {p: hashlib.sha256() for p in ends}
        left = dict(ends)
        deadline = time.monotonic() + limit(120)
        while any(left.values()):
            assert time.monotonic() < deadline, left
            message = consumer.poll(1)
            if message is None or message.error():
                continue
            partition, offset = message.partition(), message.offset()
            if offset >= ends[partition]:
                continue
            number = int(message.key())
            assert number == offset, "every record once, and in its order"
            assert message.value() == payload(partition, number)
            digests[partition].update(message.key() + message.value())
            left[partition] -= 1
        consumer.close()
        return {p: digest.hexdigest() for p, digest in digests.items()}


@pytest.fixture
def topic(kafka: KafkaCluster) -> str:
    name = f"trip-{uuid.uuid4().hex[:8]}"
    create_topics(kafka.bootstrap, {name: len(RATES)}, assignments={name: ASSIGNMENT})
    return name


@pytest.fixture
def sampler(kafka: KafkaCluster, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "bellwether", "sample", "--bootstrap", kafka.bootstrap, "--period", "5"]
    with (tmp_path / "sampler.log").open("wb") as log:
        process = subprocess.Popen([*command, "--store", str(tmp_path / "store")], stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(limit(20))


def partitions_of(kafka: KafkaCluster, topic: str) -> dict[int, Partition]:
    reader = KafkaReader(BrokerPool(Connection(tuple(kafka.bootstrap.split(",")))))
    return {p.index: p for p in reader.partitions([topic])}


def carried(standing: Mapping[int, Partition], produced: Mapping[int, float]) -> dict[int, float]:
    """What each broker carries by the clients' count: a leader takes a byte and hands it on, a follower takes it."""
    found = dict.fromkeys((1, 2, 3), 0.0)
    for index, partition in standing.items():
        for broker in partition.replicas:
            lead = partition.leader == broker
            found[broker] += produced[index] * (len(partition.replicas) if lead else 1)
    return found


def run(kafka: KafkaCluster, store: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "bellwether", "rebalance", "--bootstrap", kafka.bootstrap, "--store", str(store)]
    command += ["--statistic", "Median", "--wave-size", "3", "--wave-pause", "1", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=limit(400), check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_loads_forecast_and_data_hold_on_real_brokers(
    kafka: KafkaCluster, topic: str, sampler: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    store, checks = tmp_path / "store", Checksums(kafka.bootstrap, topic)
    with Traffic(kafka.bootstrap, topic) as traffic:
        time.sleep(5)
        start = traffic.counted()
        time.sleep(MEASURED_SECONDS)
        sent = rates(start, traffic.counted())
        before = partitions_of(kafka, topic)
        ends = checks.ends()

        said = run(kafka, store, "--dry-run")
        found = re.search(r"plan ([0-9a-f]{32}): verified", said)
        assert found is not None, said
        digest = found[1]

        # Measured loads within 10 % of what the clients sent, partition by partition.
        folder = max((store / "loads").iterdir(), key=lambda path: path.name)
        rows = [row for part in sorted(folder.glob("*.parquet")) for row in table(store, part)]
        measured = {row["partition"]: row["produce_median"] for row in rows if row["topic"] == topic}
        assert set(measured) == set(range(len(RATES)))
        off = {p: measured[p] / sent[p] - 1 for p in measured}
        tell(f"loads against what was sent: worst {max(off.values(), key=abs):+.2%}")
        assert all(abs(value) < 0.1 for value in off.values()), off

        stood = checks.read(ends)
        run(kafka, store, "--approve", digest, "--record", str(tmp_path / "undo.json"))
        after = partitions_of(kafka, topic)
        time.sleep(5)
        began, kernel = traffic.counted(), moved_by(kafka)
        time.sleep(AFTERWARDS_SECONDS)
        ended, moved = traffic.counted(), moved_by(kafka)
        now = rates(began, ended)
        assert traffic.refused == []

    # Only leaders moved: the same replicas, other orders, and the first of each leads.
    assert {i: sorted(p.replicas) for i, p in after.items()} == {i: sorted(p.replicas) for i, p in before.items()}
    assert all(p.leader == p.replicas[0] for p in after.values())

    # The busiest broker carries what the plan foretold, by the clients' count and by the kernel's.
    plan = read_plan(Store.open(str(store)), digest)
    by_clients = carried(after, now)
    seconds = ended[0] - began[0]
    # A byte in and a byte out are one each at the sockets; each is read from, or written to, a file as well.
    by_kernel = {b: (moved[b] - kernel[b]) / 2 / seconds for b in moved}
    busiest, physical = max(by_clients.values()), max(by_kernel.values())
    unplanned = max(carried(before, sent).values())
    tell(
        f"busiest broker: {unplanned:,.0f} B/s before, {plan.after.max:,.0f} foretold, {busiest:,.0f} by the"
        f" clients' count ({busiest / plan.after.max - 1:+.2%}), {physical:,.0f} by the kernel's"
        f" ({physical / plan.after.max - 1:+.2%}); gap to the bound {plan.certificate.gap:.3%}"
    )
    assert abs(unplanned / plan.before.max - 1) < 0.1
    assert abs(busiest / plan.after.max - 1) < 0.1
    assert abs(physical / plan.after.max - 1) < 0.1
    assert busiest < 0.8 * unplanned

    # Data is untouched: what stood before the plan reads the same, and all that was acknowledged since is there once.
    whole = checks.ends()
    assert {p: whole[p] for p in whole} == {p: traffic.acknowledged[p] for p in whole}
    assert checks.read(ends) == stood
    checks.read(whole)


def tell(measured: str) -> None:
    """Say what was measured; pytest shows it with -rA or -s."""
    sys.stderr.write(f"[measured] {measured}\n")


def table(store: Path, part: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = Store.open(str(store)).read_table(part.relative_to(store).as_posix()).to_pylist()
    return rows
