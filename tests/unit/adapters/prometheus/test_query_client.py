"""A server that does anything at all: the client answers or says why, in time, in memory, and without the token."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
import tracemalloc
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.prometheus.query_client import BODY_LIMIT, Access, PrometheusClient
from bellwether.destinations import ANYWHERE
from bellwether.ports.errors import Terminal, Transient
from realparts.ports import HeldPorts
from realparts.tls import Authority
from testkit.messages import assert_wording
from testkit.values.security_settings import WITHOUT_CREDENTIALS

GOOD = json.dumps(
    {
        "status": "success",
        "data": {"resultType": "vector", "result": [{"metric": {"broker": "1"}, "value": [0, "7"]}]},
    }
).encode()
TOKEN = "very-secret-token"


def test_a_query_is_posted_with_its_limits_and_the_token(server: Any) -> None:
    server.says("200 OK", GOOD)
    found = PrometheusClient(server.url + "/prom/", Access(destinations=ANYWHERE, token=TOKEN)).ask(
        'up{a="b"} > 1', "broker", 29.9996
    )
    assert found.samples == (({"broker": "1"}, 7.0),)
    (request,) = server.requests
    assert request.startswith(b"POST /prom/api/v1/query HTTP/1.1")
    assert f"Authorization: Bearer {TOKEN}".encode() in request
    assert b"query=up%7Ba%3D%22b%22%7D+%3E+1" in request
    assert b"timeout=30000ms" in request
    assert b"limit=10001" in request


def test_alert_rules_are_asked_for_by_name(server: Any) -> None:
    server.says("200 OK", b'{"status":"success","data":{"groups":[]}}')
    with pytest.raises(Terminal, match="has no rule of alert A: "):
        PrometheusClient(server.url, WITHOUT_CREDENTIALS).check_alerts(["B", "A"], 30)
    (request,) = server.requests
    line = b"GET /api/v1/rules?type=alert&exclude_alerts=true&rule_name%5B%5D=A&rule_name%5B%5D=B HTTP/1.1"
    assert request.startswith(line)


def test_a_server_without_alert_rules_is_named(server: Any) -> None:
    server.says("404 No", b"")
    with pytest.raises(Terminal, match=r"has no /api/v1/rules \(404\)"):
        PrometheusClient(server.url, WITHOUT_CREDENTIALS).check_alerts(["A"], 30)


def test_gateway_that_lets_no_post_through_is_asked_with_get(server: Any) -> None:
    def reply(request: bytes, client: socket.socket) -> None:
        good = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(GOOD), GOOD)
        client.sendall(good if request.startswith(b"GET") else b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")

    server.reply = reply
    assert PrometheusClient(server.url, WITHOUT_CREDENTIALS).ask("up", "broker", 30).samples == (
        ({"broker": "1"}, 7.0),
    )
    assert server.requests[1].startswith(b"GET /api/v1/query?query=up&timeout=30000ms")


def test_a_server_that_takes_neither_method_is_named(server: Any) -> None:
    server.says("405 No", b"")
    with pytest.raises(Terminal, match="neither POST nor GET"):
        PrometheusClient(server.url, WITHOUT_CREDENTIALS).ask("up", "broker", 30)


def test_a_redirect_is_not_followed_and_takes_the_token_nowhere(server: Any) -> None:
    server.says("302 Found", b"", "Location: http://127.0.0.1:1/steal\r\n")
    with pytest.raises(Terminal, match="redirects elsewhere") as error:
        PrometheusClient(server.url, Access(destinations=ANYWHERE, token=TOKEN)).ask("up", "broker", 30)
    assert len(server.requests) == 1
    assert "steal" not in str(error.value)


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        ("200 OK", b"<html>log in</html>", Terminal),
        ("400 Bad", b'{"status":"error","error":"parse error at char 3"}', Terminal),
        ("401 No", b"", Terminal),
        ("503 Busy", b"<html>", Transient),
    ],
)
def test_what_is_no_answer_is_said_without_the_token(
    server: Any, status: str, body: bytes, error: type[Exception]
) -> None:
    server.says(status, body)
    with pytest.raises(error) as caught:
        PrometheusClient(server.url, Access(destinations=ANYWHERE, token=TOKEN)).ask("up", "broker", 30)
    assert TOKEN not in str(caught.value)


def test_a_body_without_end_is_left_at_its_limit(server: Any) -> None:
    sent = []

    def pour(_request: bytes, client: socket.socket) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            client.sendall(b"x" * 65536)
            sent.append(65536)

    server.reply = pour
    client = PrometheusClient(server.url, WITHOUT_CREDENTIALS)
    tracemalloc.start()
    try:
        with pytest.raises(Terminal, match="more than 4096 KiB"):
            client.ask("up", "broker", 30)
        assert tracemalloc.get_traced_memory()[1] < 4 * BODY_LIMIT
    finally:
        tracemalloc.stop()
    time.sleep(0.2)
    assert sum(sent) < 4 * BODY_LIMIT


def test_a_hundred_thousand_series_are_refused_and_not_held(server: Any) -> None:
    one = b'{"metric":{"__name__":"up","broker":"1","pod":"main-kafka-1"},"value":[1767225600,"1"]}'
    body = b'{"status":"success","data":{"resultType":"vector","result":[' + b",".join([one] * 100_000) + b"]}}"
    server.says("200 OK", body)
    client = PrometheusClient(server.url, WITHOUT_CREDENTIALS)
    with pytest.raises(Terminal, match="more than 4096 KiB: aggregate the query to one series for each broker"):
        client.ask("up", "broker", 30)


def test_a_body_that_drips_ends_at_the_deadline(server: Any) -> None:
    def drip(_request: bytes, client: socket.socket) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:
            client.sendall(b" ")
            time.sleep(0.05)

    server.reply = drip
    began = time.monotonic()
    with pytest.raises(Transient, match="does not answer in time"):
        PrometheusClient(server.url, WITHOUT_CREDENTIALS).ask("up", "broker", 0.5)
    assert time.monotonic() - began < 30


def test_a_silent_server_ends_at_the_deadline(server: Any) -> None:
    server.reply = lambda _request, _client: time.sleep(30)
    with pytest.raises(Transient, match="does not answer in time"):
        PrometheusClient(server.url, WITHOUT_CREDENTIALS).ask("up", "broker", 0.3)


def test_chunks_are_read_like_any_body(server: Any) -> None:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (GOOD[:20], GOOD[20:])) + b"0\r\n\r\n"
    server.reply = lambda _request, client: client.sendall(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
    )
    assert PrometheusClient(server.url, WITHOUT_CREDENTIALS).ask("up", "broker", 30).samples == (
        ({"broker": "1"}, 7.0),
    )


def test_a_body_that_breaks_off_is_no_answer(server: Any) -> None:
    server.reply = lambda _request, client: client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + GOOD)
    with pytest.raises((Transient, Terminal)):
        PrometheusClient(server.url, WITHOUT_CREDENTIALS).ask("up", "broker", 30)


def test_a_refused_connection_is_transient_with_an_equal_message() -> None:
    said = set()
    with HeldPorts() as ports:
        client = PrometheusClient(f"http://127.0.0.1:{ports.take()}", Access(destinations=ANYWHERE, token=TOKEN))
        for _ in range(2):
            with pytest.raises(Transient) as error:
                client.ask("up", "broker", 30)
            said.add(str(error.value))
    assert_wording(said)


@pytest.mark.parametrize("token", ["two\nlines", "täg-\u4e2d"])
def test_a_token_that_no_header_can_hold_is_refused_unsaid(server: Any, token: str) -> None:
    server.says("200 OK", GOOD)
    with pytest.raises(Terminal, match="the credentials have characters") as error:
        PrometheusClient(server.url, Access(destinations=ANYWHERE, token=token)).ask("up", "broker", 30)
    assert token not in str(error.value)


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server that speaks TLS and answers well, and its authority."""
    authority = Authority(tmp_path)
    certificate, key = authority.issue("prometheus")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(GOOD)))
            self.end_headers()
            self.wfile.write(GOOD)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as running:
        running.socket = context.wrap_socket(running.socket, server_side=True)
        threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True).start()
        yield f"https://127.0.0.1:{running.server_address[1]}", authority.path
        running.shutdown()


