"""Objects that an earlier version stored, before reasons and fields of the API had their present names.

``stored/broker-1-demoted.jsonl`` holds what an operator of that version wrote to the Kubernetes API for a cluster of
three brokers with broker 1 demoted: policy, BrokerHealths, undo record and audit log, one object a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, CONFIG_MAPS, LEASES, POLICIES
from bellwether.adapters.kubernetes.objects.audit_log import ConfigMapAuditLog
from bellwether.adapters.kubernetes.objects.status_writer import MANAGER
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.core.signals import Reading
from bellwether.recording.traces.trace_lines import UnreadableTrace, read_header
from testkit.simulation.operator_fixture import MemoryOperator

STORED = Path(__file__).parent / "stored" / "broker-1-demoted.jsonl"
KINDS = {"LeadershipPolicy": POLICIES, "BrokerHealth": BROKER_HEALTHS, "ConfigMap": CONFIG_MAPS}
FORMER_ORDER = {
    "epoch": 1,
    "number": 1,
    "since": "2026-01-01T00:00:03Z",
    "until": "2026-01-01T01:00:00Z",
    "renewedAt": "2026-01-01T00:00:06Z",
    "reason": "BrokerHeld",
    "message": "held",
}
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


def test_an_order_that_is_stored_in_a_status_is_ignored_and_removed(upgraded: MemoryOperator) -> None:
    api = upgraded.api
    status = {**api.get(BROKER_HEALTHS, "default", "main-1")["status"], "quarantine": FORMER_ORDER}
    api.apply(BROKER_HEALTHS, "default", "main-1", {"status": status}, MANAGER, sub="status")
    upgraded.step(upgraded.loop(), 3)
    health = api.get(BROKER_HEALTHS, "default", "main-1")
    assert "quarantine" not in health["status"]
    assert not [c for c in health["status"]["conditions"] if c["type"] == "Quarantined"]
    assert not [one for one in api.all(LEASES) if "quarantine" in one["metadata"]["name"]]


def test_the_stored_audit_log_is_listed(upgraded: MemoryOperator) -> None:
    (entry,) = ConfigMapAuditLog(upgraded.api, "default", "main", upgraded.site.clock).read()
    assert entry.epoch == 1


def test_a_trace_of_the_earlier_format_is_refused_with_the_remedy() -> None:
    line = '{"format":"bellwether.dev/trace","version":1,"policy":"main","namespace":"kafka","program":"0.1.0"}'
    with pytest.raises(UnreadableTrace, match=r"format version 1, this program reads version 2.*Bellwether 0\.1\.0"):
        read_header(line)
