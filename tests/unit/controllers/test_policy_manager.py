"""Events of the API reach the loops that they concern, in whatever order they come."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Sized
from typing import Any

import kopf
import pytest

from bellwether.controllers import policy_manager
from bellwether.controllers.policy_manager import EndlessBackoff, PolicyManager, register
from bellwether.ports.clock import SHARE
from bellwether.simulation.memory_world import ManualClock
from bellwether.telemetry.heartbeat import Heartbeat
from testkit.kubernetes import api_objects


class Book:
    def __init__(self, heard: list[str]) -> None:
        self.heard = heard
        self.news = True

    def __getattr__(self, name: str) -> Any:
        def call(body: dict[str, Any]) -> bool:
            self.heard.append(f"{name} {body['metadata']['name']}")
            return self.news

        return call


class Loop:
    """As much of a policy's loop as the watches know."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        self.namespace, self.policy_name = body["metadata"]["namespace"], body["metadata"]["name"]
        self.heard: list[str] = []
        self.waited = 0.0
        self.signals = Book(self.heard)
        self.alive = False
        self.on_end: Callable[[], None] = lambda: None

    def is_alive(self) -> bool:
        return self.alive

    def start(self) -> None:
        self.alive = True
        self.heard.append("start")

    def update(self, _body: dict[str, Any]) -> None:
        self.heard.append("update")

    def source_changed(self, name: str) -> None:
        self.heard.append(f"source_changed {name}")

    def rebalance_changed(self) -> None:
        self.heard.append("rebalance_changed")

    def wake(self) -> None:
        self.heard.append("wake")

    def compare(self, resource: Any, body: dict[str, Any]) -> None:
        self.heard.append(f"compare {resource.plural} {body['metadata']['name']}")

    def request_stop(self) -> None:
        self.heard.append("halt")

    def join(self, timeout: float) -> None:
        self.heard.append("join")
        self.waited = timeout
        time.sleep(min(timeout, 0.01))


class Hall:
    """Makes loops."""

    def __init__(self) -> None:
        self.made: list[Loop] = []
        self.forgotten: list[tuple[str, str]] = []
        self.loops = PolicyManager(self.make, lambda *key: self.forgotten.append(key))

    def event(self, name: str, event: str = "ADDED") -> None:
        self.loops.policy(event, api_objects.policy(name))

    def make(self, body: dict[str, Any]) -> Any:
        self.made.append(Loop(body))
        return self.made[-1]


@pytest.fixture
def hall() -> Hall:
    return Hall()


def lease(policy: str = "main") -> dict[str, Any]:
    return {"metadata": {"name": "lease-a", "namespace": "default", "labels": {"bellwether.dev/policy": policy}}}


POLICY, HEALTH, LEASE = api_objects.policy(), api_objects.health(), lease()


def test_a_policy_starts_a_loop_and_later_events_update_it(hall: Hall):
    for kind in (None, "MODIFIED", "MODIFIED"):
        hall.loops.policy(kind, POLICY)
    assert [loop.heard for loop in hall.made] == [["start", "update", "update"]]


def test_objects_before_their_policy_are_delivered_before_the_loop_starts(hall: Hall):
    hall.loops.health("ADDED", HEALTH)
    hall.loops.lease("ADDED", LEASE)
    hall.loops.policy("ADDED", POLICY)
    assert hall.made[0].heard == ["on_broker_health main-1", "on_lease lease-a", "start"]


def test_objects_deleted_before_their_policy_are_not_delivered(hall: Hall):
    hall.loops.health("ADDED", HEALTH)
    hall.loops.health("DELETED", HEALTH)
    hall.loops.lease("ADDED", LEASE)
    hall.loops.lease("DELETED", LEASE)
    hall.loops.policy("ADDED", POLICY)
    assert hall.made[0].heard == ["start"]


