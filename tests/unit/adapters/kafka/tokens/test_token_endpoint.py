"""A token endpoint over real HTTPS: what it is sent, what is taken from it, and every way in which it can fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bellwether.adapters.kafka.tokens.token_endpoint import ask
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import HttpProxy, OAuth
from bellwether.ports.errors import BellwetherError, Terminal, Transient, Unauthenticated
from realparts.httpproxy import HttpProxy as RealProxy
from realparts.tls import Authority
from realparts.tokenendpoint import TokenEndpoint

SECRET = "s3cr3t: 50 % & /?"
NAMES = (
    ("token_endpoint", "tokenEndpoint"),
    ("client_id", "clientId"),
    ("client_secret", "clientSecretRef"),
    ("scope", "scope"),
    ("ca_file", "caSecretName"),
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def endpoint(authority: Authority, tmp_path: Path) -> Iterator[TokenEndpoint]:
    with TokenEndpoint(tmp_path, authority.issue("endpoint"), {"bell:wether": SECRET}) as running:
        yield running


@pytest.fixture
def oauth(endpoint: TokenEndpoint, authority: Authority) -> OAuth:
    return OAuth(
        destinations=ANYWHERE,
        token_endpoint=endpoint.url,
        client_id="bell:wether",
        client_secret=SECRET,
        scope="kafka",
        ca_file=str(authority.path),
        names=NAMES,
    )


def refusal(oauth: OAuth, timeout_seconds: float = 5.0) -> BellwetherError:
    with pytest.raises(BellwetherError) as caught:
        ask(oauth, timeout_seconds)
    assert SECRET not in str(caught.value)
    assert "tokenEndpoint https://127.0.0.1:" in str(caught.value)
    return caught.value


def test_client_and_secret_are_exchanged_for_a_token(endpoint: TokenEndpoint, oauth: OAuth):
    grant = ask(oauth, 5)
    assert (grant.token, grant.seconds) == (endpoint.given[-1], 300.0)
    assert endpoint.asked == [{"grant_type": "client_credentials", "scope": "kafka"}]
    assert endpoint.given[-1] not in repr(grant)


def test_no_scope_is_sent_where_none_is_wanted(endpoint: TokenEndpoint, oauth: OAuth):
    ask(replace(oauth, scope=""), 5)
    assert endpoint.asked == [{"grant_type": "client_credentials"}]


def test_token_without_expires_in_is_taken_at_its_own_word(endpoint: TokenEndpoint, oauth: OAuth):
    endpoint.extra = {"expires_in": None}
    assert ask(oauth, 5).seconds == 300.0


def test_a_wrong_secret_names_both_fields(oauth: OAuth):
    error = refusal(replace(oauth, client_secret="wr0ng-one"))
    assert isinstance(error, Unauthenticated)
    assert "refuses client 'bell:wether' (invalid_client): check clientId and clientSecretRef" in str(error)
    assert "wr0ng" not in str(error)


def test_an_endpoint_that_is_down_is_tried_again_later(endpoint: TokenEndpoint, oauth: OAuth):
    endpoint.stop()
    error = refusal(oauth)
    assert isinstance(error, Transient)
    assert "cannot be reached" in str(error)


def test_a_slow_endpoint_is_left_in_time(endpoint: TokenEndpoint, oauth: OAuth):
    endpoint.delay_seconds = 60
    error = refusal(oauth, timeout_seconds=0.3)
    assert isinstance(error, Transient)
    assert "does not answer in time" in str(error)


def test_a_certificate_of_another_authority_names_the_field(oauth: OAuth, tmp_path: Path):
    error = refusal(replace(oauth, ca_file=str(Authority(tmp_path / "other").path)))
    assert isinstance(error, Unauthenticated)
    assert "does not verify against the authorities of caSecretName" in str(error)
    assert "the system's (caSecretName is not set)" in str(refusal(replace(oauth, ca_file="")))


def test_an_expired_certificate_is_refused(endpoint: TokenEndpoint, oauth: OAuth, authority: Authority):
    endpoint.certify(authority.issue("endpoint", expired=True))
    error = refusal(oauth)
    assert isinstance(error, Unauthenticated)
    assert "has expired" in str(error)


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (200, b"hunter2", Terminal, "without an access_token"),
        (200, b"[]", Terminal, "without an access_token"),
        (200, b"[" * 100_000, Terminal, "without an access_token"),
        (200, b'{"access_token": 7, "expires_in": 60}', Terminal, "without an access_token"),
        (200, b'{"access_token": "a\\u0001auth=x", "expires_in": 60}', Terminal, "without an access_token"),
        (200, b'{"access_token": "hunter2", "token_type": "mac", "expires_in": 60}', Terminal, "not of type Bearer"),
        (200, b'{"access_token": "hunter2"}', Terminal, "without a valid expires_in"),
        (200, b'{"access_token": "hunter2", "expires_in": "soon"}', Terminal, "without a valid expires_in"),
        (200, b'{"access_token": "hunter2", "expires_in": -1}', Terminal, "without a valid expires_in"),
        (200, b'{"access_token": "hunter2", "expires_in": 1e400}', Terminal, "without a valid expires_in"),
        (200, b'{"access_token": "hunter2", "expires_in": true}', Terminal, "without a valid expires_in"),
        (200, b"x" * 1_000_000, Terminal, "more than 256 KiB"),
        (302, b"", Terminal, "HTTP 302: check the URL"),
        (404, b"<html>hunter2</html>", Terminal, "HTTP 404: check the URL"),
        (400, b'{"error": "invalid_scope"}', Unauthenticated, "refuses the scope 'kafka': check scope"),
        (400, b'{"error": "unauthorized_client"}', Unauthenticated, "check clientId and clientSecretRef"),
        (400, b'{"error": "hunter2 <script>"}', Terminal, "HTTP 400: check the URL"),
        (401, b"hunter2", Unauthenticated, r"refuses client 'bell:wether' \(401\)"),
        (429, b"hunter2", Transient, "HTTP 429"),
        (503, b"hunter2", Transient, "HTTP 503"),
    ],
)
def test_answer_without_token_is_described_and_not_shown(
    endpoint: TokenEndpoint, oauth: OAuth, status: int, body: bytes, kind: type[BellwetherError], said: str
):
    endpoint.answer = status, body
    with pytest.raises(kind, match=said) as caught:
        ask(oauth, 5)
    assert type(caught.value) is kind
    assert "hunter2" not in str(caught.value)


def test_the_same_trouble_is_said_in_the_same_words(endpoint: TokenEndpoint, oauth: OAuth):
    endpoint.answer = 500, json.dumps({"error": "x", "request_id": 1}).encode()
    first = str(refusal(oauth))
    endpoint.answer = 500, json.dumps({"error": "x", "request_id": 2}).encode()
    assert str(refusal(oauth)) == first


def test_whatever_else_is_at_the_address_is_refused(oauth: OAuth, scripted_http: str):
    error = refusal(replace(oauth, token_endpoint=scripted_http))
    assert isinstance(error, Terminal)
    assert "does not complete a TLS handshake" in str(error)


@pytest.fixture
def scripted_http() -> Iterator[str]:
    """A server that speaks HTTP in the clear."""
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"https://127.0.0.1:{server.server_address[1]}/token"
    server.shutdown()
    server.server_close()


def test_an_endpoint_is_reached_by_the_proxy_that_was_chosen(endpoint: TokenEndpoint, oauth: OAuth):
    with RealProxy("me", "pr0xy & /?") as running:
        chosen = HttpProxy(url=running.url, username="me", password="pr0xy & /?")
        assert ask(replace(oauth, proxy=chosen), 5).token == endpoint.given[-1]
        assert running.asked == [f"CONNECT {endpoint.url.removeprefix('https://').removesuffix('/token')}"]


def test_a_proxy_of_the_environment_is_not_used(oauth: OAuth, monkeypatch: pytest.MonkeyPatch):
    with RealProxy() as running:
        for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, running.url)
        ask(oauth, 5)
        assert running.asked == []


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (407, Unauthenticated, r"refuses its user \(407\): check its user name and password"),
        (403, Terminal, r"does not let requests to tokenEndpoint .* pass \(403\): allow that there"),
        (503, Transient, r"cannot reach tokenEndpoint .* now \(503\)"),
    ],
)
def test_a_proxy_that_refuses_is_named_without_its_password(
    oauth: OAuth, status: int, kind: type[BellwetherError], said: str
):
    with RealProxy() as running:
        running.refuse = status
        chosen = HttpProxy(url=running.url, username="me", password="pr0xy", name="proxy.url")
        with pytest.raises(kind, match=rf"^proxy\.url http://127\.0\.0\.1:\d+ {said}") as caught:
            ask(replace(oauth, proxy=chosen), 5)
        assert "pr0xy" not in str(caught.value)
        assert SECRET not in str(caught.value)
        running.stop()
        with pytest.raises(Transient, match=r"^proxy\.url .* cannot be reached"):
            ask(replace(oauth, proxy=chosen), 5)
