"""Policies without a place are settled on another thread; hanging policies of one tenant do not stop another's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from bellwether.adapters.kubernetes.api_client import POLICIES
from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers import waiting_policies
from bellwether.controllers.cluster_connection import ClusterConnection, Connector
from bellwether.controllers.policy_controller import PolicyController
from bellwether.controllers.policy_manager import PolicyManager
from bellwether.controllers.policy_quota import PolicyQuota
from bellwether.controllers.waiting_policies import WaitingPolicies
from bellwether.core.reasons import Reason
from bellwether.ports.errors import Terminal, Transient
from testkit.kubernetes import api_objects
from testkit.simulation.operator_fixture import MemoryOperator
from waiting import limit, until


class Silent:
    """Connects to a Kafka cluster that answers nothing, until the test ends."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.asked = threading.Semaphore(0)

    def link(self, _policy: LeadershipPolicy) -> ClusterConnection:
        self.asked.release()
        self.over.wait()
        raise Transient("no bootstrap server answers")

    def led_elsewhere(self, _policy: LeadershipPolicy) -> bool:
        return False

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def silent() -> Iterator[Silent]:
    made = Silent()
    yield made
    made.over.set()


def test_policies_with_silent_clusters_do_not_stop_another_tenants(operator: MemoryOperator, silent: Silent):
    policies = 200

    def make(body: dict[str, Any]) -> PolicyController:
        hangs = body["metadata"]["namespace"] == "tenant-a"

        def connector(_: SignalCache) -> Connector:
            return cast(Connector, silent if hangs else operator.connector)

        return PolicyController(body, connector, operator.reporter, operator.finalizer, operator.site.clock)

    def refuse(body: dict[str, Any], why: str) -> None:
        operator.reporter.trouble(body, Reason.TOO_MANY_POLICIES, why)

    def read(key: tuple[str, str]) -> dict[str, Any] | None:
        return operator.api.find(POLICIES, *key)

    waiting = WaitingPolicies(lambda key: manager.settle(key, read, refuse))
    manager = PolicyManager(make, operator.reporter.forget, PolicyQuota(100), waiting.add)
    waiting.start()
    for number in range(policies):
        body = api_objects.policy(f"a-{number:04}", mode="Enforce")
        body["metadata"] |= {"namespace": "tenant-a", "creationTimestamp": f"2026-01-01T{number:06}Z"}
        operator.api.put(POLICIES, body)
        manager.policy("ADDED", body)
    for _ in range(100):
        assert silent.asked.acquire(timeout=limit(20))
    operator.api.put(POLICIES, api_objects.policy("main", mode="Enforce"))
    manager.policy("ADDED", operator.body())
    until(lambda: "status" in operator.body(), 30, "the other tenant's policy is reconciled")
    assert operator.condition()[0] == "True"
    until(
        lambda: "status" in operator.api.get(POLICIES, "tenant-a", f"a-{policies - 1:04}"), 60, "the last one is told"
    )
    refused = operator.api.get(POLICIES, "tenant-a", f"a-{policies - 1:04}")["status"]["conditions"]
    assert {(c["type"], c["reason"]) for c in refused} >= {("Ready", "TooManyPolicies"), ("Stalled", "TooManyPolicies")}
    assert sum(thread.name.startswith("policy-tenant-a-") for thread in threading.enumerate()) == 100
    silent.over.set()
    manager.request_stop(limit(20))


@pytest.fixture
def settled() -> list[tuple[str, str]]:
    return []


def settling(settled: list[tuple[str, str]], *outcomes: object) -> Callable[[tuple[str, str]], bool]:
    """Each call has the next outcome: a value, or an exception that is raised."""
    left = list(outcomes)

    def settle(key: tuple[str, str]) -> bool:
        settled.append(key)
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return bool(outcome)

    return settle


def test_a_policy_that_cannot_be_settled_now_is_settled_later(
    settled: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(waiting_policies, "RETRY_SECONDS", 0.01)
    waiting = WaitingPolicies(settling(settled, False, Transient("away"), True))
    waiting.start()
    waiting.add(("a", "main"))
    until(lambda: len(settled) == 3, 20, "it was settled at the third try")


@pytest.mark.parametrize("failure", [Terminal("lacks the verb 'get'"), RuntimeError("defect")])
def test_a_policy_that_fails_for_good_does_not_stop_the_others(settled: list[tuple[str, str]], failure: Exception):
    waiting = WaitingPolicies(settling(settled, failure, True))
    waiting.start()
    waiting.add(("a", "main"))
    waiting.add(("b", "main"))
    until(lambda: settled == [("a", "main"), ("b", "main")], 20, "the other one was settled, too")
    assert waiting.problems() == []


def test_a_policy_that_waits_already_is_not_added_twice(settled: list[tuple[str, str]]):
    waiting = WaitingPolicies(settling(settled, True, True))
    waiting.add(("a", "main"))
    waiting.add(("a", "main"))
    waiting.add(("b", "main"))
    waiting.start()
    until(lambda: settled == [("a", "main"), ("b", "main")], 20, "each was settled once")
