"""From real traffic to a plan and back: what is measured, forecast and moved, held against what the clients did.

Producers write at uneven, steady rates, and consumers read one topic four times and the other once. The sampler
samples, and asks a real Prometheus, which scrapes the brokers' JMX exporters, what is read; ``bellwether rebalance``
measures, plans, rechecks and applies. Nothing of Bellwether's own is believed: what was sent is counted by the
producers as brokers acknowledge it, what was read by the consumers, what a broker carries by the kernel (bytes that its
process read and wrote), and data is held against itself by reading all of it before and after.
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
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import Partition
from bellwether.kafka_connection import Connection
from bellwether_load.sampling.topic_consumption import DEFAULT_QUERY
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.plan_files import read_plan
from realparts.kafka import create_topics
from testkit.loads.sample_rounds import read_table
from waiting import limit

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster
    from realparts.prometheus import PrometheusServer

pytestmark = [pytest.mark.kafka, pytest.mark.prometheus, pytest.mark.slow, pytest.mark.timeout(900)]


RECORD_BYTES = 4000
# Incompressible, and different for every record that is near another one.
BLOCKS = [hashlib.shake_256(str(n).encode()).digest(RECORD_BYTES) for n in range(256)]

Key = tuple[str, int]


@dataclass(frozen=True)
class Workload:
    """One topic: records a second by partition, the replicas of each, and how many consumers read all of it."""

    rates: Sequence[int]
    replicas: Sequence[Sequence[int]]
    consumers: int

    @property
    def partitions(self) -> int:
        """How many."""
        return len(self.rates)


def payload(partition: int, number: int) -> bytes:
    """The value of a partition's record of that offset."""
    return BLOCKS[(partition * 37 + number) % 256]


def rates(work: Mapping[str, Workload]) -> dict[Key, int]:
    """Records a second by partition."""
    return {(topic, index): rate for topic, one in work.items() for index, rate in enumerate(one.rates)}


class Traffic:
    """Producers that keep to their rates and consumers that read along, until they are ended.

    Counts records by partition: those that brokers have acknowledged, and those that consumers were given.
    """

    def __init__(self, bootstrap: str, work: Mapping[str, Workload]) -> None:
        settings = {"bootstrap.servers": bootstrap}
        self._producer = Producer({**settings, "enable.idempotence": True, "linger.ms": 5})
        self._consumers = [_consumer(settings, topic, one) for topic, one in work.items() for _ in range(one.consumers)]
        self._rates = rates(work)
        self._over = threading.Event()
        reading = [threading.Thread(target=self._read, args=(one,), daemon=True) for one in self._consumers]
        self._threads = [threading.Thread(target=self._write, daemon=True), *reading]
        self.acknowledged: Counter[Key] = Counter()
        self.consumed: Counter[Key] = Counter()
        self._counting = threading.Lock()
        self.refused: list[str] = []

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(limit(60))
        assert self._producer.flush(60) == 0
        for consumer in self._consumers:
            consumer.close()

    def counted(self) -> Count:
        """So far."""
        with self._counting:
            return Count(time.monotonic(), Counter(self.acknowledged), Counter(self.consumed))

    def _write(self) -> None:
        began, sent = time.monotonic(), Counter[Key]()
        while not self._over.is_set():
            passed = time.monotonic() - began
            for (topic, partition), rate in self._rates.items():
                while (number := sent[topic, partition]) < rate * passed:
                    self._producer.produce(
                        topic,
                        payload(partition, number),
                        key=str(number),
                        partition=partition,
                        on_delivery=self._acknowledge,
                    )
                    sent[topic, partition] += 1
            self._producer.poll(0.02)

    def _acknowledge(self, error: Any, message: Any) -> None:
        if error is not None:
            self.refused.append(str(error))
        else:
            with self._counting:
                self.acknowledged[message.topic(), message.partition()] += 1

    def _read(self, consumer: Consumer) -> None:
        while not self._over.is_set():
            for message in consumer.consume(200, 0.2):
                if message.error() is None:
                    with self._counting:
                        self.consumed[message.topic(), message.partition()] += 1


@dataclass(frozen=True)
class Count:
    """Records by partition until a moment of the monotonic clock."""

    at: float
    acknowledged: Counter[Key]
    consumed: Counter[Key]

    def since(self, before: Count) -> tuple[dict[Key, float], dict[Key, float]]:
        """Bytes/s that came in and went out, by partition."""
        each = RECORD_BYTES / (self.at - before.at)
        return (
            {key: (count - before.acknowledged[key]) * each for key, count in self.acknowledged.items()},
            {key: (self.consumed[key] - before.consumed[key]) * each for key in self.acknowledged},
        )


