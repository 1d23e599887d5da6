"""Steady traffic of real clients on real brokers, counted by the clients and by the kernel, and sampled by Bellwether.

In: topics with records a second by partition, and how many consumers read each. Out: records that brokers acknowledged
and consumers got, by partition; bytes/s by broker; a store with samples, loads and plans. Called by tests that compare
measured loads with what clients did.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import Partition
from bellwether.kafka_connection import Connection
from bellwether_load.sampling.topic_consumption import DEFAULT_QUERY
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.sample_files import list_rounds
from testkit.loads.sample_rounds import read_table
from testkit.values.security_settings import PLAINTEXT
from waiting import limit, ran, until

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster
    from realparts.prometheus import PrometheusServer

RECORD_BYTES = 4000
# Incompressible, and different for every record that is near another one.
BLOCKS = [hashlib.shake_256(str(n).encode()).digest(RECORD_BYTES) for n in range(256)]

# The default averages over three minutes, longer than all that is measured here.
QUERY = DEFAULT_QUERY.replace("[3m]", "[20s]")

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

    def waiting(self) -> int:
        """Records that no broker has acknowledged yet."""
        return len(self._producer)

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
    """It reads all that comes to a topic from now on, by a few fetches a second."""
    own = {"group.id": f"reads-{uuid.uuid4().hex}", "enable.auto.commit": False, "fetch.min.bytes": 65536}
    consumer = Consumer({**settings, **own})
    consumer.assign([TopicPartition(topic, index, OFFSET_END) for index in range(work.partitions)])
    return consumer


def carried_by_kernel(brokers: KafkaCluster, seconds: float) -> dict[int, float]:
    """Bytes/s at the sockets of each running broker, measured for so long.

    A byte in and a byte out are one each at the sockets; each is read from, or written to, a file as well.
    """

    def moved() -> dict[int, int]:
        pids = {number: broker.process.pid for number, broker in brokers.brokers.items() if broker.process.alive}
        texts = {number: Path(f"/proc/{pid}/io").read_text() for number, pid in pids.items()}
        return {b: sum(map(int, re.findall(r"^[rw]char: (\d+)", text, re.MULTILINE))) for b, text in texts.items()}

    before, began = moved(), time.monotonic()
    time.sleep(seconds)
    after, passed = moved(), time.monotonic() - began
    return {broker: (after[broker] - before[broker]) / 2 / passed for broker in after}


def partitions_of(brokers: KafkaCluster, work: Mapping[str, Workload]) -> dict[Key, Partition]:
    """The topics' partitions as the brokers have them now."""
    reader = KafkaReader(BrokerPool(Connection(tuple(brokers.bootstrap.split(",")), PLAINTEXT)))
    return {(p.topic, p.index): p for p in reader.partitions(work)}


def carried(
    partitions: Mapping[Key, Partition], produced: Mapping[Key, float], consumed: Mapping[Key, float]
) -> dict[int, float]:
    """Bytes/s of each broker: a leader takes a byte in and gives it to followers and consumers, a follower takes it."""
    found: dict[int, float] = defaultdict(float)
    for key, partition in partitions.items():
        for broker in partition.replicas:
            lead = partition.leader == broker
            found[broker] += produced[key] * len(partition.replicas) + consumed[key] if lead else produced[key]
    return dict(found)


@contextmanager
def serving(work: Mapping[str, Workload], brokers: int = 3, racks: Sequence[str] = ()) -> Iterator[KafkaCluster]:
    """Brokers with these topics, which serve their metrics."""
    from realparts.kafka import KafkaCluster, create_topics

    with KafkaCluster(brokers, proxied=False, metrics=True, racks=racks) as cluster:
        replicas = {topic: one.replicas for topic, one in work.items()}
        create_topics(cluster.bootstrap, {topic: one.partitions for topic, one in work.items()}, assignments=replicas)
        yield cluster


def scraping(brokers: KafkaCluster, folder: Path) -> PrometheusServer:
    """It scrapes the brokers, each under the name that a pod of Strimzi has."""
    from realparts.prometheus import PrometheusServer

    targets = {str(broker.metrics): {"pod": f"kafka-{number}"} for number, broker in brokers.brokers.items()}
    return PrometheusServer(folder, targets=targets)


SETTINGS = """
apiVersion: bellwether.dev/v1alpha1
kind: LeaderRebalance
metadata: {name: measured}
spec:
  policy: measured
  minimumHours: 0
  minimumMeasuredPercent: 0
  objective: {statistic: Median}
  waves: {partitions: 3, pauseSeconds: 1}
"""


@contextmanager
def sampling(brokers: KafkaCluster, prometheus: PrometheusServer, store: Path) -> Iterator[None]:
    """``bellwether sample`` into that store, from the first round on; its log is in the same folder."""
    command = [sys.executable, "-m", "bellwether", "sample", "--bootstrap", brokers.bootstrap, "--period", "5"]
    command += ["--store", str(store), "--prometheus", prometheus.url, "--consume-query", QUERY]
    with store.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            found = Store.open(str(store))
            until(lambda: list_rounds(found).rounds, 90, alive=lambda: process.poll() is None, every=0.2)
            yield
        finally:
            process.terminate()
            process.wait(limit(20))


def bellwether(verb: str, brokers: KafkaCluster, store: Path, *arguments: str) -> str:
    """What a verb prints for these brokers and this store. Fails where its exit status is not 0."""
    command = [sys.executable, "-m", "bellwether", verb, "--bootstrap", brokers.bootstrap, "--store", str(store)]
    done = ran([*command, *arguments], 400)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rebalance(brokers: KafkaCluster, store: Path, *arguments: str) -> str:
    """``bellwether rebalance`` in small waves, with whatever was measured."""
    settings = store.with_suffix(".yaml")
    settings.write_text(SETTINGS)
    return bellwether("rebalance", brokers, store, "--filename", str(settings), *arguments)


def planned(brokers: KafkaCluster, store: Path) -> str:
    """The digest of a plan for the brokers as they are, verified and in the store."""
    said = rebalance(brokers, store, "--dry-run")
    found = re.search(r"plan ([0-9a-f]{32}): verified", said)
    assert found is not None, said
    return found[1]


def measured_loads(store: Path, column: str) -> dict[Key, float | None]:
    """A column of the newest loads, by partition; Kafka's own topics left out."""
    folder = max((store / "loads").iterdir(), key=lambda path: path.name)
    found: dict[Key, float | None] = {}
    for part in sorted(folder.glob("*.parquet")):
        rows: list[dict[str, Any]] = read_table(Store.open(str(store)), part.relative_to(store).as_posix()).to_pylist()
        found |= {(row["topic"], row["partition"]): row[column] for row in rows if not row["topic"].startswith("__")}
    return found


def tell(measured: str) -> None:
    """Say what was measured; pytest shows it with -rA or -s."""
    sys.stderr.write(f"[measured] {measured}\n")
