"""``bellwether sample`` beside real brokers: what clients sent is what it measures, whoever freezes or takes over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.logdirs import LogDirs
from bellwether.adapters.kafka.logends import LogEnds
from bellwether.adapters.kafka.mover import KafkaMover
from bellwether.adapters.kafka.nodes import Nodes
from bellwether.adapters.kafka.reader import KafkaReader
from bellwether.adapters.parquet import samples
from bellwether.adapters.parquet.filesystems import Store
from bellwether.connections import Connection
from bellwether.core.clusters import TopicPartition
from bellwether.ports import Reorder
from bellwether.sampling.rounds import Round, Rounds, Sources
from realparts.kafka import create_topics
from realparts.kafka_topics import admin

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

pytestmark = pytest.mark.kafka

RECORD = 1000
# Records a second, by partition; each is led by another broker.
RATES = {0: 40, 1: 150, 2: 400}
WRITING_SECONDS = 14


def topic_on(brokers: KafkaCluster) -> str:
    """A topic of three partitions: broker 1 leads the first, broker 2 the second, broker 3 the third."""
    name = f"load-{uuid.uuid4().hex[:8]}"
    create_topics(brokers.bootstrap, {name: 3}, assignments={name: [[1, 2, 3], [2, 3, 1], [3, 1, 2]]})
    return name


class Traffic:
    """Producers that keep to their rates, and count what brokers have acknowledged."""

    def __init__(self, bootstrap: str, topic: str, rates: Mapping[int, int]) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 20})
        self._topic = topic
        self._rates = rates
        self.acknowledged: dict[int, int] = defaultdict(int)

    def run(self, seconds: float) -> None:
        began = time.monotonic()
        sent = dict.fromkeys(self._rates, 0)
        while (passed := time.monotonic() - began) < seconds:
            for partition, rate in self._rates.items():
                while sent[partition] < rate * passed:
                    self._producer.produce(
                        self._topic, os.urandom(RECORD), partition=partition, on_delivery=self._count
                    )
                    sent[partition] += 1
            self._producer.poll(0.01)
        assert self._producer.flush(30) == 0

    def _count(self, error: Any, message: Any) -> None:
        assert error is None, error
        self.acknowledged[message.partition()] += 1


def sampler(bootstrap: str, store: Path, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bellwether", "sample", "--bootstrap", bootstrap, "--store", str(store)]
    with log.open("ab") as out:
        return subprocess.Popen([*command, "--log-format", "json", *arguments], stdout=out, stderr=out)


def read(store: Store, topic: str) -> dict[int, list[tuple[datetime, int | None, int | None]]]:
    """When, end and size of each of a topic's partitions, in order of time."""
    found: dict[int, list[tuple[datetime, int | None, int | None]]] = defaultdict(list)
    for day in samples.days(store):
        for path in samples.current_files(store, day):
            table: Any = store.read_table(path)
            for row in table.to_pylist():
                if row["topic"] == topic:
                    found[row["partition"]].append((row["at"], row["end_offset"], row["log_bytes"]))
    return {partition: sorted(rows, key=lambda row: row[0]) for partition, rows in sorted(found.items())}


def until(wanted: Any, seconds: float, log: Path | None = None) -> None:
    deadline = time.monotonic() + seconds
    while not wanted():
        assert time.monotonic() < deadline, log.read_text() if log is not None else ""
        time.sleep(0.1)


