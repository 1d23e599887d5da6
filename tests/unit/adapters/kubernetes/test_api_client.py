"""Every answer of the API server becomes the error that says what to do next; none is waited for without end."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from kubernetes import client as official
from structlog.testing import capture_logs

from bellwether.adapters.kubernetes import api_client
from bellwether.adapters.kubernetes.api_client import (
    CONFIG_MAPS,
    LEASES,
    SECRETS,
    KubernetesClient,
    Resource,
    connect,
    from_configuration,
)
from bellwether.adapters.kubernetes.api_errors import Conflict, NotFound
from bellwether.adapters.kubernetes.object_lists import names_of
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
def test_every_request_is_observed_with_its_outcome(server: ThreadingHTTPServer, status: int, outcome: str) -> None:
    noted: list[tuple[str, str, str, float]] = []
    observed = client_of(server.server_port).observed(lambda *what: noted.append(what)).with_timeout(20.0)
    with pytest.raises((Terminal, Transient)):
        observed.get(LEASES, "ns", str(status))
    [(verb, resource, came, seconds)] = noted
    assert (verb, resource, came) == ("get", "leases", outcome)
    assert 0 < seconds < 20


def test_answers_and_timeouts_are_observed(server: ThreadingHTTPServer) -> None:
    noted: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port, seconds in ((server.server_port, 30.0), (silent.getsockname()[1], 0.3)):
            with contextlib.suppress(Terminal, Transient):
                client_of(port, seconds).observed(lambda *what: noted.append(str(what[2]))).get(LEASES, "ns", "200")
    assert noted == ["ok", "unavailable"]


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


class Paged:
    """An API server with ``objects`` ConfigMaps that serves lists page by page, or refuses with ``refusal``."""

    def __init__(self, objects: list[dict[str, Any]]) -> None:
        self.objects = objects
        self.queries: list[dict[str, list[str]]] = []
        self.refusal: tuple[int, str] | None = None
        outer = self

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                outer.queries.append(query)
                status, wait = outer.refusal or (200, "")
                start, limit = int(query.get("continue", ["0"])[0]), int(query.get("limit", ["1000"])[0])
                more = {"continue": str(start + limit)} if start + limit < len(outer.objects) else {}
                body = json.dumps({"metadata": more, "items": outer.objects[start : start + limit]}).encode()
                self.send_response(status)
                if wait:
                    self.send_header("Retry-After", wait)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()


@pytest.fixture
def paged() -> Iterator[Paged]:
    made = Paged([{"metadata": {"name": f"c-{n}"}} for n in range(5)])
    yield made
    made.server.shutdown()


def test_a_list_is_read_page_by_page(paged: Paged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_client, "PAGE_SIZE", 2)
    found = client_of(paged.server.server_port).list(CONFIG_MAPS, "ns", {"a": "b", "c": ""})
    assert [one["metadata"]["name"] for one in found] == [f"c-{n}" for n in range(5)]
    assert found[0]["kind"] == "ConfigMap"
    assert [query.get("continue") for query in paged.queries] == [None, ["2"], ["4"]]
    assert all(query["labelSelector"] == ["a=b,c"] and query["limit"] == ["2"] for query in paged.queries)


@pytest.mark.parametrize("page", [1, 1000])
def test_endless_list_is_not_read_to_its_end(paged: Paged, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    monkeypatch.setattr(api_client, "PAGE_SIZE", page)
    monkeypatch.setattr(api_client, "LIST_LIMIT", 30_000)
    monkeypatch.setattr(api_client, "SMALL_LIST", 10_000)
    paged.objects = [{"metadata": {"name": "x" * 1000}}] * 1000
    with pytest.raises(Terminal, match="more than 30000 bytes: delete objects that are not Bellwether's"):
        client_of(paged.server.server_port).list(CONFIG_MAPS, "ns")
    assert len(paged.queries) < 41


def test_large_lists_are_read_one_at_a_time(paged: Paged, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []

    @contextmanager
    def alone() -> Iterator[None]:
        reads.append(len(paged.queries))
        yield
        reads.append(len(paged.queries))

    monkeypatch.setattr(api_client, "SMALL_LIST", 10_000)
    monkeypatch.setattr(api_client, "_large_list", alone())
    paged.objects = [{"metadata": {"name": "x" * 1000}}] * 20
    assert len(client_of(paged.server.server_port).list(CONFIG_MAPS, "ns")) == 20
    assert reads == [1, 2]


def test_objects_that_are_too_large_hide_no_others(paged: Paged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_client, "SMALL_LIST", 30_000)
    large = [{"metadata": {"name": "x" * 9_000}}] * 20
    paged.objects = [*paged.objects[:2], *large, {"metadata": {"name": "y" * 29_000}}, *paged.objects[2:]]
    with capture_logs() as logs:
        found, _ = client_of(paged.server.server_port).list_version(CONFIG_MAPS, "ns", None, 4_000)
    assert [one["metadata"]["name"] for one in found] == [f"c-{n}" for n in range(5)]
    assert [log["event"] for log in logs] == ["object_left_out"] * 21


def test_names_of_objects_that_are_too_many_to_hold_are_listed(paged: Paged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_client, "PAGE_SIZE", 10)
    monkeypatch.setattr(api_client, "LIST_LIMIT", 30_000)
    paged.objects = [
        {"metadata": {"namespace": "ns", "name": f"c-{n}", "annotations": {"a": "x" * 1000}}} for n in range(100)
    ]
    client = client_of(paged.server.server_port)
    assert names_of(client, CONFIG_MAPS, "ns") == {("ns", f"c-{n}") for n in range(100)}
    kept, _ = client.list_version(CONFIG_MAPS, "ns", None, 4_000, lambda one: {"name": one["metadata"]["name"]})
    assert kept == [{"name": f"c-{n}"} for n in range(100)]


@pytest.mark.parametrize("status", [429, 503])
def test_while_overloaded_server_wants_to_be_left_alone_it_is(paged: Paged, status: int) -> None:
    client = client_of(paged.server.server_port)
    paged.refusal = (status, "20")
    with pytest.raises(Transient, match=f"HTTP {status}"):
        client.list(CONFIG_MAPS, "ns")
    with pytest.raises(Transient, match=r"it asked to wait (\d+\.\d) s more"):
        client.with_timeout(30).list(CONFIG_MAPS, "other")
    assert len(paged.queries) == 1
    with pytest.raises(Transient, match=f"HTTP {status}"):
        client.list(SECRETS, "ns")  # of another kind


def test_a_server_that_is_overloaded_is_still_asked_for_leases(paged: Paged) -> None:
    client = client_of(paged.server.server_port)
    paged.refusal = (429, "20")
    for _ in range(2):
        with pytest.raises(Transient, match="HTTP 429"):
            client.list(LEASES, "ns")
    assert len(paged.queries) == 2


@pytest.mark.parametrize(
    ("header", "seconds"), [(None, 0.0), ("", 0.0), ("1", 1.0), ("99999", 30.0), ("-5", 0.0), ("soon", 0.0)]
)
def test_how_long_it_wants_to_be_left_alone_is_bounded(header: str | None, seconds: float) -> None:
    assert api_client._retry_after(header) == seconds


def test_list_whose_next_page_expired_is_to_be_read_again(paged: Paged) -> None:
    paged.refusal = (410, "")
    with pytest.raises(Transient, match="HTTP 410"):
        client_of(paged.server.server_port).list(CONFIG_MAPS, "ns")


class TestWatches:
    @pytest.fixture
    def watched(self) -> Iterator[Callable[..., list[Any]]]:
        """What a watch yields where the server sends these bytes, and then hangs up."""
        sent, statuses = [b""], [200]

        class Watched(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                assert (query["watch"], query["resourceVersion"]) == (["true"], ["7"])
                self.send_response(statuses[0])
                self.end_headers()
                for at in range(0, len(sent[0]), 5):
                    self.wfile.write(sent[0][at : at + 5])

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Watched) as running:
            threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True).start()

            def watch(text: bytes, status: int = 200) -> list[Any]:
                sent[0], statuses[0] = text, status
                return list(client_of(running.server_port).watch(LEASES, "ns", {"a": "b"}, "7", 5))

            yield watch
            running.shutdown()

    def test_events_are_yielded_however_they_are_cut(self, watched: Callable[[bytes], list[Any]]) -> None:
        first, second = ({"type": kind, "object": {"metadata": {"name": "ü"}}} for kind in ("ADDED", "DELETED"))
        text = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in (first, second))
        assert watched(text.encode()) == [("ADDED", first["object"]), ("DELETED", second["object"])]

    def test_a_version_that_is_too_old_is_transient(self, watched: Callable[[bytes], list[Any]]) -> None:
        status = {"kind": "Status", "code": 410, "message": "too old resource version: 7 (9)"}
        with pytest.raises(Transient, match=r"watch leases ns/\*: too old resource version: 7"):
            watched(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")

    def test_an_event_without_end_is_refused(
        self, watched: Callable[[bytes], list[Any]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(api_client, "LIST_LIMIT", 1000)
        with pytest.raises(Transient, match="an event of more than 1000 bytes"):
            watched(b"{" * 1100)

    def test_a_refused_watch_is_named_by_what_to_do_next(self, watched: Callable[..., list[Any]]) -> None:
        with pytest.raises(Terminal, match=r"watch leases ns/.*: forbidden: it said so"):
            watched(json.dumps({"message": "it said so"}).encode(), 403)
        with pytest.raises(Transient, match="not reachable"):
            list(client_of(1).watch(LEASES, None, {}, "7", 5))
