"""``/healthz`` and ``/readyz`` as the kubelet asks for them."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bellwether.telemetry import health_server
from bellwether.telemetry.health_server import MOST_CLIENTS, Health, HealthServer
from waiting import limit, until


@pytest.fixture
def health() -> Health:
    return Health()


@pytest.fixture
def server(health: Health) -> Iterator[HealthServer]:
    made = HealthServer(health, 0)
    yield made
    threading.Thread(target=made.close).start()  # it ends within half a second: no test has to wait


def ask(server: HealthServer, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=limit(30))
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/healthz/", "/readyz?verbose"])
def test_without_problems_both_paths_answer_ok(server: HealthServer, path: str) -> None:
    assert ask(server, path) == (200, "ok\n")


def test_a_problem_that_needs_a_restart_fails_both_paths(health: Health, server: HealthServer) -> None:
    health.watch(lambda: ["the loop is stuck"])
    assert ask(server, "/healthz") == (503, "the loop is stuck\n")
    assert ask(server, "/readyz") == (503, "the loop is stuck\n")


def test_every_reason_has_its_line(health: Health, server: HealthServer) -> None:
    health.watch(lambda: ["one", "two"])
    health.watch(lambda: ["three"])
    assert ask(server, "/healthz")[1].splitlines() == ["one", "two", "three"]


def test_a_problem_without_a_restart_fails_readiness_until_it_ends(health: Health, server: HealthServer) -> None:
    problems = ["the API is away"]
    health.require(lambda: problems)
    assert ask(server, "/healthz") == (200, "ok\n")
    assert ask(server, "/readyz") == (503, "the API is away\n")
    problems.clear()
    assert ask(server, "/readyz")[0] == 200


def test_a_check_that_fails_is_not_taken_for_health(health: Health, server: HealthServer) -> None:
    def broken() -> list[str]:
        raise RuntimeError("oh")

    health.watch(broken)
    assert ask(server, "/healthz") == (503, "a check of its own failed: RuntimeError: oh\n")


def test_a_head_request_gets_the_status_alone(health: Health, server: HealthServer) -> None:
    health.watch(lambda: ["stuck"])
    assert ask(server, "/healthz", "HEAD") == (503, "")


def test_anything_else_is_not_there(server: HealthServer) -> None:
    assert ask(server, "/metrics")[0] == 404
    assert ask(server, "/")[0] == 404


def test_a_silent_client_does_not_delay_others(server: HealthServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)):
        assert ask(server, "/healthz")[0] == 200


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"], ids=["silent", "half a request"])
def test_idle_clients_are_closed_and_add_no_threads(server: HealthServer, sent: bytes) -> None:
    idle = [socket.create_connection(("127.0.0.1", server.port), timeout=limit(20)) for _ in range(4 * MOST_CLIENTS)]
    for one in idle:
        one.sendall(sent)
    assert ask(server, "/healthz")[0] == 200
    for one in idle[:MOST_CLIENTS]:  # these came first
        with contextlib.suppress(ConnectionError):
            assert one.recv(100) == b""
    assert sum(thread.name.startswith("health-client") for thread in threading.enumerate()) <= 2 * MOST_CLIENTS
    for one in idle:
        one.close()


def test_a_request_that_comes_byte_by_byte_is_ended(health: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_server, "REQUEST_SECONDS", 0.2)
    server = HealthServer(health, 0)

    def dawdle(slow: socket.socket) -> None:
        for letter in itertools.cycle(b"GET /healthz"):
            slow.sendall(bytes([letter]))
            threading.Event().wait(0.05)

    slow = socket.create_connection(("127.0.0.1", server.port), timeout=limit(20))
    with slow, pytest.raises(ConnectionError):
        dawdle(slow)
    server.close()


def test_a_check_that_hangs_keeps_the_other_answers(health: Health, server: HealthServer) -> None:
    release = threading.Event()

    def hanging() -> list[str]:
        release.wait(limit(20))
        return []

    health.require(hanging)
    waiting = threading.Thread(target=ask, args=(server, "/readyz"), daemon=True)
    waiting.start()
    try:
        assert ask(server, "/healthz") == (200, "ok\n")
    finally:
        release.set()
        waiting.join(limit(5))


def test_metrics_share_the_port_of_a_process_with_one(health: Health) -> None:
    registry = CollectorRegistry()
    Gauge("bellwether_something", "Something.", registry=registry).set(3)
    server = HealthServer(health, 0, registry)
    try:
        assert "bellwether_something 3.0" in ask(server, "/metrics")[1]
        assert ask(server, "/healthz")[0] == 200
    finally:
        server.close()


class Slow(Collector):
    """Takes a while, and counts how often and how many at once it is asked."""

    def __init__(self) -> None:
        self.asked = self.at_once = self.most = 0

    def collect(self) -> Iterator[Metric]:
        self.asked += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        threading.Event().wait(0.2)
        self.at_once -= 1
        yield GaugeMetricFamily("bellwether_something", "Something.", value=self.asked)


def test_scrapes_side_by_side_make_the_text_once(health: Health) -> None:
    registry, slow = CollectorRegistry(auto_describe=False), Slow()
    registry.register(slow)
    server = HealthServer(health, 0, registry)
    try:
        before = slow.asked
        with ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(lambda _: ask(server, "/metrics")[1], range(8)))
        assert (slow.most, slow.asked - before) == (1, 1)
        assert len(set(texts)) == 1
        until(lambda: ask(server, "/metrics")[1] not in texts)  # it is not served for ever
    finally:
        server.close()


def test_a_port_that_is_taken_is_an_error(health: Health, server: HealthServer) -> None:
    with pytest.raises(OSError, match="in use"):
        HealthServer(health, server.port)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_it_is_asked_at_either_kind_of_address(server: HealthServer) -> None:
    for host in ("127.0.0.1", "::1"):
        connection = http.client.HTTPConnection(host, server.port, timeout=limit(30))
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()


def test_a_client_that_disconnects_before_the_answer_leaves_no_traceback(
    health: Health, server: HealthServer, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, gone = threading.Event(), threading.Event()

    def check() -> list[str]:
        asked.set()
        gone.wait(limit(30))
        return ["a long reason " * 100_000]

    health.watch(check)
    with socket.create_connection(("127.0.0.1", server.port), timeout=limit(30)) as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert asked.wait(limit(30))
        # Closed at once, with a reset: whatever is written from now on fails.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    gone.set()
    for thread in [t for t in threading.enumerate() if t.name == "health-client"]:
        thread.join(limit(30))
    assert capsys.readouterr().err == ""
