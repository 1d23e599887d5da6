"""``bellwether probe canary`` as a process, next to real brokers of which one answers late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kubernetes.api_client import POLICIES
from realparts.kafka import create_topics
from realparts.kafka_topics import delete_topics
from waiting import limit

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

OBJECTIVES = {"produceMilliseconds": 500, "fetchMilliseconds": 500}
"""Far above what a busy machine needs, and below what the fault adds."""


@pytest.fixture
def topic(bench: Any, breakable_kafka: KafkaCluster) -> Iterator[str]:
    """A policy whose canary topic has partitions for brokers 1 and 2 alone.

    Other tests of this cluster count partitions that have one replica, so it is deleted afterwards.
    """
    name = f"canary-{uuid.uuid4().hex[:8]}"
    create_topics(breakable_kafka.bootstrap, {name: 2}, assignments={name: [[1], [2]]})
    detection = {"canary": {"enabled": True, "topic": name}, "objectives": OBJECTIVES}
    bench.api.merge(POLICIES, bench.namespace, "main", {"spec": {"detection": detection}})
    yield name
    delete_topics(breakable_kafka.bootstrap, [name])


def started(bench: Any) -> Any:
    process = bench.start("canary", "--vantage", "zone-a")
    bench.until(lambda: [bench.entry(b).get("reading") for b in (1, 2, 3)] == ["Passing", "Passing", "Unknown"], 60)
    return process


@pytest.mark.usefixtures("topic")
def test_a_broker_that_answers_late_fails_with_what_clients_lost_and_passes_again(
    bench: Any, breakable_kafka: KafkaCluster
) -> None:
    process = started(bench)
    assert "no partition with broker 3 as its only replica" in bench.entry(3)["message"]
    proxy = breakable_kafka.proxy
    assert proxy is not None
    proxy.slow("broker-2", 800)
    bench.until(lambda: bench.entry(2)["reading"] == "Failing", 60)
    found = bench.entry(2)
    assert (found["type"], found["source"]) == ("Canary", "zone-a")
    assert found["message"].startswith("probes lost ")
    assert found["harm"]["lostMilliseconds"] >= 900
    assert bench.entry(1)["reading"] == "Passing"
    proxy.mend("broker-2")
    bench.until(lambda: bench.entry(2)["reading"] == "Passing", 60)
    process.send_signal(signal.SIGTERM)
    assert process.wait(limit(60)) == 0, bench.logs()


@pytest.mark.usefixtures("topic")
def test_settled_cluster_causes_no_write_while_lease_is_renewed(bench: Any) -> None:
    started(bench)
    renewed = bench.lease()["renewTime"]

    def unchanged_for_five_seconds() -> bool:
        before = bench.versions(1, 2, 3)
        time.sleep(5)
        return bool(bench.versions(1, 2, 3) == before)

    bench.until(unchanged_for_five_seconds, 60)
    bench.until(lambda: bench.lease()["renewTime"] > renewed, 30)
    managers = {f["manager"] for f in bench.health(1)["metadata"]["managedFields"]}
    assert "bellwether-prober-canary-zone-a" in managers


def test_one_measurement_is_a_table_and_an_exit_status(bench: Any, topic: str, breakable_kafka: KafkaCluster) -> None:
    command = [sys.executable, "-m", "bellwether", "probe", "canary", "--once"]
    environment = {**os.environ, "KUBECONFIG": str(bench.server.kubeconfig)}
    policy = ["--policy", "main", "-n", bench.namespace]
    well = subprocess.run([*command, *policy], capture_output=True, text=True, check=False, env=environment)
    assert (well.returncode, well.stdout.count("Passing")) == (0, 2), well.stdout + well.stderr
    there = ["--bootstrap", breakable_kafka.broker(1).external, "--topic", f"not-{topic}"]
    missing = subprocess.run([*command, *there], capture_output=True, text=True, check=False)
    assert missing.returncode != 0
    assert f"topic not-{topic} does not exist" in missing.stderr