def test_news_wake_the_loop(hall: Hall):
    hall.loops.policy("ADDED", POLICY)
    hall.loops.health("DELETED", HEALTH)
    hall.loops.lease("MODIFIED", LEASE)
    hall.loops.lease("DELETED", LEASE)
    heard = hall.made[0].heard[1:]
    assert [one for one in heard if one != "wake"] == [
        "on_broker_health_gone main-1",
        "on_lease lease-a",
        "on_lease_gone lease-a",
    ]
    assert heard.count("wake") == 3


def test_a_brokers_status_is_compared_with_what_was_said(hall: Hall):
    hall.loops.policy("ADDED", POLICY)
    hall.loops.health("MODIFIED", HEALTH)
    heard = hall.made[0].heard[1:]
    assert heard == ["on_broker_health main-1", "wake", "compare brokerhealths main-1"]


def test_an_uneventful_renewal_wakes_no_loop(hall: Hall):
    hall.loops.policy("ADDED", POLICY)
    hall.made[0].signals.news = False
    hall.loops.lease("MODIFIED", LEASE)
    hall.loops.health("DELETED", HEALTH)
    assert "wake" not in hall.made[0].heard


def test_source_reaches_the_policies_of_its_namespace(hall: Hall):
    hall.loops.policy("ADDED", POLICY)
    hall.loops.source(api_objects.source("prom"))
    hall.loops.source(api_objects.source("elsewhere", "kafka"))
    assert hall.made[0].heard == ["start", "source_changed prom"]


def test_objects_of_another_policy_are_not_delivered(hall: Hall):
    hall.loops.policy("ADDED", POLICY)
    hall.loops.health("ADDED", api_objects.health(policyRef={"name": "other"}))
    hall.loops.lease("ADDED", lease("other"))
    assert hall.made[0].heard == ["start"]


def test_a_deleted_policy_ends_its_loop_and_is_forgotten(hall: Hall):
    hall.loops.policy("ADDED", POLICY)
    hall.loops.policy("DELETED", POLICY)
    assert hall.made[0].heard == ["start", "halt"]
    assert hall.forgotten == [("default", "main")]
    hall.loops.policy("ADDED", POLICY)
    assert len(hall.made) == 2


def test_what_a_loop_reports_after_its_policy_was_deleted_is_forgotten(hall: Hall):
    hall.event("main")
    hall.event("main", "DELETED")
    hall.event("other")
    assert hall.forgotten == [("default", "main")], "its loop is at work"
    hall.made[0].on_end()
    assert hall.forgotten == [("default", "main")] * 2


def test_a_policy_that_is_there_again_is_not_forgotten_with_the_one_before_it(hall: Hall):
    hall.event("main")
    hall.event("main", "DELETED")
    hall.event("main")
    hall.made[0].on_end()
    assert hall.forgotten == [("default", "main")]


def test_a_policy_that_was_never_seen_may_be_deleted(hall: Hall):
    hall.loops.policy("DELETED", POLICY)
    assert hall.made == []


def test_an_ended_loop_is_replaced(hall: Hall):
    hall.loops.policy("ADDED", POLICY)
    hall.made[0].alive = False
    hall.loops.policy("MODIFIED", POLICY)
    assert [loop.heard for loop in hall.made] == [["start"], ["start"]]


def test_at_the_end_all_are_halted_before_any_is_waited_for(hall: Hall):
    order: list[str] = []
    for name in ("main", "other"):
        hall.loops.policy("ADDED", api_objects.policy(name))
    for loop in hall.made:
        loop.heard = order
    hall.loops.request_stop(1)
    assert order == ["halt", "halt", "join", "join"]
    assert hall.made[1].waited <= 0.99, "what the first took is not left for the second"


def test_only_events_are_watched_so_that_kopf_writes_nothing(hall: Hall):
    registry = kopf.OperatorRegistry()
    register(registry, hall.loops)
    assert not registry._changing.get_all_handlers()
    assert len(list(registry._watching.get_all_handlers())) == 4


