"""The doctor's command on real brokers: a leader is shut down, then the last in the ISR; who may lead is waited for."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from bellwether.adapters.kubernetes.api_client import POLICIES
from bellwether.cli.main import main
from testkit.kafka.risk_matrix import Walk
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]


@pytest.fixture
def walk(four: Any, tmp_path: Any) -> Iterator[Walk]:
    """The four brokers' own topics stay; ours are gone afterwards, and all brokers are back."""
    from realparts.kafka_topics import delete_topics

    made = Walk(four, elr_enabled=True, killed=False, folder=tmp_path, tag=f"doctor-{uuid.uuid4().hex[:8]}")
    made.create()
    yield made
    four.mend()
    delete_topics(four.bootstrap, made.topics)


@pytest.mark.slow
def test_cases_1_and_2_are_diagnosed_and_awaited_replica_leads(walk: Walk) -> None:
    walk.lose(3)
    walk.lose(1)
    first = walk.step("3 and 1 lost (case 1)", "AMAMAMMM")
    document = _document(walk, status=4)
    assert (document["atRisk"], document["eligibleLeaderReplicas"]) == (len(walk.topics), True)
    assert document["brokers"]["live"] == [2, 4]
    under = _of(document, walk.topic("rf3-min2"))
    assert (under["class"], under["isr"], under["elr"], under["minInsyncReplicas"]) == ("UnderMinIsr", [2], [1], 2)
    (cause,) = (one for one in document["causes"] if one["cause"] == under["cause"])
    assert any("min.insync.replicas=1" in command for way in cause["remedies"] for command in way["commands"])

    walk.lose(2)
    walk.step("all lost (case 2)", "XXXXXXXX")
    walk.start(3)
    lost = walk.step("all lost, 3 back (case 2d)", "NNXXNNNN")
    waiting = _of(_document(walk, status=5), walk.topic("rf3-min2"))
    assert (waiting["class"], waiting["awaited"], waiting["loss"]["candidate"]) == ("LastIsrMemberLost", [1, 2], 3)
    text = walk.doctor("--topic", walk.topic("rf3-min1"))
    assert text.exit_code == 5
    assert "start broker 2: it can lead the offline partition without data loss" in text.output

    walk.start(1)
    walk.returned(lost, 1)
    third = walk.step("all lost, 3 and 1 back (case 2b)", "NANMNAAA")
    walk.start(2)
    walk.returned(third, 2)
    walk.step("all lost, all back (case 2a)", "SSSASSSS")
    well = walk.doctor(*(word for topic in walk.topics for word in ("--topic", topic)))
    assert well.exit_code == 0
    assert "no partition is at risk by its replicas" in well.output
    shown = walk.shown()
    for topic in walk.topics:
        assert set(walk.written[topic]) <= set(shown[topic]), f"{topic}: acknowledged to acks=all, and lost"
    assert not first.silent


def test_cluster_of_policy_is_examined_and_another_is_refused(four: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    api = MemoryApi()
    api.serve_commands(monkeypatch)
    spec = api_objects.policy(kafka=api_objects.kafka(bootstrapServers=four.bootstrap.split(",")))
    api.put(POLICIES, spec)
    seen = CliRunner().invoke(main, ["doctor", "--policy", "main", "--output", "json"])
    assert seen.exit_code in (0, 4), seen.output
    document = json.loads(seen.stdout)
    assert document["brokers"] == {"live": [1, 2, 3, 4], "unreachable": {}}
    again = CliRunner().invoke(main, ["doctor", "--policy", "main", "--bootstrap", four.broker(4).internal])
    assert again.exit_code in (0, 4), again.output
    api.merge(POLICIES, "default", "main", {"status": {"clusterId": "another"}}, "status")
    refused = CliRunner().invoke(main, ["doctor", "--policy", "main"])
    assert refused.exit_code == 1
    assert f"lead to Kafka cluster {document['clusterId']}, and the policy is pinned to another" in refused.output


def _document(walk: Walk, *, status: int) -> dict[str, Any]:
    noted = walk.doctor("--output", "json", "--all", *(w for topic in walk.topics for w in ("--topic", topic)))
    assert noted.exit_code == status, noted.output
    found: dict[str, Any] = json.loads(noted.stdout)
    return found


def _of(document: dict[str, Any], topic: str) -> dict[str, Any]:
    (one,) = (p for p in document["partitions"] if p["topic"] == topic)
    return dict(one)
