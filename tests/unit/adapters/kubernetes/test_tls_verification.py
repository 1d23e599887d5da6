"""An API behind an authority that lacks formal extensions is trusted; one behind a stranger is not."""

from __future__ import annotations

import http.server
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client
from urllib3.util import ssl_

from bellwether.adapters.kubernetes.api_client import LEASES, from_configuration
from bellwether.adapters.kubernetes.kubeconfig import as_kubectl
from bellwether.controllers.policy_manager import ApiLogin
from bellwether.ports.errors import Transient
from realparts.tls import Authority
from waiting import limit


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Without the key usage that RFC 5280 wants, as many clusters' own are without this or that."""
    return Authority(tmp_path / "authority", formal=False)


@pytest.fixture
def served(authority: Authority) -> Iterator[str]:
    """An HTTPS server with a certificate of that authority, which answers an empty list."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"items": []}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Answer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def strict_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contexts as Python 3.13 makes them, whichever Python this is."""
    plain, of_urllib3 = ssl.create_default_context, ssl_.create_urllib3_context

    def strict(*arguments: object, **named: object) -> ssl.SSLContext:
        made = plain(*arguments, **named)  # type: ignore[arg-type]
        made.verify_flags |= ssl.VERIFY_X509_STRICT
        return made

    def strict_of_urllib3(*arguments: object, **named: object) -> ssl.SSLContext:
        made = of_urllib3(*arguments, **named)  # type: ignore[arg-type]
        made.verify_flags |= ssl.VERIFY_X509_STRICT
        return made

    monkeypatch.setattr(ssl, "create_default_context", strict)
    monkeypatch.setattr("bellwether.adapters.kubernetes.kubeconfig.create_urllib3_context", strict_of_urllib3)


def configured(url: str, authority: Path) -> client.Configuration:
    made = client.Configuration()
    made.host, made.ssl_ca_cert = url, str(authority)
    return made


def test_strict_python_would_refuse_that_authority(strict_python: None, served: str, authority: Authority) -> None:
    context = ssl.create_default_context(cafile=authority.path)
    with pytest.raises(urllib.error.URLError, match="Path length given without key usage"):
        urllib.request.urlopen(served, context=context, timeout=limit(10))  # noqa: S310 - on 127.0.0.1


def test_our_client_trusts_it(strict_python: None, served: str, authority: Authority) -> None:
    assert from_configuration(configured(served, authority.path)).list(LEASES, "main") == []


def test_a_stranger_is_still_refused(strict_python: None, served: str, tmp_path: Path) -> None:
    stranger = Authority(tmp_path / "stranger")
    with pytest.raises(Transient, match="not reachable"):
        from_configuration(configured(served, stranger.path)).list(LEASES, "main")


def test_another_name_is_still_refused(strict_python: None, served: str, authority: Authority) -> None:
    elsewhere = served.replace("127.0.0.1", "127.0.0.2")
    with pytest.raises(Transient):
        from_configuration(configured(elsewhere, authority.path)).list(LEASES, "main")


def test_the_watches_login_is_as_forgiving_and_requires_all_else(strict_python: None, authority: Authority) -> None:
    context = ApiLogin(server="https://127.0.0.1:6443", ca_path=str(authority.path)).as_ssl_context()
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


def test_only_that_one_flag_is_taken_away() -> None:
    context = ssl.create_default_context()
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_CRL_CHECK_LEAF
    before = context.verify_flags
    assert as_kubectl(context).verify_flags == before & ~ssl.VERIFY_X509_STRICT