def test_certificate_is_trusted_only_by_given_authority(secured: tuple[str, Path]) -> None:
    url, authority = secured
    assert PrometheusClient(url, Access(destinations=ANYWHERE, token=TOKEN, ca=authority)).ask(
        "up", "broker", 30
    ).samples == (({"broker": "1"}, 7.0),)
    with pytest.raises(Terminal, match="certificate that is not trusted: check caSecretName") as error:
        PrometheusClient(url, Access(destinations=ANYWHERE, token=TOKEN)).ask("up", "broker", 30)
    assert TOKEN not in str(error.value)


def test_plain_http_to_server_that_speaks_tls_gets_no_answer(secured: tuple[str, Path]) -> None:
    with pytest.raises((Transient, Terminal)):
        PrometheusClient(secured[0].replace("https:", "http:"), WITHOUT_CREDENTIALS).ask("up", "broker", 30)


def test_authority_that_is_no_certificate_is_named(secured: tuple[str, Path], tmp_path: Path) -> None:
    bad = tmp_path / "bad.pem"
    bad.write_text("not a certificate")
    with pytest.raises(Terminal, match="check url's scheme and caSecretName"):
        PrometheusClient(secured[0], Access(destinations=ANYWHERE, ca=bad)).ask("up", "broker", 30)


def test_user_and_tenant_travel_in_headers_and_in_no_representation(server: Any) -> None:
    server.says("200 OK", GOOD)
    access = Access(destinations=ANYWHERE, username="me", password="hunter2", headers=(("X-Scope-OrgID", "orders"),))
    PrometheusClient(server.url, access).ask("up", "broker", 30)
    (request,) = server.requests
    assert b"\r\nAuthorization: Basic bWU6aHVudGVyMg==\r\n" in request
    assert b"\r\nX-Scope-OrgID: orders\r\n" in request
    assert "hunter2" not in repr(access)
    assert "bWU6" not in repr(access.authorization)
