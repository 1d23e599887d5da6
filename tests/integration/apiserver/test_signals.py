"""Probers, people and the operator on one BrokerHealth of a real API: each keeps its own fields."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, POLICIES, KubernetesClient
from bellwether.adapters.kubernetes.objects.broker_health_objects import BrokerHealths
from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
from bellwether.adapters.kubernetes.objects.signal_writer import ProberLease, SignalWriter
from bellwether.adapters.kubernetes.objects.status_writer import StatusWriter
from bellwether.core.signals import OverrideState, Reading, Signal, SignalType
from bellwether.ports.errors import Transient
from waiting import limit, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from realparts.apiserver import ApiServer

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("crds")]

REACH = SignalType.EXTERNAL_REACHABILITY
SINCE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def word(source: str, reading: Reading = Reading.FAILING, **more: Any) -> Signal:
    return Signal(**{"broker": 1, "type": REACH, "source": source, "reading": reading, "since": SINCE, **more})


@pytest.fixture
def policy(api: KubernetesClient, namespace: str) -> Any:
    body = {
        "apiVersion": POLICIES.api_version,
        "kind": POLICIES.kind,
        "metadata": {"name": "main", "namespace": namespace},
        "spec": {"mode": "Observe", "kafka": {"bootstrapServers": ["kafka:9092"]}},
    }
    made = api.create(POLICIES, namespace, body)
    BrokerHealths(api, SystemClock()).ensure_broker_healths(made, [1, 2])
    return made


class Prober:
    """One prober's two halves."""

    def __init__(self, api: KubernetesClient, namespace: str, source: str, uid: str | None = None) -> None:
        clock = SystemClock()
        self.lease = ProberLease(
            api, namespace, "main", REACH, source, clock, duration_seconds=3, renew_seconds=0.2, uid=uid
        )
        self.writer = SignalWriter(api, namespace, "main", REACH, source, self.lease)


@pytest.fixture
def prober(api: KubernetesClient, namespace: str, policy: Any) -> Iterator[Callable[..., Prober]]:
    made: list[Prober] = []

    def start(source: str, uid: str | None = None) -> Prober:
        made.append(Prober(api, namespace, source, uid))
        assert made[-1].lease.acquire()
        return made[-1]

    yield start
    for one in made:
        one.lease.release()


def health(api: KubernetesClient, namespace: str, broker: int = 1) -> Any:
    return api.get(BROKER_HEALTHS, namespace, f"main-{broker}")


def feed(book: SignalCache, api: KubernetesClient, namespace: str) -> None:
    for one in api.list(LEASES, namespace):
        book.on_lease(one)
    for one in api.list(BROKER_HEALTHS, namespace):
        book.on_broker_health(one)


def test_two_probers_and_operator_write_one_status_side_by_side(
    api: KubernetesClient, namespace: str, prober: Callable[..., Prober]
) -> None:
    a, b, operator = prober("zone-a"), prober("zone-b"), StatusWriter(api)
    a.writer.write(word("zone-a", control=Reading.PASSING, message="refused", latency_seconds=0.0123))
    assert operator.write_broker_health(namespace, "main", 1, {"leaders": 7})
    b.writer.write(word("zone-b", Reading.PASSING))
    assert operator.write_broker_health(namespace, "main", 1, {"leaders": 0})
    a.writer.write(word("zone-a", Reading.PASSING))
    status = health(api, namespace)["status"]
    assert status["leaders"] == 0
    assert [(e["source"], e["reading"]) for e in status["signals"]] == [("zone-a", "Passing"), ("zone-b", "Passing")]
    managers = {m["manager"] for m in health(api, namespace)["metadata"]["managedFields"]}
    assert {
        "bellwether-operator",
        "bellwether-prober-externalreachability-zone-a",
        "bellwether-prober-externalreachability-zone-b",
    } <= managers


def test_a_broker_without_its_object_is_tried_again_later(prober: Callable[..., Prober]) -> None:
    with pytest.raises(Transient, match="main-9 does not exist yet"):
        prober("zone-a").writer.write(word("zone-a", broker=9))


