"""A real Prometheus that asks for a user and a password: the prober's command, the sampler's options."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bellwether.adapters.kubernetes.api_client import POLICIES, SECRETS, SIGNAL_SOURCES
from bellwether.adapters.prometheus.query_client import Access, PrometheusClient
from bellwether.cli.probe.prometheus import prometheus
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import HttpProxy
from bellwether.ports.errors import Terminal
from bellwether_load.cli.prometheus_access import prometheus_access
from realparts.httpproxy import HttpProxy as RealProxy
from realparts.prometheus import PrometheusServer
from realparts.tls import Authority
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi

pytestmark = pytest.mark.prometheus

USER, PASSWORD = "bellwether", "prom-pw-0"
HASH = "$2b$04$abcdefghijklmnopqrstuu/zpQjSvqeoq92GYUxc1/60TZrQ44P5S"
"""bcrypt of the password, with the least cost."""

HEADER = {"name": "X-Scope-OrgID", "value": "orders"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[PrometheusServer]:
    folder = tmp_path_factory.mktemp("prometheus")
    with PrometheusServer(folder, certificate=authority.issue("prometheus"), users={USER: HASH}) as running:
        yield running


@pytest.fixture
def proxy() -> Iterator[RealProxy]:
    with RealProxy("me", "pr0xy") as running:
        yield running


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, authority: Authority) -> MemoryApi:
    api = MemoryApi()
    api.serve_commands(monkeypatch)
    put(api, "ca", **{"ca.crt": authority.path.read_bytes()})
    put(api, "prom", username=USER.encode(), password=PASSWORD.encode())
    put(api, "proxy", username=b"me", password=b"pr0xy")
    return api


def put(api: MemoryApi, name: str, **data: bytes) -> None:
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    api.put(SECRETS, {"metadata": {"name": name, "namespace": "default"}, "data": encoded})


def asked(api: MemoryApi, server: PrometheusServer, **fields: Any) -> str:
    """What the prober's command says of one rule whose value is 7 for broker 1."""
    return run(api, api_objects.at_prometheus(url=server.url, caSecretName="ca", headers=[HEADER], **fields))


def run(api: MemoryApi, body: dict[str, Any]) -> str:
    rule = body["spec"]["prometheus"]["rules"][0]
    rule["query"] = 'label_replace(vector(7), "broker", "1", "", "")'
    api.put(SIGNAL_SOURCES, body)
    api.put(POLICIES, api_objects.naming("prom"))
    said = CliRunner().invoke(prometheus, ["--policy", "main", "--once"]).output
    assert PASSWORD not in said
    assert "pr0xy" not in said
    return said


def test_user_of_secret_gets_in_by_way_of_proxy(api: MemoryApi, server: PrometheusServer, proxy: RealProxy) -> None:
    by_way = {"url": proxy.url, "credentialsSecretName": "proxy"}
    said = asked(api, server, basicAuthSecretName="prom", proxy=by_way)
    assert "Passing" in said
    assert proxy.asked == [f"CONNECT {server.url.removeprefix('https://')}"]


def test_without_user_or_with_wrong_password_fields_are_named(api: MemoryApi, server: PrometheusServer) -> None:
    wanted = "refuses the credentials (401): check bearerTokenSecretName, basicAuthSecretName or workloadIdentity"
    assert wanted in asked(api, server)
    put(api, "prom", username=USER.encode(), password=b"wr0ng")
    assert wanted in asked(api, server, basicAuthSecretName="prom")


def test_a_renewed_password_and_one_that_is_missing_are_noticed(api: MemoryApi, server: PrometheusServer) -> None:
    put(api, "prom", username=USER.encode())
    said = asked(api, server, basicAuthSecretName="prom")
    assert "basicAuthSecretName: secret default/prom has no key 'password'; its keys: username" in said
    put(api, "prom", username=USER.encode(), password=PASSWORD.encode())
    assert "Passing" in asked(api, server, basicAuthSecretName="prom")


def test_a_proxy_that_refuses_its_user_is_named(api: MemoryApi, server: PrometheusServer, proxy: RealProxy) -> None:
    put(api, "proxy", username=b"me", password=b"wr0ng")
    by_way = {"url": proxy.url, "credentialsSecretName": "proxy"}
    said = asked(api, server, basicAuthSecretName="prom", proxy=by_way)
    assert f"proxy.url {proxy.url} refuses its user (407): check its user name and password" in said


def test_token_of_pod_goes_to_server_that_administrator_named(
    api: MemoryApi, server: PrometheusServer, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, identities = tmp_path / "token", tmp_path / "identities.yaml"
    token.write_text("t0ken-of-the-pod\n")
    identities.write_text(
        f"workloadIdentities: {{pod: {{namespaces: [default], prometheus: {{url: '{server.url}'}},"
        f" tokenFile: {token}, caFile: {authority.path}}}}}"
    )
    monkeypatch.setenv("BELLWETHER_WORKLOAD_IDENTITIES", str(identities))
    body = api_objects.at_prometheus(workloadIdentity="pod")
    del body["spec"]["prometheus"]["url"]
    said = run(api, body)
    assert "refuses the credentials (401)" in said, "this server knows no tokens, and it was asked"
    assert "t0ken" not in said


def test_a_sampler_s_options_get_in_as_well(
    server: PrometheusServer, authority: Authority, proxy: RealProxy, tmp_path: Path
) -> None:
    for name, content in (("username", USER), ("password", f"{PASSWORD}\n"), ("ca.crt", authority.path.read_text())):
        (tmp_path / name).write_text(content)
    access = prometheus_access(tmp_path, ("X-Scope-OrgID=orders",))
    assert PrometheusClient(server.url, access).ask("vector(7)", "broker", 30).samples == (({}, 7.0),)


def test_server_in_clear_is_asked_by_way_of_proxy_too(tmp_path: Path, proxy: RealProxy) -> None:
    with PrometheusServer(tmp_path) as running:
        chosen = HttpProxy(url=proxy.url, username="me", password="pr0xy", name="proxy.url")
        client = PrometheusClient(running.url, Access(destinations=ANYWHERE, proxy=chosen))
        assert client.ask("vector(7)", "broker", 30).samples == (({}, 7.0),)
        wrong = HttpProxy(url=proxy.url, username="me", password="wr0ng", name="proxy.url")
        with pytest.raises(Terminal, match=r"proxy\.url .* refuses its user \(407\)"):
            PrometheusClient(running.url, Access(destinations=ANYWHERE, proxy=wrong)).ask("vector(7)", "broker", 30)