def _consumer(settings: Mapping[str, str], topic: str, work: Workload) -> Consumer:
    """It reads all that comes to a topic from now on."""
    consumer = Consumer({**settings, "group.id": f"reads-{uuid.uuid4().hex}", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, index, OFFSET_END) for index in range(work.partitions)])
    return consumer


# Heavy-tailed; the heaviest partitions, and all of the topic that is read most, are led by broker 1 to begin with.
WORK = {
    "orders": Workload(
        (40, 28, 22, 16, 12, 10, 8, 6, 5, 4, 3, 2),
        [[1, 2, 3], [1, 3, 2], [1, 2, 3], [1, 3, 2], [1, 2, 3], [2, 3, 1], [3, 1, 2], [2, 1, 3], [3, 2, 1]]
        + [[1, 2, 3]] * 3,
        consumers=1,
    ),
    "prices": Workload((10, 7, 5, 3), [[1, 2, 3], [1, 3, 2]] * 2, consumers=4),
}
PARTITIONS = tuple(rates(WORK))
MEASURED_SECONDS = 130
AFTERWARDS_SECONDS = 45
# The default averages over three minutes, longer than all that is measured here.
QUERY = DEFAULT_QUERY.replace("[3m]", "[20s]")


def moved_by(brokers: KafkaCluster) -> dict[int, int]:
    """Bytes that each broker's process has read and written so far, files and sockets alike, as the kernel counts."""
    found = {}
    for number in (1, 2, 3):
        text = Path(f"/proc/{brokers.broker(number).process.pid}/io").read_text()
        said = dict(line.split(": ") for line in text.splitlines())
        found[number] = int(said["rchar"]) + int(said["wchar"])
    return found


class Checksums:
    """A digest over every record, partition by partition, each in its order up to a given end."""

    def __init__(self, bootstrap: str) -> None:
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": f"check-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }

    def ends(self) -> dict[Key, int]:
        consumer = Consumer(self._settings)
        found = {key: consumer.get_watermark_offsets(TopicPartition(*key), 30)[1] for key in PARTITIONS}
        consumer.close()
        return found

    def read(self, ends: Mapping[Key, int]) -> dict[Key, str]:
        consumer = Consumer(self._settings)
        consumer.assign([TopicPartition(*key, 0) for key in ends])
        digests = {key: hashlib.sha256() for key in ends}
        left = dict(ends)
        deadline = time.monotonic() + limit(120)
        while any(left.values()):
            assert time.monotonic() < deadline, left
            message = consumer.poll(1)
            if message is None or message.error():
                continue
            key, offset = (message.topic(), message.partition()), message.offset()
            if offset >= ends[key]:
                continue
            number = int(message.key())
            assert number == offset, "every record once, and in its order"
            assert message.value() == payload(key[1], number)
            digests[key].update(message.key() + message.value())
            left[key] -= 1
        consumer.close()
        return {key: digest.hexdigest() for key, digest in digests.items()}


@pytest.fixture(scope="module")
def brokers() -> Iterator[KafkaCluster]:
    """Three brokers with both topics, which serve their metrics."""
    from realparts.kafka import KafkaCluster

    with KafkaCluster(3, proxied=False, metrics=True) as cluster:
        replicas = {topic: work.replicas for topic, work in WORK.items()}
        create_topics(cluster.bootstrap, {topic: work.partitions for topic, work in WORK.items()}, assignments=replicas)
        yield cluster


@pytest.fixture
def prometheus(brokers: KafkaCluster, tmp_path: Path) -> Iterator[PrometheusServer]:
    """It scrapes the brokers, each under the name that a pod of Strimzi has."""
    from realparts.prometheus import PrometheusServer

    targets = {str(broker.metrics): {"pod": f"kafka-{number}"} for number, broker in brokers.brokers.items()}
    with PrometheusServer(tmp_path / "prometheus", targets=targets) as server:
        yield server


