"""Which API and namespace a command talks to: contexts, several files, the pod's ServiceAccount."""

from __future__ import annotations

import http.server
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client
from urllib3.util import ssl_

from bellwether.adapters.kubernetes import kubeconfig
from bellwether.adapters.kubernetes.api_client import LEASES, from_configuration
from bellwether.adapters.kubernetes.kubeconfig import api_access, as_kubectl
from bellwether.controllers.policy_manager import ApiLogin
from bellwether.ports.errors import Terminal, Transient
from realparts.tls import Authority
from waiting import limit


@pytest.fixture(autouse=True)
def outside_a_pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "POD_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def written(path: Path, contexts: dict[str, str | None], current: str | None = None) -> Path:
    """A kubeconfig file; each context has a server of its name, and a namespace if one is given."""
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": one, "cluster": {"server": f"https://{one}.example.com:6443"}} for one in contexts],
        "users": [{"name": "ann", "user": {"token": "some-token"}}],
        "contexts": [
            {"name": one, "context": {"cluster": one, "user": "ann"} | ({"namespace": at} if at else {})}
            for one, at in contexts.items()
        ],
    }
    if current is not None:
        document["current-context"] = current
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return path


def test_the_namespace_is_that_of_the_current_context(tmp_path: Path) -> None:
    found = api_access(written(tmp_path / "config", {"east": "kafka", "west": None}, "east"))
    assert (found.configuration.host, found.namespace) == ("https://east.example.com:6443", "kafka")


def test_a_context_without_a_namespace_means_default(tmp_path: Path) -> None:
    found = api_access(written(tmp_path / "config", {"east": "kafka", "west": None}, "east"), "west")
    assert (found.configuration.host, found.namespace) == ("https://west.example.com:6443", "default")


def test_first_of_several_files_wins_and_missing_ones_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = written(tmp_path / "first", {"east": "kafka"}, "east")
    second = written(tmp_path / "second", {"east": "other", "west": "streams"}, "west")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}:{first}:{second}")
    assert api_access().namespace == "kafka"
    assert api_access(context="west").namespace == "streams"


def test_the_file_of_the_home_directory_is_used_last(tmp_path: Path) -> None:
    written(tmp_path / "home" / ".kube" / "config", {"east": "kafka"}, "east")
    assert api_access().namespace == "kafka"


@pytest.mark.parametrize(
    ("current", "context", "said"),
    [
        ("east", "north", "has no context 'north': set --context; there are: east, west"),
        (None, None, "sets no current context: set --context; there are: east, west"),
        ("gone", None, "has no context 'gone': set --context; there are: east, west"),
    ],
)
def test_unknown_or_missing_context_is_named_with_existing_ones(
    tmp_path: Path, current: str | None, context: str | None, said: str
) -> None:
    path = written(tmp_path / "config", {"west": None, "east": None}, current)
    with pytest.raises(Terminal) as raised:
        api_access(path, context)
    assert str(raised.value) == f"kubeconfig {path} {said}"


@pytest.mark.parametrize(
    "text", ["", "just text", "[1, 2]", "contexts: 3\nclusters: {", "contexts: [{name: a}]\ncurrent-context: a"]
)
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(Terminal, match=str(path)):
        api_access(path)


def test_in_pod_namespace_is_that_of_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace = tmp_path / "namespace"
    namespace.write_text("kafka\n")
    monkeypatch.setattr(kubeconfig, "_SERVICE_ACCOUNT_NAMESPACE", namespace)
    monkeypatch.setattr(kubeconfig.config, "load_incluster_config", lambda **_: None)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert api_access().namespace == "kafka"
    monkeypatch.setenv("POD_NAMESPACE", "named")
    assert api_access().namespace == "named"
    assert api_access(written(tmp_path / "config", {"east": "other"}, "east")).namespace == "other"


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
