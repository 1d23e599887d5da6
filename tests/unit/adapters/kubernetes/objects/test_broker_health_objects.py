"""Entries of probers that are gone are collected, and nothing is remembered of those that were."""

from __future__ import annotations

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, Object
from bellwether.adapters.kubernetes.objects.broker_health_objects import (
    GONE_AFTER_SECONDS,
    BrokerHealths,
)
from bellwether.simulation.memory_world import ManualClock
from testkit.kubernetes.memory_api import MemoryApi

POLICY_LABELS = {object_names.POLICY_LABEL: "main"}


def entry(source: str, lease: str) -> Object:
    return {"type": "Prometheus", "source": source, "reading": "Passing", "leaseName": lease}


def put(api: MemoryApi, *entries: Object) -> None:
    metadata = {"name": "main-1", "namespace": "kafka", "labels": POLICY_LABELS}
    api.put(BROKER_HEALTHS, {"metadata": metadata, "spec": {"brokerId": 1}, "status": {"signals": list(entries)}})


def renew(api: MemoryApi, lease: str, at: str) -> None:
    labels = {**POLICY_LABELS, object_names.PROBER_LABEL: "true"}
    api.put(LEASES, {"metadata": {"name": lease, "namespace": "kafka", "labels": labels}, "spec": {"renewTime": at}})


def test_entry_goes_once_its_lease_was_silent_for_long_enough(api: MemoryApi, clock: ManualClock) -> None:
    healths = BrokerHealths(api, clock)
    put(api, entry("a", "lease-a"), entry("b", "lease-b"))
    for at in ("1", "2", "3"):
        renew(api, "lease-a", at)
        assert healths.collect("kafka", "main") == ()
        clock.advance(GONE_AFTER_SECONDS / 2)
    renew(api, "lease-a", "4")
    assert healths.collect("kafka", "main") == ("main-1: Prometheus/b",)
    assert [e["source"] for e in api.get(BROKER_HEALTHS, "kafka", "main-1")["status"]["signals"]] == ["a"]


def test_a_deleted_policy_leaves_no_lease_names_behind(api: MemoryApi, clock: ManualClock) -> None:
    healths = BrokerHealths(api, clock)
    put(api, entry("a", "lease-a"))
    healths.collect("kafka", "main")
    assert healths._silent
    healths.forget("kafka", "main")
    assert healths._silent == {}


def test_leases_that_no_entry_names_any_more_are_forgotten(api: MemoryApi, clock: ManualClock) -> None:
    healths = BrokerHealths(api, clock)
    for number in range(100):
        put(api, entry("a", f"lease-{number}"))
        healths.collect("kafka", "main")
    assert sum(map(len, healths._silent.values())) == 1
    put(api)
    healths.collect("kafka", "main")
    assert healths._silent == {}