@pytest.fixture
def sampler(brokers: KafkaCluster, prometheus: PrometheusServer, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "bellwether", "sample", "--bootstrap", brokers.bootstrap, "--period", "5"]
    command += ["--store", str(tmp_path / "store"), "--prometheus", prometheus.url, "--consume-query", QUERY]
    with (tmp_path / "sampler.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(limit(20))


def partitions_of(brokers: KafkaCluster) -> dict[Key, Partition]:
    reader = KafkaReader(BrokerPool(Connection(tuple(brokers.bootstrap.split(",")))))
    return {(p.topic, p.index): p for p in reader.partitions(WORK)}


def carried(
    standing: Mapping[Key, Partition], produced: Mapping[Key, float], consumed: Mapping[Key, float]
) -> dict[int, float]:
    """What each broker carries by the clients' count: a leader takes a byte and hands it on, a follower takes it."""
    found = dict.fromkeys((1, 2, 3), 0.0)
    for key, partition in standing.items():
        for broker in partition.replicas:
            lead = partition.leader == broker
            found[broker] += produced[key] * len(partition.replicas) + consumed[key] if lead else produced[key]
    return found


def run(brokers: KafkaCluster, store: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "bellwether", "rebalance", "--bootstrap", brokers.bootstrap, "--store", str(store)]
    command += ["--minimum-hours", "0", "--minimum-measured", "0", "--statistic", "Median", "--wave-size", "3"]
    command += ["--wave-pause", "1", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=limit(400), check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def measured(store: Path, column: str) -> dict[Key, float | None]:
    """A column of the newest loads, by partition."""
    folder = max((store / "loads").iterdir(), key=lambda path: path.name)
    rows = [row for part in sorted(folder.glob("*.parquet")) for row in table(store, part)]
    return {(row["topic"], row["partition"]): row[column] for row in rows if row["topic"] in WORK}


def test_loads_forecast_and_data_hold_on_real_brokers(
    brokers: KafkaCluster, prometheus: PrometheusServer, sampler: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    store, checks = tmp_path / "store", Checksums(brokers.bootstrap)
    with Traffic(brokers.bootstrap, WORK) as traffic:
        time.sleep(5)
        start = traffic.counted()
        time.sleep(MEASURED_SECONDS)
        sent, read = traffic.counted().since(start)
        before = partitions_of(brokers)
        ends = checks.ends()

        said = run(brokers, store, "--dry-run")
        found = re.search(r"plan ([0-9a-f]{32}): verified", said)
        assert found is not None, said
        digest = found[1]

        # Measured loads within 10 % of what the clients sent and were given, partition by partition.
        for name, true in (("produce", sent), ("consume", read)):
            loads = measured(store, f"{name}_median")
            assert set(loads) == set(PARTITIONS)
            off = {key: (load or 0.0) / true[key] - 1 for key, load in loads.items()}
            tell(f"{name} loads against the clients' count: worst {max(off.values(), key=abs):+.2%}")
            assert all(abs(value) < 0.1 for value in off.values()), off

        stood = checks.read(ends)
        run(brokers, store, "--approve", digest, "--record", str(tmp_path / "undo.json"))
        prometheus.stop()  # being scraped is no part of the load
        after = partitions_of(brokers)
        time.sleep(5)
        began, kernel = traffic.counted(), moved_by(brokers)
        time.sleep(AFTERWARDS_SECONDS)
        ended, moved = traffic.counted(), moved_by(brokers)
        assert traffic.refused == []

    # Only leaders moved: the same replicas, other orders, and the first of each leads.
    assert {i: sorted(p.replicas) for i, p in after.items()} == {i: sorted(p.replicas) for i, p in before.items()}
    assert all(p.leader == p.replicas[0] for p in after.values())

    # The busiest broker carries what the plan foretold, by the clients' count and by the kernel's.
    plan = read_plan(Store.open(str(store)), digest)
    by_clients = carried(after, *ended.since(began))
    seconds = ended.at - began.at
    # A byte in and a byte out are one each at the sockets; each is read from, or written to, a file as well.
    by_kernel = {b: (moved[b] - kernel[b]) / 2 / seconds for b in moved}
    busiest, physical = max(by_clients.values()), max(by_kernel.values())
    unplanned = max(carried(before, sent, read).values())
    unread = max(carried(after, sent, dict.fromkeys(read, 0.0)).values())
    tell(
        f"busiest broker: {unplanned:,.0f} B/s before, {plan.after.max:,.0f} foretold, {busiest:,.0f} by the"
        f" clients' count ({busiest / plan.after.max - 1:+.2%}), {physical:,.0f} by the kernel's"
        f" ({physical / plan.after.max - 1:+.2%}); {unread:,.0f} without the consumers; gap to the bound"
        f" {plan.certificate.gap:.3%}"
    )
    assert abs(unplanned / plan.before.max - 1) < 0.1
    assert abs(busiest / plan.after.max - 1) < 0.1
    assert abs(physical / plan.after.max - 1) < 0.1
    assert busiest < 0.8 * unplanned
    assert unread < 0.9 * busiest, "a forecast that left the consumers out would be off by more than it may"

    # Data is untouched: what was before the plan reads the same, and all that was acknowledged since is there once.
    whole = checks.ends()
    assert whole == dict(traffic.acknowledged)
    assert checks.read(ends) == stood
    checks.read(whole)


def tell(measured: str) -> None:
    """Say what was measured; pytest shows it with -rA or -s."""
    sys.stderr.write(f"[measured] {measured}\n")


def table(store: Path, part: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_table(Store.open(str(store)), part.relative_to(store).as_posix()).to_pylist()
    return rows
