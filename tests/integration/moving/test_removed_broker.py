"""A removed broker in replica lists: a dry run counts what Kafka refuses, and what the doctor prints repairs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bellwether.cli.main import main
from bellwether.core.model.cluster import TopicPartition
from bellwether.ports.kafka import Reorder
from realparts import kafka_jars, kafka_tools
from realparts.kafka import KafkaCluster
from testkit.kafka.contract_clusters import KafkaSubject
from waiting import limit

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(600),
    pytest.mark.skipif(kafka_jars.NUMBERS < (4, 0), reason="without a list of fenced brokers it looks like a dead one"),
]

LISTS = [(1, 3, 4), (3, 1, 4), (3, 4, 1), (4, 1, 3), (3, 2, 4)]
NAMING_BROKER_1 = {0, 1, 2, 3}


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, str]:
    """An environment whose PATH has Kafka's own tools."""
    kafka_tools.install(tmp_path / "bin")
    return os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}


def bellwether(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(main, arguments)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exc_info
    return found.exit_code, found.stdout


def blocked(said: str, topic: str) -> set[int]:
    """The partitions of a topic that the output names as blocked by a removed broker; its lines are wrapped."""
    return {
        int(i)
        for i in re.findall(rf"{topic}-(\d+): its replica list \S+ \S+ \S+ names broker 1", " ".join(said.split()))
    }


def test_a_dry_run_and_a_demotion_count_what_kafka_refuses_and_the_printed_reassignment_repairs_it(
    whole: KafkaCluster, others: KafkaSubject, tools: dict[str, str], tmp_path: Path
) -> None:
    topic, elected = others.create(*LISTS), others.create((3, 4, 1))
    others.reassign(elected, (4, 3, 1))  # broker 3 leads it still, and 4 is first
    alive = ",".join(whole.broker(number).internal for number in (2, 3, 4))

    def shell(command: str) -> None:
        subprocess.run(["sh", "-c", command], check=True, cwd=tmp_path, env=tools, timeout=limit(60))

    def orders(sent: dict[int, tuple[int, ...]]) -> set[int]:
        """The partitions whose order Kafka refuses."""
        answers = others.mover.reorder([Reorder(TopicPartition(topic, i), order) for i, order in sent.items()])
        return {name.partition for name, outcome in answers.items() if outcome.error == "INVALID_REPLICA_ASSIGNMENT"}

    others.kill(1)
    assert others.reader.read().removed == frozenset(), "it is fenced, and registered"
    assert orders({2: (4, 3, 1)}) == set()
    assert orders({2: LISTS[2]}) == set()
    shell(f"kafka-cluster.sh unregister --bootstrap-server {alive} --id 1")
    others.eventually(lambda: others.reader.read().removed == {1})
    assert orders({i: (order[-1], *order[:-1]) for i, order in enumerate(LISTS)}) == NAMING_BROKER_1
    others.mover.reorder([Reorder(TopicPartition(topic, 4), LISTS[4])])

    record = str(tmp_path / "undo.json")
    demote = ("demote", "3", "--bootstrap", alive, "--record", record)
    _, foretold = bellwether(*demote, "--dry-run")
    assert blocked(foretold, topic) == {0, 1, 2}, "of 3, broker 3 is the last already"
    moved = {line.split(":")[0].strip() for line in foretold.splitlines() if "->" in line and "contract-" in line}
    assert moved == {f"{topic}-4", f"{elected}-0"}, "an election alone takes the second from broker 3"
    status, said = bellwether(*demote)
    assert (status, blocked(said, topic)) == (3, blocked(foretold, topic))
    assert {p.leader for p in others.reader.partitions([elected])} == {4}

    found: dict[str, Any] = json.loads(bellwether("doctor", "--bootstrap", alive, "--topic", topic, "-o", "json")[1])
    assert found["classes"]["RemovedBroker"] == len(NAMING_BROKER_1)
    cause = next(one for one in found["causes"] if one["cause"] == "BrokersRemoved")
    for command in cause["remedies"][0]["commands"]:
        shell(command)
    others.eventually(lambda: all(1 not in p.replicas and len(p.isr) == 3 for p in others.reader.partitions([topic])))
    bellwether(*demote)
    assert {p.leader for p in others.reader.partitions([topic])} <= {2, 4}
    bellwether("promote", *demote[1:])
