"""``bellwether sample`` next to real brokers measures what clients sent, in spite of freezes and new leaders."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
import uuid
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.brokers.log_dirs import LogDirs
from bellwether.adapters.kafka.brokers.log_ends import LogEnds
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import TopicPartition
from bellwether.kafka_connection import Connection
from bellwether.ports.kafka import Reorder
from bellwether_load.sampling.rounds import Rounds, SamplingRound, Sources
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.sample_files import list_rounds
from realparts.kafka import create_topics
from realparts.kafka_topics import admin, delete_topics
from testkit.loads.sample_rounds import read_table
from testkit.values.security_settings import PLAINTEXT
from waiting import limit, until

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
    """Producers that keep to their rates. By partition: when each record was sent, and when it was acknowledged."""

    def __init__(self, bootstrap: str, topic: str, rates: Mapping[int, int]) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 20})
        self._topic = topic
        self._rates = rates
        self.sent: dict[int, list[float]] = {partition: [] for partition in rates}
        self.acknowledged: dict[int, list[float]] = {partition: [] for partition in rates}

    def run(self, seconds: float) -> None:
        began = time.monotonic()
        while (passed := time.monotonic() - began) < seconds:
            for partition, rate in self._rates.items():
                while len(self.sent[partition]) < rate * passed:
                    self.sent[partition].append(time.time())
                    self._producer.produce(
                        self._topic, os.urandom(RECORD), partition=partition, on_delivery=self._count
                    )
            self._producer.poll(0.01)
        assert self._producer.flush(30) == 0

    def _count(self, error: Any, message: Any) -> None:
        assert error is None, error
        self.acknowledged[message.partition()].append(time.time())


def sampler(bootstrap: str, store: Path, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bellwether", "sample", "--bootstrap", bootstrap, "--store", str(store)]
    with log.open("ab") as out:
        return subprocess.Popen([*command, "--log-format", "json", *arguments], stdout=out, stderr=out)


def read(store: Store, topic: str) -> dict[int, list[tuple[datetime, int | None, int | None]]]:
    """When, end and size of each of a topic's partitions, in order of time."""
    found: dict[int, list[tuple[datetime, int | None, int | None]]] = defaultdict(list)
    for file in list_rounds(store).rounds:
        table: Any = read_table(store, file.path)
        for row in table.to_pylist():
            if row["topic"] == topic:
                found[row["partition"]].append((row["at"], row["end_offset"], row["log_bytes"]))
    return {partition: sorted(rows, key=lambda row: row[0]) for partition, rows in sorted(found.items())}


