"""A watch on a real API: what changes after a list, until the server ends it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import LEASES, KubernetesClient
from bellwether.adapters.kubernetes.object_names import POLICY_LABEL, PROBER_LABEL
from bellwether.controllers.lease_watch import PROBERS, LeaseWatch
from waiting import until

pytestmark = pytest.mark.apiserver


def lease(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "labels": labels},
        "spec": {"holderIdentity": "one"},
    }


OURS = {PROBER_LABEL: "true", POLICY_LABEL: "main"}


def test_leases_that_come_change_and_go_are_delivered_in_order(api: KubernetesClient, namespace: str) -> None:
    seen: list[tuple[str | None, str]] = []
    lock = threading.Lock()

    def deliver(event: str | None, body: dict[str, Any]) -> None:
        with lock:
            seen.append((event, body["metadata"]["name"]))

    api.create(LEASES, namespace, lease("before", **OURS))
    watching = LeaseWatch(api, namespace, deliver, SystemClock())
    watching.start()
    until(lambda: seen == [(None, "before")], 30)
    api.create(LEASES, namespace, lease("other"))
    made = api.create(LEASES, namespace, lease("new", **OURS))
    api.replace(LEASES, namespace, {**made, "spec": {"holderIdentity": "two"}})
    api.delete(LEASES, namespace, "before")
    expected = [(None, "before"), ("ADDED", "new"), ("MODIFIED", "new"), ("DELETED", "before")]
    until(lambda: seen == expected, 30, "all events, and no others", seen=lambda: str(seen))
    watching.request_stop()
    assert watching.problems() == []


def test_a_watch_ends_by_itself_and_goes_on_from_its_last_version(api: KubernetesClient, namespace: str) -> None:
    _, version = api.list_version(LEASES, namespace, PROBERS)
    assert list(api.watch(LEASES, namespace, PROBERS, version, 1)) == []
    api.create(LEASES, namespace, lease("meanwhile", **OURS))
    events = [(event, found["metadata"]["name"]) for event, found in api.watch(LEASES, namespace, PROBERS, version, 1)]
    assert events == [("ADDED", "meanwhile")]