def ended(process: subprocess.Popen[bytes]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(20)


def test_what_clients_send_to_three_partitions_is_measured_within_a_tenth(kafka: KafkaCluster, tmp_path: Path) -> None:
    topic, store, log = topic_on(kafka), Store.open(str(tmp_path / "store")), tmp_path / "log"
    process = sampler(kafka.bootstrap, tmp_path / "store", log, "--period", "1", "--broker-timeout", "2")
    try:
        until(lambda: len(read(store, topic).get(2, [])) >= 2, 60, log)
        traffic = Traffic(kafka.bootstrap, topic, RATES)
        traffic.run(WRITING_SECONDS)
        last = time.time()
        until(lambda: read(store, topic)[0][-1][0].timestamp() > last + 1, 30, log)
    finally:
        assert ended(process) == 0, log.read_text()
    rows = read(store, topic)
    assert set(rows) == set(RATES)
    for partition, rate in RATES.items():
        seen = [(at, end, size) for at, end, size in rows[partition] if end is not None and size is not None]
        ends, sizes = [end for _, end, _ in seen], [size for _, _, size in seen]
        assert ends[0] == 0
        assert ends[-1] == traffic.acknowledged[partition]
        assert sizes[-1] - sizes[0] == pytest.approx(traffic.acknowledged[partition] * RECORD, rel=0.1)
        # And as a rate, second for second: what lies between the first and the last sample of the time of writing.
        writing = [(at, size) for (at, end, size) in seen if 0 < end < ends[-1]]
        (first, before), (final, after) = writing[1], writing[-1]
        measured = (after - before) / (final - first).total_seconds()
        assert (final - first).total_seconds() >= WRITING_SECONDS / 2
        assert measured == pytest.approx(rate * RECORD, rel=0.1)


@pytest.fixture(autouse=True)
def topics_that_go(kafka: KafkaCluster) -> Iterator[None]:
    """What a test makes on the session's brokers goes with it."""
    yield
    client = admin(kafka.bootstrap)
    made = [name for name in client.list_topics(timeout=30).topics if name.startswith("load-")]
    for deleted in client.delete_topics(made).values() if made else ():
        deleted.result(30)


@pytest.fixture
def connection(breakable_kafka: KafkaCluster) -> Connection:
    return Connection(tuple(breakable_kafka.bootstrap.split(",")))


@pytest.fixture
def rounds(connection: Connection) -> Iterator[Rounds]:
    sources = Sources(KafkaReader(Nodes(connection)), LogEnds(connection), LogDirs(connection))
    found = Rounds(sources, SystemClock(), timeout_seconds=1.0, period_seconds=60)
    yield found
    found.close()


def taken(rounds: Rounds, topic: str) -> tuple[Round, dict[int, tuple[int, int, int | None, int | None]]]:
    """A round, and of each of a topic's partitions leader, epoch, end and size."""
    found = rounds.take(datetime.fromtimestamp(int(time.time()), UTC))
    rows = found.rows
    columns = zip(
        rows.topic, rows.partition, rows.leader, rows.leader_epoch, rows.end_offset, rows.log_bytes, strict=True
    )
    return found, {index: (*rest,) for name, index, *rest in columns if name == topic}  # type: ignore[misc]


def test_a_frozen_broker_costs_its_timeout_and_leaves_only_its_own_partitions_unknown(
    breakable_kafka: KafkaCluster, rounds: Rounds
) -> None:
    topic = topic_on(breakable_kafka)
    Traffic(breakable_kafka.bootstrap, topic, RATES).run(0.5)
    whole, rows = taken(rounds, topic)
    assert (whole.troubles, [row[2] is None for row in rows.values()]) == ({}, [False] * 3)
    breakable_kafka.broker(3).pause()
    found, frozen = taken(rounds, topic)
    # One timeout for the questions, one and a half seconds at most for a map that was first asked of the frozen one.
    assert found.seconds < 1.0 + 1.5 + 1.5
    assert frozen[0] == rows[0]
    assert frozen[1] == rows[1]
    assert frozen[2] == (3, rows[2][1], None, None)
    assert list(found.troubles) == ["broker 3"]
    assert "no answer in time" in found.troubles["broker 3"]
    breakable_kafka.broker(3).resume()


def test_after_the_leader_has_changed_the_next_round_tells_of_the_new_one(
    breakable_kafka: KafkaCluster, connection: Connection, rounds: Rounds
) -> None:
    topic = topic_on(breakable_kafka)
    Traffic(breakable_kafka.bootstrap, topic, RATES).run(0.5)
    _, before = taken(rounds, topic)
    name, mover = TopicPartition(topic, 0), KafkaMover(Nodes(connection))
    assert mover.reorder([Reorder(name, (2, 1, 3))])[name].ok
    assert mover.elect([name])[name].ok
    until(lambda: taken(rounds, topic)[1][0][0] == 2, 20)
    Traffic(breakable_kafka.bootstrap, topic, {0: 40}).run(0.5)
    _, after = taken(rounds, topic)
    leader, epoch, end, size = after[0]
    assert (leader, epoch > before[0][1]) == (2, True)
    assert end is not None
    assert size is not None
    assert before[0][2] is not None
    assert before[0][3] is not None
    assert end > before[0][2]
    assert size > before[0][3]
    assert after[1] == before[1]


def test_a_map_that_is_out_of_date_never_gives_another_leaders_figures(
    breakable_kafka: KafkaCluster, connection: Connection, rounds: Rounds
) -> None:
    topic = topic_on(breakable_kafka)
    _, before = taken(rounds, topic)
    stale = rounds.sources.maps.read()

    class Stale:
        def read(self) -> Any:
            return stale

    name, mover = TopicPartition(topic, 0), KafkaMover(Nodes(connection))
    assert mover.reorder([Reorder(name, (2, 1, 3))])[name].ok
    assert mover.elect([name])[name].ok
    until(lambda: taken(rounds, topic)[1][0][0] == 2, 20)
    rounds.sources = Sources(Stale(), rounds.sources.ends, rounds.sources.sizes)
    found, after = taken(rounds, topic)
    assert after[0][:3] == (1, before[0][1], None)
    assert (found.told[1].moved, found.troubles) == (1, {})


def test_a_sampler_that_is_killed_again_and_again_leaves_whole_rounds(kafka: KafkaCluster, tmp_path: Path) -> None:
    topic, path, log = topic_on(kafka), tmp_path / "store", tmp_path / "log"
    store = Store.open(str(path))
    for number in range(4):
        process = sampler(kafka.bootstrap, path, log, "--period", "1", "--broker-timeout", "2")
        try:
            until(lambda number=number: len(read(store, topic).get(0, [])) > 2 * number, 60, log)  # type: ignore[misc]
            time.sleep(0.13 * number)
        finally:
            process.kill()
            process.wait()
    refused: dict[str, str] = {}
    for day in samples.days(store):
        assert samples.current_files(store, day, said=refused.__setitem__)
    assert refused == {}
    rows = read(store, topic)
    assert len({len(of_one) for of_one in rows.values()}) == 1
    times = [at for at, _, _ in rows[0]]
    assert len(times) >= 7
    assert times == sorted(set(times)), "no round stands twice"


def test_one_round_is_a_table_and_an_exit_status(breakable_kafka: KafkaCluster, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bellwether", "sample", "--once", "--broker-timeout", "1"]
    command += ["--bootstrap", breakable_kafka.bootstrap, "--store", str(tmp_path / "store")]
    topic_on(breakable_kafka)
    well = subprocess.run(command, capture_output=True, text=True, check=False)
    assert well.returncode == 0, well.stdout + well.stderr
    assert "BROKER  LEADS  ENDS  SIZES  MOVED  MESSAGE" in well.stdout
    assert f"bytes written to {tmp_path / 'store'}" in well.stdout
    breakable_kafka.broker(3).pause()
    sick = subprocess.run(command, capture_output=True, text=True, check=False)
    assert sick.returncode == 1, sick.stdout + sick.stderr
    assert "no answer in time" in sick.stdout
    assert len(Store.open(str(tmp_path / "store")).list()) == 2
