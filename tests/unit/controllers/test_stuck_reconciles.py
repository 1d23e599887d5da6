"""A loop that hangs is found; one that is slow, on standby, waits for Kafka or has ended is not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from bellwether.adapters.kubernetes.leases import HeldLease
from bellwether.controllers.cluster_connection import with_heartbeat
from bellwether.controllers.policy_controller import PolicyController
from bellwether.controllers.policy_manager import PolicyManager
from bellwether.core.model.cluster import Cluster
from bellwether.core.reporting.requeue import Requeue
from bellwether.core.signals import Reading
from bellwether.ports.errors import Transient
from bellwether.ports.kafka import ClusterReader
from bellwether.ports.world import World
from bellwether.simulation.memory_world import ManualClock
from testkit.messages import assert_wording
from testkit.simulation.operator_fixture import MemoryOperator
from waiting import limit, until

BOUND = 1.0


class Reader:
    """A cluster's reader whose first request waits for ``go``."""

    def __init__(self, inner: ClusterReader, go: threading.Event) -> None:
        self._inner, self._go = inner, go
        self.asked = threading.Event()

    def read(self) -> Cluster:
        self.asked.set()
        self._go.wait(limit(30))
        return self._inner.read()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.fixture
def go() -> threading.Event:
    return threading.Event()


@pytest.fixture
def clock() -> ManualClock:
    """The loop's own; that of its Lease is stuck."""
    return ManualClock()


def running(
    operator: MemoryOperator, clock: ManualClock, wrap: Callable[[ClusterReader], Any], requeue: Requeue | None = None
) -> tuple[PolicyController, PolicyManager]:
    """A loop in its own thread among the loops of a process."""
    operator.faults = lambda world: replace(world, clusters=cast(ClusterReader, wrap(world.clusters)))
    made = operator.make()
    loop = PolicyController(
        operator.body(), lambda _: cast(Any, operator.connector), operator.reporter, operator.finalizer, clock, requeue
    )
    loops = PolicyManager(lambda _: loop, operator.reporter.forget)
    loops.policy("ADDED", operator.body())
    operator.loops.remove(made)
    return loop, loops


def goes_on(loops: PolicyManager, clock: ManualClock) -> None:
    """Again and again as much time passes as it may be silent for, and then it gives a sign of life."""
    for _ in range(4):
        clock.advance(BOUND)
        assert loops.problems(BOUND) == []
        until(lambda: loops.problems(0) == [])


def test_a_hanging_reconcile_is_reported_with_its_policy_and_recovers(
    operator: MemoryOperator, clock: ManualClock, go: threading.Event
):
    readers: list[Reader] = []

    def wrap(inner: ClusterReader) -> Reader:
        readers.append(Reader(inner, go))
        return readers[-1]

    loop, loops = running(operator, clock, wrap, Requeue(inbox_seconds=0.05))
    try:
        until(lambda: readers and readers[0].asked.is_set())
        assert loops.problems(BOUND) == []
        clock.advance(BOUND + 1)
        (text,) = loops.problems(BOUND)
        assert_wording(text)
        go.set()
        until(lambda: loops.problems(BOUND) == [])
    finally:
        go.set()
        loop.request_stop()
        loop.join(limit(10))


def another(operator: MemoryOperator, clock: ManualClock) -> PolicyController:
    return PolicyController(
        operator.body(), lambda _: cast(Any, operator.connector), operator.reporter, operator.finalizer, clock
    )


def hanging(
    operator: MemoryOperator, clock: ManualClock, go: threading.Event
) -> tuple[PolicyController, PolicyManager, HeldLease]:
    """A loop whose first read waits for ``go``, and those that follow it do not."""
    readers: list[Reader] = []

    def wrap(inner: ClusterReader) -> Any:
        readers.append(Reader(inner, go))
        return readers[0] if len(readers) == 1 else inner

    loop, loops = running(operator, clock, wrap, Requeue(inbox_seconds=0.05))
    loops._make = lambda _: another(operator, clock)
    until(lambda: readers and readers[0].asked.is_set())
    link = loop._session.link
    assert link is not None
    assert link.lease.seconds_left() > 0
    return loop, loops, link.lease