def test_rebalances_without_a_policy_are_reported_as_they_come_and_go(hall: Hall):
    registry, reported = kopf.OperatorRegistry(), list[str]()
    hall.loops.unused = lambda bodies: reported.extend(one["metadata"]["name"] for one in bodies)
    register(registry, hall.loops)
    handlers = {one.fn.__name__: one.fn for one in registry._watching.get_all_handlers()}

    def seen(kind: str, event: str, body: dict[str, Any]) -> list[str]:
        reported.clear()
        asyncio.run(handlers[f"{kind}_seen"](event={"type": event}, body=body))
        return [*reported]

    rebalance = api_objects.rebalance()
    assert seen("rebalance", "ADDED", rebalance) == [api_objects.LOADS]
    assert seen("policy", "ADDED", POLICY) == seen("rebalance", "MODIFIED", rebalance) == []
    assert seen("policy", "DELETED", POLICY) == [api_objects.LOADS]
    assert seen("rebalance", "DELETED", rebalance) == []


def test_foreign_annotations_of_watched_objects_are_not_held(hall: Hall):
    registry = kopf.OperatorRegistry()
    register(registry, hall.loops)
    handlers = {one.fn.__name__: one.fn for one in registry._watching.get_all_handlers()}
    for kind, body in {"policy": POLICY, "health": HEALTH, "rebalance": api_objects.rebalance()}.items():
        padded = {**body, "metadata": {**body["metadata"], "annotations": {"padding": "x" * 200_000}}}
        asyncio.run(handlers[f"{kind}_seen"](event={"type": "ADDED"}, body=padded))
    held = [
        hall.made[0].body,
        *hall.loops._healths["default", "main"].values(),
        *hall.loops.rebalances("default", "main"),
    ]
    assert [one["metadata"]["annotations"] for one in held] == [{}, {}, {}]


def test_kopf_lists_in_pages_and_computes_no_differences(hall: Hall):
    registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
    register(registry, hall.loops)
    (configure,) = [h for h in registry._activities.get_all_handlers() if h.id.endswith("configure")]
    configure.fn(settings=settings)
    assert settings.watching.chunk_size == policy_manager.PAGE_SIZE
    stored = settings.persistence.diffbase_storage
    assert (stored.build(body=kopf.Body(POLICY)), stored.fetch(body=kopf.Body(POLICY))) == ({}, None)


def test_definitions_are_not_watched_so_that_no_right_to_them_is_needed(hall: Hall):
    registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
    register(registry, hall.loops)
    (configure,) = [h for h in registry._activities.get_all_handlers() if h.id.endswith("configure")]
    configure.fn(settings=settings)
    assert settings.scanning.disabled


def test_the_watches_never_give_up_on_an_api_that_is_away(hall: Hall) -> None:
    registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
    register(registry, hall.loops)
    (configure,) = [h for h in registry._activities.get_all_handlers() if h.id.endswith("configure")]
    configure.fn(settings=settings)
    pauses = settings.networking.error_backoffs
    assert not isinstance(pauses, int | float | Sized), "kopf would count the tries, and stop"
    for _ in range(2):  # each request restarts
        first = list(itertools.islice(pauses, 10_000))
        for pause, meant in zip(first, (0.5, 1.0, 2.0, *[3.0] * 9_997), strict=True):
            assert pause == pytest.approx(meant, rel=SHARE)


async def _beats(pulse: Heartbeat) -> None:
    task = asyncio.create_task(policy_manager._beat(pulse))
    await asyncio.sleep(0)
    task.cancel()


def test_the_event_loop_shows_that_it_goes_round() -> None:
    clock = ManualClock()
    pulse = Heartbeat("the event loop", clock.monotonic, begun=False)
    asyncio.run(_beats(pulse))
    clock.advance(11)
    assert pulse.unhealthy_reason(10) is not None, "it has begun, and beats no more"


def test_watches_that_failed_together_do_not_come_back_together() -> None:
    pauses = [list(itertools.islice(EndlessBackoff(), 50)) for _ in range(10)]
    assert len({tuple(one) for one in pauses}) == 10
