"""Every answer of the API server becomes the error that says what to do next; none is waited for without end."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client as official

from bellwether.adapters.kubernetes.api_client import (
    LEASES,
    SECRETS,
    Conflict,
    KubernetesClient,
    NotFound,
    Resource,
    connect,
    from_configuration,
)
from bellwether.ports.errors import Terminal, Transient
from realparts.ports import HeldPorts


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status = int(self.path.rsplit("/", 1)[1])
            body = json.dumps({"kind": "Status", "message": "it said so"}).encode() if status != 502 else b"<html>"
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def client_of(port: int, timeout_seconds: float = 30) -> KubernetesClient:
    configuration = official.Configuration()
    configuration.host = f"http://127.0.0.1:{port}"
    configuration.api_key = {"authorization": "Bearer very-secret-token"}
    return from_configuration(configuration, timeout_seconds=timeout_seconds)


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (401, Terminal, "renew the token"),
        (403, Terminal, r"GET leases ns/403: forbidden: it said so: grant this account the permission"),
        (404, NotFound, "leases ns/404 not found"),
        (409, Conflict, "it said so"),
        (422, Terminal, "was rejected: HTTP 422 it said so"),
        (429, Transient, "HTTP 429"),
        (500, Transient, "HTTP 500"),
        (502, Transient, "HTTP 502"),
    ],
)
def test_a_refusal_is_named_by_what_to_do_next(
    server: ThreadingHTTPServer, status: int, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as raised:
        client_of(server.server_port).get(LEASES, "ns", str(status))
    assert "very-secret-token" not in str(raised.value)


def test_what_is_not_there_can_be_asked_for(server: ThreadingHTTPServer) -> None:
    assert client_of(server.server_port).find(LEASES, "ns", "404") is None


def test_a_refused_connection_is_transient() -> None:
    with HeldPorts() as ports, pytest.raises(Transient, match="not reachable"):
        client_of(ports.take()).get(SECRETS, "ns", "x")


def test_a_server_that_never_answers_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        with pytest.raises(Transient, match=r"no response within 0\.3 s"):
            client_of(silent.getsockname()[1], 0.3).get(SECRETS, "ns", "x")
    assert time.monotonic() - started < 30, "it would never have answered"


def test_a_missing_kubeconfig_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(Terminal, match="set KUBECONFIG"):
        connect(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (404, "not_found"),
        (409, "conflict"),
        (403, "refused"),
        (422, "refused"),
        (429, "unavailable"),
        (502, "unavailable"),
    ],
)
def test_every_request_is_told_with_what_came_of_it(server: ThreadingHTTPServer, status: int, outcome: str) -> None:
    told: list[tuple[str, str, str, float]] = []
    observed = client_of(server.server_port).observed(lambda *what: told.append(what)).with_timeout(20.0)
    with pytest.raises((Terminal, Transient)):
        observed.get(LEASES, "ns", str(status))
    [(verb, resource, came, seconds)] = told
    assert (verb, resource, came) == ("get", "leases", outcome)
    assert 0 < seconds < 20


def test_an_answer_is_told_as_well_and_so_is_silence(server: ThreadingHTTPServer) -> None:
    told: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port, seconds in ((server.server_port, 30.0), (silent.getsockname()[1], 0.3)):
            with contextlib.suppress(Terminal, Transient):
                client_of(port, seconds).observed(lambda *what: told.append(str(what[2]))).get(LEASES, "ns", "200")
    assert told == ["ok", "unavailable"]


class Discovery(KubernetesClient):
    """Answers what discovery lists, by path; what is not given is not found."""

    def __init__(self, pages: dict[str, object]) -> None:
        super().__init__(None)
        self._pages = pages

    def _call(self, method: str, resource: Resource, namespace: str | None, name: str, **_: object) -> Any:
        path = resource.path(namespace, name)
        if path not in self._pages:
            raise NotFound(f"{method} {path}")
        return self._pages[path]


GROUPS = {"groups": [{"name": "bellwether.dev", "versions": [{"version": "v1alpha1"}]}]}
KINDS = {"resources": [{"name": "brokerhealths"}, {"name": "brokerhealths/status"}]}


@pytest.mark.parametrize(
    ("pages", "served"),
    [
        ({"/apis": {"groups": []}}, set()),
        ({"/apis": GROUPS}, set()),
        ({"/apis": {"groups": []}, "/apis/bellwether.dev/v1alpha1": KINDS}, set()),
        ({"/apis": GROUPS, "/apis/bellwether.dev/v1alpha1": KINDS}, {"brokerhealths", "brokerhealths/status"}),
    ],
    ids=["no group", "a group of no kinds", "kinds that the list of groups lacks", "both"],
)
def test_a_kind_is_served_once_all_of_discovery_lists_it(pages: dict[str, object], served: set[str]) -> None:
    assert Discovery(pages).served("bellwether.dev", "v1alpha1") == served