def test_a_hanging_reconcile_is_given_up_and_another_takes_its_place(
    operator: MemoryOperator, clock: ManualClock, go: threading.Event
):
    loop, loops, lease = hanging(operator, clock, go)
    loops._loops["default", "other"] = another(operator, clock)
    try:
        clock.advance(BOUND + 1)
        assert loops.problems(BOUND) == [], "others go on"
        said: list[tuple[str, str, str]] = []
        release = lease.release
        lease.release = lambda: (said.append(operator.condition()), release())  # type: ignore[method-assign,assignment]
        loops.give_up_stuck(BOUND)
        assert said[0][:2] == ("False", "Stuck"), "reported before the Lease is free"
        assert "has been stuck for 2 s (bound: 1 s)" in said[0][2]
        assert lease.seconds_left() == 0
        until(lambda: operator.condition()[0] == "True")
        second = loops._loops["default", "main"]
        assert second is not loop
        go.set()
        loop.join(limit(10))
        assert not loop.is_alive(), "it is fenced, and ends"
        assert loops._loops["default", "main"] is second
        assert operator.reporter.metrics.registry.get_sample_value(
            "bellwether_operator_leading", {"namespace": "default", "policy": "main"}
        )
    finally:
        go.set()
        del loops._loops["default", "other"]
        loops.request_stop(limit(10))


def test_a_policy_has_one_loop_that_was_replaced(operator: MemoryOperator, clock: ManualClock, go: threading.Event):
    loop, loops, _ = hanging(operator, clock, go)
    try:
        operator.faults = lambda world: replace(world, clusters=cast(ClusterReader, Reader(world.clusters, go)))
        clock.advance(BOUND + 1)
        loops.give_up_stuck(BOUND)
        second = loops._loops["default", "main"]
        until(lambda: second._session.leads)
        clock.advance(BOUND + 1)
        for _ in range(3):
            loops.give_up_stuck(BOUND)
        assert loops._loops["default", "main"] is second
        assert loops.problems(BOUND), "none goes on: only a restart helps"
        go.set()
        for one in (loop, second):
            one.join(limit(10))
        loops.give_up_stuck(BOUND)
        until(lambda: operator.condition()[0] == "True")
    finally:
        go.set()
        loops.request_stop(limit(10))


def test_the_lease_of_a_policy_that_was_deleted_while_stuck_is_released(
    operator: MemoryOperator, clock: ManualClock, go: threading.Event
):
    loop, loops, lease = hanging(operator, clock, go)
    try:
        loops.policy("DELETED", operator.body())
        clock.advance(BOUND + 1)
        loops.give_up_stuck(BOUND)
        assert lease.seconds_left() == 0
        assert loops.known() == frozenset()
    finally:
        go.set()
        loop.join(limit(10))


def test_a_reconcile_that_is_slow_but_goes_on_is_not_stuck(
    operator: MemoryOperator, clock: ManualClock, go: threading.Event
):
    problems: list[str] = []

    def lasts() -> None:
        go.wait(limit(30))  # the thread may be here before there are any loops to ask
        clock.advance(BOUND)
        problems.extend(loops.problems(BOUND))

    class Slow(Reader):
        def read(self) -> Cluster:
            lasts()
            return super().read()

        def partitions(self, topics: Any) -> Any:
            lasts()
            return self._inner.partitions(topics)

    # Ten batches, each of which lasts as long as the loop may be silent for: the turn lasts for many bounds.
    operator.make(election={"batchSize": 1})
    operator.site.signals.say(1, Reading.FAILING)
    loop, loops = running(operator, clock, lambda inner: Slow(inner, go), Requeue(inbox_seconds=0.05))
    go.set()
    try:
        until(lambda: clock.monotonic() > 6 * BOUND)
        assert problems == []
    finally:
        loop.request_stop()
        loop.join(limit(30))


