"""``bellwether probe replication`` as a process, next to real brokers of which one follows slowly, or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kubernetes.api_client import POLICIES
from realparts.kafka import create_topics
from testkit.kafka.producer import SteadyWriter
from waiting import limit, ran

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

PARTITIONS = 12
THRESHOLD = 2
SETTINGS = {"thresholdSeconds": THRESHOLD}


@pytest.fixture
def written(breakable_kafka: KafkaCluster) -> Iterator[KafkaCluster]:
    """Brokers 1 and 2 lead twelve partitions that are written to all the time; broker 3 only follows."""
    topic = f"lag-{uuid.uuid4().hex[:8]}"
    orders = [[1, 2, 3], [2, 1, 3]] * (PARTITIONS // 2)
    create_topics(breakable_kafka.bootstrap, {topic: PARTITIONS}, assignments={topic: orders})
    with SteadyWriter(breakable_kafka.bootstrap, topic, range(PARTITIONS)):
        yield breakable_kafka


def started(bench: Any) -> Any:
    patch = {"spec": {"detection": {"replicationLag": SETTINGS}}}
    bench.api.merge(POLICIES, bench.namespace, "main", patch)
    process = bench.start("replication")
    bench.until(lambda: readings(bench) == ["Passing"] * 3, 40)
    return process


def readings(bench: Any) -> list[Any]:
    return [bench.entry(broker).get("reading") for broker in (1, 2, 3)]


def until_the_third(bench: Any, wanted: Callable[[str], bool], seconds: float) -> float:
    """Wait for broker 3's reading, while those of the well brokers never leave Passing."""

    def reached() -> bool:
        first, second, third = readings(bench)
        assert (first, second) == ("Passing", "Passing"), bench.logs()
        return wanted(third)

    return float(bench.until(reached, seconds))


def test_a_follower_on_a_slow_disk_is_named_with_what_it_holds_back_and_passes_again(
    bench: Any, written: KafkaCluster
) -> None:
    process = started(bench)
    # Twelve partitions, a write of each at every fetch: a round of fetches takes seconds.
    written.slow_disk(3).set(1200)
    until_the_third(bench, lambda reading: reading == "Failing", 40)
    entry = bench.entry(3)
    assert (entry["type"], entry["source"]) == ("ReplicationLag", "replication")
    assert float(entry["value"]) > THRESHOLD
    assert "in the ISR, delaying acks=all), lag-" in entry["message"]
    assert entry["message"].endswith("leaders 1, 2")
    written.slow_disk(3).clear()
    until_the_third(bench, lambda reading: reading == "Passing", 60)
    process.send_signal(signal.SIGTERM)
    assert process.wait(limit(60)) == 0, bench.logs()


def test_frozen_follower_is_unknown_to_itself_alone_and_passes_again(bench: Any, written: KafkaCluster) -> None:
    started(bench)
    written.broker(3).pause()
    # Three rounds, each of which waits for its timeout.
    until_the_third(bench, lambda reading: reading == "Unknown", 3 * (1 + 2) + 40)
    said = bench.entry(3)["message"]
    assert "no answer in time" in said or "it is fenced" in said, "whichever comes first"
    written.broker(3).resume()
    until_the_third(bench, lambda reading: reading == "Passing", 40)


def test_settled_cluster_causes_no_write_while_lease_is_renewed(bench: Any, written: KafkaCluster) -> None:
    assert written.brokers
    started(bench)
    before, renewed = bench.versions(1, 2, 3), bench.lease()["renewTime"]
    time.sleep(8)
    assert bench.versions(1, 2, 3) == before, [bench.entry(b) for b in (1, 2, 3)]
    bench.until(lambda: bench.lease()["renewTime"] > renewed, 30)
    managers = {f["manager"] for f in bench.health(3)["metadata"]["managedFields"]}
    assert "bellwether-prober-replicationlag-replication" in managers


@pytest.mark.slow
def test_a_rolling_restart_fails_no_broker(bench: Any, written: KafkaCluster) -> None:
    started(bench)
    for broker in written.brokers.values():
        broker.restart()
        time.sleep(5)
    bench.until(lambda: readings(bench) == ["Passing"] * 3, 60)
    assert "Failing" not in bench.logs()


def test_one_measurement_is_a_table_and_an_exit_status(bench: Any, written: KafkaCluster) -> None:
    command = [sys.executable, "-m", "bellwether", "probe", "replication", "--once"]
    without = [*command, "--bootstrap", written.broker(1).internal]
    well = subprocess.run(without, capture_output=True, text=True, check=False)
    assert (well.returncode, well.stdout.count("Passing")) == (0, 3), well.stdout + well.stderr
    bench.api.merge(POLICIES, bench.namespace, "main", {"spec": {"detection": {"replicationLag": SETTINGS}}})
    written.slow_disk(3).set(1000)
    time.sleep(3)
    environment = {**os.environ, "KUBECONFIG": str(bench.server.kubeconfig)}
    sick = ran([*command, "--policy", "main", "-n", bench.namespace], env=environment)
    written.slow_disk(3).clear()
    assert (sick.returncode, sick.stdout.count("Failing")) == (4, 1), sick.stdout + sick.stderr
    assert bench.entry(3) == {}
