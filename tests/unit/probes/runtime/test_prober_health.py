"""A prober that hangs is found by the kubelet; one that is slow, or without its API, is not."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator

import pytest

from bellwether.adapters.kubernetes.api_client import POLICIES
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.signals import SignalType
from bellwether.ports.errors import Terminal
from bellwether.probes.runtime.prober import Prober
from bellwether.probes.runtime.prober_process import serve
from bellwether.simulation.memory_world import ManualClock
from bellwether.telemetry.health_server import HealthServer
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics
from realparts.ports import HeldPorts
from testkit.kubernetes.api_objects import policy
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording
from waiting import limit, until

BOUND = 0.75  # of a logical clock: sums of it are exact


class Quiet:
    """A probe that measures nothing and is well."""

    def repeat(self) -> None:
        """Nothing to tell."""

    def alive(self) -> bool:
        return True


@pytest.fixture
def api() -> MemoryApi:
    made = MemoryApi()
    made.put(POLICIES, policy())
    return made


@pytest.fixture
def stop() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def prober(api: MemoryApi, metrics: ProbeMetrics, clock: ManualClock | None = None) -> Prober:
    return Prober(api, "default", "main", SignalType.PROMETHEUS, "rules", clock or ManualClock(), metrics)


def run(made: Prober, follow: Callable[[LeadershipPolicy | None], bool], stop: threading.Event) -> threading.Thread:
    thread = threading.Thread(target=made.run, args=(Quiet(), follow, stop), daemon=True)
    thread.start()
    return thread


def ask(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=limit(5))
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_a_hanging_loop_is_reported_and_recovers(api: MemoryApi, stop: threading.Event) -> None:
    go, met = threading.Event(), threading.Event()

    def hang(_found: LeadershipPolicy | None) -> bool:
        met.set()
        go.wait(limit(30))
        return False

    clock = ManualClock()
    made = prober(api, ProbeMetrics(), clock)
    thread = run(made, hang, stop)
    until(met.is_set)
    assert made.problems(BOUND) == []
    clock.advance(BOUND + 1)
    (text,) = until(lambda: made.problems(BOUND), so=lambda found: len(found) == 1)
    assert_wording(text)
    go.set()
    until(lambda: made.problems(BOUND) == [])
    stop.set()
    thread.join(limit(10))


def test_api_that_is_away_is_no_trouble_of_probers_own(api: MemoryApi, stop: threading.Event) -> None:
    clock = ManualClock()
    made = prober(api, ProbeMetrics(), clock)
    api.away = True
    thread = run(made, lambda _: True, stop)
    for _ in range(4):
        until(lambda: made.problems(0) == [])
        clock.advance(BOUND)
        assert made.problems(BOUND) == []
    stop.set()
    thread.join(limit(10))


def test_before_it_runs_nothing_is_expected_of_it(api: MemoryApi) -> None:
    assert prober(api, ProbeMetrics()).problems(0.0) == []


def test_what_delivers_its_signals_is_missed_when_it_has_died(api: MemoryApi, stop: threading.Event) -> None:
    made = prober(api, ProbeMetrics())
    thread = run(made, lambda _: True, stop)
    until(lambda: next(iter(made._outboxes.values()))._thread.ident is not None)
    dead = threading.Thread(target=lambda: None)
    dead.start()
    dead.join()
    next(iter(made._outboxes.values()))._thread = dead
    assert_wording(made.problems(BOUND))
    stop.set()
    thread.join(limit(10))


def test_the_kubelet_hears_of_it(api: MemoryApi) -> None:
    metrics = ProbeMetrics()
    server = HealthServer(metrics.health, 0, metrics.registry)
    try:
        prober(api, metrics)
        assert ask(server.port, "/healthz") == (200, "ok\n")
        metrics.health.watch(lambda: ["the loop of prober prometheus/rules has been stuck for 121 s"])
        assert ask(server.port, "/healthz")[0] == 503
    finally:
        server.close()


def test_metrics_port_serves_health() -> None:
    with HeldPorts() as held:
        port = held.take()
    metrics = ProbeMetrics()
    serve(metrics.health, metrics.registry, port)
    (health, _), (status, page) = (ask(port, path) for path in ("/healthz", "/metrics"))
    assert (health, status, "bellwether_probe" in page) == (200, 200, True)


def test_a_port_that_is_taken_is_named() -> None:
    metrics = ProbeMetrics()
    taken = HealthServer(metrics.health, 0)
    try:
        with pytest.raises(Terminal, match=f"--metrics-port {taken.port}: .*; choose a free port"):
            serve(metrics.health, metrics.registry, taken.port)
    finally:
        taken.close()
