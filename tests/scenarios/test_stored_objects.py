"""Objects that an earlier operator stored are read, and continued from, by this one.

``stored/broker-1-demoted.jsonl`` holds what an operator of 2026-11-28 wrote to the Kubernetes API for a cluster of
three brokers with broker 1 demoted: policy, BrokerHealths, undo record and audit log, one object a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, CONFIG_MAPS, POLICIES
from bellwether.adapters.kubernetes.objects.audit_log import ConfigMapAuditLog
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.core.signals import Reading
from testkit.simulation.operator_fixture import MemoryOperator

STORED = Path(__file__).parent / "stored" / "broker-1-demoted.jsonl"
KINDS = {"LeadershipPolicy": POLICIES, "BrokerHealth": BROKER_HEALTHS, "ConfigMap": CONFIG_MAPS}
BASELINES = {0: (1, 2, 3), 1: (2, 3, 1), 2: (3, 1, 2), 3: (1, 3, 2), 4: (2, 1, 3), 5: (3, 2, 1)}


def stored(reason: str) -> list[dict[str, Any]]:
    text = STORED.read_text().replace("ExternallyUnreachable", reason)
    return [json.loads(line) for line in text.splitlines()]


def orders(operator: MemoryOperator) -> dict[int, tuple[int, ...]]:
    return {one.key.partition: one.replicas for one in operator.site.cluster.snapshot().partitions}


@pytest.fixture(params=["ExternallyUnreachable", "StillUnfenced"], ids=["a reason as now", "a reason renamed since"])
def upgraded(request: pytest.FixtureRequest) -> Iterator[MemoryOperator]:
    """An operator of this version over the stored objects; Kafka is as the earlier version left it."""
    earlier = MemoryOperator.well()
    before = orders(earlier)
    earlier.site.signals.say(1, Reading.FAILING)
    earlier.step(earlier.make(), 12)
    earlier.close()
    assert orders(earlier) != before == BASELINES
    operator = MemoryOperator(earlier.site, holder="operator-b")
    for body in stored(request.param):
        operator.api.put(KINDS[body["kind"]], body)
    yield operator
    operator.close()


def test_a_demotion_goes_on_after_the_upgrade(upgraded: MemoryOperator) -> None:
    displaced = orders(upgraded)
    loop = upgraded.loop()
    upgraded.step(loop, 3)
    assert loop.record is not None
    assert list(loop.record.demoted) == [1]
    assert orders(upgraded) == displaced
    assert upgraded.body()["status"]["brokers"]["demoted"] == 1
    verdict = upgraded.api.get(BROKER_HEALTHS, "default", "main-1")["status"]["verdict"]
    assert (verdict["state"], verdict["reason"]) == ("Sick", "ExternallyUnreachable")


def test_baselines_of_the_stored_undo_record_are_restored(upgraded: MemoryOperator) -> None:
    loop = upgraded.loop()
    upgraded.step(loop, 3)
    upgraded.site.signals.say(1, Reading.PASSING)
    upgraded.step(loop, 12, seconds=120)
    assert orders(upgraded) == BASELINES
    assert loop.record is not None
    assert not loop.record.demoted


def test_every_stored_status_is_replaced_by_one_with_the_present_names(upgraded: MemoryOperator) -> None:
    upgraded.step(upgraded.loop(), 3)
    for body in upgraded.api.all(BROKER_HEALTHS):
        assert BrokerHealth.read(body).status.verdict is not None, body["metadata"]["name"]


def test_the_stored_audit_log_is_listed(upgraded: MemoryOperator) -> None:
    (entry,) = ConfigMapAuditLog(upgraded.api, "default", "main", upgraded.site.clock).read()
    assert entry.epoch == 1
