"""/healthz and /readyz of a real operator: Kafka or an API server that answers nothing is no stuck loop."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from testkit.processes.health_requests import answers, ask

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

BOUND = 15
BOUNDED = ("--stuck-after", str(BOUND), "--metadata-limit", "8")


@pytest.fixture
def deaf() -> Iterator[int]:
    """The port of something that takes every connection and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        taken: list[socket.socket] = []

        def take() -> None:
            while True:
                try:
                    taken.append(server.accept()[0])
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
        for one in taken:
            one.close()


@pytest.fixture
def port(bare_site: Site) -> int:
    return bare_site.free_port()


def stays_alive(port: int, seconds: float) -> None:
    """All the while /healthz answers 200."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert ask(port, "/healthz") == (200, "ok\n")
        time.sleep(0.5)


@pytest.mark.slow
def test_kafka_that_answers_nothing_makes_neither_stuck_nor_unready(bare_site: Site, deaf: int, port: int) -> None:
    bare_site.policy(kafka={"bootstrapServers": [f"127.0.0.1:{deaf}"]})
    bare_site.operator("--health-port", str(port), *BOUNDED)
    bare_site.until(lambda: bare_site.ready()[0] == "ClusterUnreachable", 60, "it is named", bare_site.ready)
    stays_alive(port, 1.5 * BOUND)
    # Not asserted at once: an API server that is slow for a moment makes it unready for as long.
    bare_site.until(lambda: ask(port, "/readyz") == (200, "ok\n"), 15, "it is ready", lambda: ask(port, "/readyz"))


def test_one_that_leads_and_one_that_stands_by_are_ready_and_a_frozen_one_answers_again(shared_site: Site) -> None:
    site, port = shared_site, shared_site.health_port
    site.until(lambda: answers(port) and ask(port, "/readyz")[0] == 200, 60, "it is ready")
    other = site.free_port()
    process = site.operator("--health-port", str(other))
    site.until(lambda: answers(other) and ask(other, "/readyz")[0] == 200, 60, "the other is ready")
    assert ask(other, "/healthz") == (200, "ok\n")
    process.pause()
    try:
        assert not answers(other)
    finally:
        process.resume()
    site.until(lambda: answers(other) and ask(other, "/healthz")[0] == 200, 30, "it goes on")


@pytest.mark.slow
def test_a_loop_that_hangs_in_a_reconcile_is_reported(bare_site: Site, port: int) -> None:
    """The request never comes back, whatever its own time limit says: a defect of ours, played by the program."""
    site = bare_site
    site.topics()
    site.policy()
    site.operator(
        "--health-port",
        str(port),
        *BOUNDED,
        program="testkit.processes.crash_points",
        HANGS_AT="before reorder 1",
    )
    site.until_reported()
    site.demote(1)
    took = site.until(lambda: ask(port, "/healthz")[0] == 503, 60, "the stuck loop is reported")
    status, text = ask(port, "/healthz")
    assert status == 503
    assert text.startswith(f"the loop of policy {site.namespace}/main has been stuck for")
    assert ask(port, "/readyz")[0] == 503
    site.tell(f"a loop that hangs is reported {took:.1f} s after the demotion was asked for, with a bound of {BOUND} s")


@pytest.mark.slow
def test_a_hanging_event_loop_is_reported(bare_site: Site, port: int) -> None:
    site = bare_site
    site.operator(
        "--health-port",
        str(port),
        *BOUNDED,
        program="testkit.processes.crash_points",
        HANGS_AT="event loop 1",
    )
    site.until(lambda: answers(port), 60, "health is served")
    site.until(lambda: ask(port, "/healthz")[0] == 503, 60, "the frozen event loop is reported")
    assert "the event loop of the watches has been stuck" in ask(port, "/healthz")[1]


@pytest.mark.slow
def test_while_api_is_away_it_is_alive_and_not_ready(site: Site, apiserver: ApiServer) -> None:
    port = site.free_port()
    patience = 30  # a server that is frozen costs each request its time limit of five seconds
    process = site.operator("--health-port", str(port), "--stuck-after", str(patience))
    site.until(lambda: answers(port) and ask(port, "/readyz")[0] == 200, 60, "it is ready")
    apiserver.pause_apiserver()
    try:
        site.until(lambda: ask(port, "/readyz")[0] == 503, 30, "it is not ready")
        assert "the Kubernetes API does not answer" in ask(port, "/readyz")[1]
        stays_alive(port, 2 * patience)
    finally:
        apiserver.resume_apiserver()
    took = site.until(lambda: ask(port, "/readyz")[0] == 200, 60, "it is ready again", lambda: ask(port, "/readyz"))
    site.tell(f"ready again {took:.1f} s after the API server went on")
    assert process.alive


@pytest.mark.slow
def test_a_health_port_that_is_taken_is_named(bare_site: Site, port: int) -> None:
    with socket.create_server(("", 0)) as holder:
        taken = holder.getsockname()[1]
        process = bare_site.operator("--health-port", str(taken))
        bare_site.until(lambda: not process.alive, 30, "it gives up")
        assert f"--health-port {taken}" in process.log.read_text()