def test_a_forgotten_broker_keeps_the_entries_of_others(
    api: KubernetesClient, namespace: str, prober: Callable[..., Prober]
) -> None:
    a, b = prober("zone-a"), prober("zone-b")
    a.writer.write(word("zone-a"))
    b.writer.write(word("zone-b"))
    a.writer.forget(1)
    a.writer.forget(1)
    a.writer.forget(99)
    assert [e["source"] for e in health(api, namespace)["status"]["signals"]] == ["zone-b"]


def test_an_entry_is_no_evidence_until_its_lease_was_seen_to_advance(
    api: KubernetesClient, namespace: str, prober: Callable[..., Prober]
) -> None:
    a = prober("zone-a")
    a.writer.write(word("zone-a", control=Reading.PASSING, message="refused", latency_seconds=0.0123))
    book = SignalCache(SystemClock())
    feed(book, api, namespace)
    (found,) = book.signals()
    assert found.age_seconds is None

    def seen() -> Any:
        feed(book, api, namespace)
        (one,) = book.signals()
        return one

    found = until(seen, so=lambda one: one.age_seconds is not None, every=0.1)
    assert found.message == "refused"
    assert found.age_seconds < limit(3)
    assert found.control is Reading.PASSING
    assert found.latency_seconds == 0.0123
    assert found.since == SINCE


def test_the_entries_of_a_silent_prober_are_collected_and_come_back_with_it(
    api: KubernetesClient, namespace: str, prober: Callable[..., Prober]
) -> None:
    a, b = prober("zone-a"), prober("zone-b")
    a.writer.write(word("zone-a"))
    b.writer.write(word("zone-b"))
    keeper = BrokerHealths(api, SystemClock())
    assert keeper.collect(namespace, "main", 1.0) == ()
    a.lease.release()
    api.delete(LEASES, namespace, a.lease.name)
    keeper.collect(namespace, "main", 1.0)
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        b.lease.beat()
        time.sleep(0.2)
    assert keeper.collect(namespace, "main", 1.0) == ("main-1: ExternalReachability/zone-a",)
    assert [e["source"] for e in health(api, namespace)["status"]["signals"]] == ["zone-b"]
    assert a.writer.check() == (1,)
    assert a.writer.check() == ()
    assert b.writer.check() == ()
    assert len(health(api, namespace)["status"]["signals"]) == 2


def test_an_override_set_by_kubectl_is_read(
    api: KubernetesClient, namespace: str, policy: Any, apiserver: ApiServer
) -> None:
    patch = '{"spec":{"override":{"state":"Demoted","reason":"disk swap","until":"2030-01-01T00:00:00Z"}}}'
    apiserver.kubectl("patch", "bh", "main-1", "-n", namespace, "--type=merge", "-p", patch)
    book = SignalCache(SystemClock())
    feed(book, api, namespace)
    (found,) = book.overrides()
    assert (found.broker, found.state, found.reason) == (1, OverrideState.DEMOTED, "disk swap")
    assert found.until == datetime(2030, 1, 1, tzinfo=UTC)
    BrokerHealths(api, SystemClock()).ensure_broker_healths(policy, [1, 2])
    feed(book, api, namespace)
    assert len(book.overrides()) == 1, "keeping the objects must not remove an override"


@pytest.mark.parametrize("others", [False, True])
def test_the_last_entries_of_a_status_can_be_removed_as_well_and_written_again(
    api: KubernetesClient, namespace: str, policy: Any, others: bool
) -> None:
    rules = SignalType.PROMETHEUS
    lease = ProberLease(api, namespace, "main", rules, "rules", SystemClock(), duration_seconds=3, renew_seconds=0.2)
    assert lease.acquire()
    try:
        writer = SignalWriter(api, namespace, "main", rules, None, lease)
        if others:
            api.merge(BROKER_HEALTHS, namespace, "main-1", {"status": {"leaders": 3}}, sub="status")
        for _ in range(2):
            for source in ("flush", "idle", "iops"):
                writer.write(word(source, type=rules))
            writer.check({"iops"})
            writer.forget(1, "iops")
            status = health(api, namespace).get("status") or {}
            assert not status.get("signals")
            assert status.get("leaders") == (3 if others else None)
    finally:
        lease.release()