def ended(process: subprocess.Popen[bytes]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(limit(60))


def test_what_clients_send_to_three_partitions_is_measured_within_tenth(kafka: KafkaCluster, tmp_path: Path) -> None:
    topic, store, log = topic_on(kafka), Store.open(str(tmp_path / "store")), tmp_path / "log"
    process = sampler(kafka.bootstrap, tmp_path / "store", log, "--period", "1", "--broker-timeout", "2")

    def known() -> dict[int, list[tuple[datetime, int, int]]]:
        """The samples that a broker answered in time."""
        rows = read(store, topic)
        return {p: [(at, end, size) for at, end, size in rows.get(p, []) if None not in (end, size)] for p in RATES}  # type: ignore[misc]

    try:
        until(lambda: all(len(seen) >= 2 for seen in known().values()), 60, seen=log.read_text)
        traffic = Traffic(kafka.bootstrap, topic, RATES)
        traffic.run(WRITING_SECONDS)
        last = time.time()
        until(lambda: all(seen[-1][0].timestamp() > last + 1 for seen in known().values()), 60, seen=log.read_text)
    finally:
        assert ended(process) == 0, log.read_text()
    for partition, seen in known().items():
        sent, acknowledged = traffic.sent[partition], traffic.acknowledged[partition]
        ends, sizes = [end for _, end, _ in seen], [size for _, _, size in seen]
        assert ends[0] == 0
        assert ends[-1] == len(acknowledged) == len(sent)
        assert sizes[-1] - sizes[0] == pytest.approx(len(sent) * RECORD, rel=0.1)
        # And so at every sample: it holds what was acknowledged before it, and nothing that was sent after the next.
        assert len({end for end in ends if 0 < end < ends[-1]}) >= 3
        for (at, end, size), (following, *_) in itertools.pairwise(seen):
            least, most = bisect(acknowledged, at.timestamp()), bisect(sent, following.timestamp())
            assert least <= end <= most
            assert least * RECORD <= size - sizes[0] <= 1.1 * most * RECORD


@pytest.fixture(autouse=True)
def topics_that_go(kafka: KafkaCluster) -> Iterator[None]:
    """What a test makes on the session's brokers goes with it."""
    yield
    known = admin(kafka.bootstrap).list_topics(timeout=limit(30)).topics
    delete_topics(kafka.bootstrap, [name for name in known if name.startswith("load-")])


@pytest.fixture
def connection(breakable_kafka: KafkaCluster) -> Connection:
    return Connection(tuple(breakable_kafka.bootstrap.split(",")), PLAINTEXT)


@pytest.fixture
def rounds(connection: Connection) -> Iterator[Rounds]:
    sources = Sources(KafkaReader(BrokerPool(connection)), LogEnds(connection), LogDirs(connection))
    found = Rounds(sources, SystemClock(), timeout_seconds=1.0, period_seconds=60)
    yield found
    found.close()


def taken(rounds: Rounds, topic: str) -> tuple[SamplingRound, dict[int, tuple[int, int, int | None, int | None]]]:
    """A round, and of each of a topic's partitions leader, epoch, end and size."""
    found = rounds.take(datetime.fromtimestamp(int(time.time()), UTC))
    rows = found.rows
    columns = zip(
        rows.topic, rows.partition, rows.leader, rows.leader_epoch, rows.end_offset, rows.log_bytes, strict=True
    )
    return found, {index: (*rest,) for name, index, *rest in columns if name == topic}  # type: ignore[misc]


def well(rounds: Rounds, topic: str) -> dict[int, tuple[int, int, int | None, int | None]]:
    """The topic's rows in the first round in which all brokers knew it and were quick enough."""
    found: dict[int, tuple[int, int, int | None, int | None]] = {}

    def whole() -> bool:
        nonlocal found
        one, found = taken(rounds, topic)
        return not one.troubles and len(found) == 3 and all(None not in row for row in found.values())

    until(whole, 60)
    return found


def test_a_frozen_broker_costs_its_timeout_and_leaves_only_its_own_partitions_unknown(
    breakable_kafka: KafkaCluster, rounds: Rounds
) -> None:
    # One timeout for the questions, one and a half seconds at most for a map that was first asked of the frozen one.
    limit = 1.0 + 1.5 + 1.5
    for _ in range(4):  # a machine that hangs for a moment makes it longer, and never shorter
        topic = topic_on(breakable_kafka)
        Traffic(breakable_kafka.bootstrap, topic, RATES).run(0.5)
        rows = well(rounds, topic)
        breakable_kafka.broker(3).pause()
        found, frozen = taken(rounds, topic)
        if found.seconds < limit and list(found.troubles) == ["broker 3"]:
            break
        breakable_kafka.mend()
    assert found.seconds < limit
    assert frozen[0] == rows[0]
    assert frozen[1] == rows[1]
    assert frozen[2] == (3, rows[2][1], None, None)
    assert list(found.troubles) == ["broker 3"]
    assert "no answer in time" in found.troubles["broker 3"]
    breakable_kafka.broker(3).resume()


def test_after_leader_has_changed_next_round_tells_of_new_one(
    breakable_kafka: KafkaCluster, connection: Connection, rounds: Rounds
) -> None:
    topic = topic_on(breakable_kafka)
    Traffic(breakable_kafka.bootstrap, topic, RATES).run(0.5)
    before = well(rounds, topic)
    name, mover = TopicPartition(topic, 0), KafkaMover(BrokerPool(connection))
    assert mover.reorder([Reorder(name, (2, 1, 3))])[name].ok
    assert mover.elect([name])[name].ok
    until(lambda: well(rounds, topic)[0][0] == 2, 60)
    Traffic(breakable_kafka.bootstrap, topic, {0: 40}).run(0.5)
    after = well(rounds, topic)
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
    before = well(rounds, topic)
    stale = rounds.sources.maps.read()

    class Stale:
        def read(self) -> Any:
            return stale

    name, mover = TopicPartition(topic, 0), KafkaMover(BrokerPool(connection))
    assert mover.reorder([Reorder(name, (2, 1, 3))])[name].ok
    assert mover.elect([name])[name].ok
    until(lambda: well(rounds, topic)[0][0] == 2, 60)
    rounds.sources = Sources(Stale(), rounds.sources.ends, rounds.sources.sizes)
    found, after = taken(rounds, topic)

    def noted() -> bool:
        nonlocal found, after
        found, after = taken(rounds, topic)
        return not found.troubles and found.answers[1].moved > 0

    until(noted, 60)  # the leader of before learns of it in its own time, and may be slow to answer
    assert after[0][:3] == (1, before[0][1], None)
    assert found.answers[1].moved == 1


@pytest.mark.slow
def test_sampler_that_is_killed_again_and_again_leaves_whole_rounds(kafka: KafkaCluster, tmp_path: Path) -> None:
    topic, path, log = topic_on(kafka), tmp_path / "store", tmp_path / "log"
    store = Store.open(str(path))
    for number in range(4):
        process = sampler(kafka.bootstrap, path, log, "--period", "1", "--broker-timeout", "2")
        try:
            until(lambda number=number: len(read(store, topic).get(0, [])) > 2 * number, 120, seen=log.read_text)  # type: ignore[misc]
            time.sleep(0.13 * number)
        finally:
            process.kill()
            process.wait()
    assert list_rounds(store).foreign == ()
    rows = read(store, topic)
    assert len({len(of_one) for of_one in rows.values()}) == 1
    times = [at for at, _, _ in rows[0]]
    assert len(times) >= 7
    assert times == sorted(set(times)), "no round is there twice"


def test_one_round_is_a_table_and_an_exit_status(breakable_kafka: KafkaCluster, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bellwether", "sample", "--once", "--broker-timeout", "3"]
    command += ["--bootstrap", breakable_kafka.bootstrap, "--store", str(tmp_path / "store")]
    topic_on(breakable_kafka)
    rounds = 0

    def once(status: int) -> subprocess.CompletedProcess[str]:
        nonlocal rounds
        rounds += 1
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == status or rounds > 4:
            assert done.returncode == status, done.stdout + done.stderr
            return done
        # An answer was slow; or the process was slow to begin, and the frozen broker led nothing any more.
        breakable_kafka.mend()
        topic_on(breakable_kafka)
        if status:
            breakable_kafka.broker(3).pause()
        return once(status)

    whole = once(0)
    assert "BROKER  LEADERS  OFFSETS  SIZES  MOVED  MESSAGE" in whole.stdout
    assert f"bytes written to {tmp_path / 'store'}" in whole.stdout
    breakable_kafka.broker(3).pause()
    assert "no answer in time" in once(4).stdout
    assert len(Store.open(str(tmp_path / "store")).list()) == rounds