def test_kafka_that_is_away_is_no_stuck_loop(operator: MemoryOperator, clock: ManualClock):
    operator.connector.trouble = Transient("no answer")
    loop, loops = running(operator, clock, lambda inner: inner, Requeue(inbox_seconds=0.05, retry_seconds=0.1))
    try:
        goes_on(loops, clock)
    finally:
        loop.request_stop()
        loop.join(limit(10))


def test_an_api_that_is_away_is_no_stuck_loop(operator: MemoryOperator, clock: ManualClock):
    loop, loops = running(operator, clock, lambda inner: inner, Requeue(inbox_seconds=0.05, retry_seconds=0.1))
    operator.api.away = True
    try:
        goes_on(loops, clock)
    finally:
        operator.api.away = False
        loop.request_stop()
        loop.join(limit(10))


def test_an_idle_loop_is_not_stuck(operator: MemoryOperator, clock: ManualClock, go: threading.Event):
    go.set()
    loop, loops = running(
        operator, clock, lambda inner: Reader(inner, go), Requeue(inbox_seconds=0.1, idle_seconds=600)
    )
    try:
        until(lambda: operator.body().get("status"))
        goes_on(loops, clock)
    finally:
        loop.request_stop()
        loop.join(limit(10))


class Fatal(BaseException):
    """What no handler of exceptions stops."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_thread_of_an_existing_policy_is_reported_and_replaced(operator: MemoryOperator, clock: ManualClock):
    class Dying(Reader):
        def read(self) -> Cluster:
            raise Fatal

    loop, loops = running(operator, clock, lambda inner: Dying(inner, threading.Event()))
    loop.join(limit(10))
    assert_wording(loops.problems(BOUND))
    operator.faults = lambda world: world
    loops._make = lambda _: another(operator, clock)
    loops.give_up_stuck(BOUND)
    until(lambda: operator.body().get("status") and operator.condition()[0] == "True")
    assert loops.problems(BOUND) == []
    loops.request_stop(limit(10))


def test_a_loop_that_was_stopped_is_not_reported(operator: MemoryOperator, clock: ManualClock, go: threading.Event):
    go.set()
    loop, loops = running(operator, clock, lambda inner: Reader(inner, go))
    loop.request_stop()
    loop.join(limit(10))
    assert loops.problems(BOUND) == []


def test_a_lease_whose_renewal_died_is_reported(operator: MemoryOperator, clock: ManualClock):
    loop = operator.begin()
    link = loop._session.link
    assert link is not None
    lease = link.lease
    assert lease.unhealthy_reason() is None
    dead = threading.Thread(target=lambda: None)
    dead.start()
    dead.join()
    lease._thread = dead
    assert_wording(lease.unhealthy_reason())
    lease._stop.set()
    assert lease.unhealthy_reason() is None, "a Lease that was given up is not renewed"


def test_a_lease_whose_renewal_hangs_is_reported(operator: MemoryOperator, clock: ManualClock):
    loop = operator.begin()
    link = loop._session.link
    assert link is not None
    operator.site.clock.advance(100)
    found = link.lease.unhealthy_reason(50)
    assert found is not None
    assert_wording(found)


def test_a_world_is_attended_without_being_changed(operator: MemoryOperator, clock: ManualClock):
    loop = operator.begin()
    link = loop._session.link
    assert link is not None

    beats: list[int] = []
    world: World = with_heartbeat(link.world, lambda: beats.append(1))
    assert world.clusters.read() == link.world.clusters.read()
    assert beats
    assert world.leaders.request_timeout_seconds == link.world.leaders.request_timeout_seconds
    assert world.clock is link.world.clock
