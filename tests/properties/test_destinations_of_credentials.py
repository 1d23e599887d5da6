"""Whatever a policy's author writes, credentials of others go only where their owner has them go, and connections
only where the administrator lets them.

Every field that an author can write is tried with what an attacker would write, alone and in pairs, for each credential
that is not the author's: the KafkaUser of a Strimzi cluster, and identities of Bellwether's own pods. A field that is
added to the API fails here until it says what an attacker would write.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from bellwether.adapters.kubernetes.api_client import SECRETS
from bellwether.adapters.kubernetes.kafka_cluster import secret_reader
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import sides
from bellwether.adapters.kubernetes.kafka_cluster.prometheus_access import prometheus_access
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.api.config.workload_identity import VARIABLE
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leader_rebalance import LeaderRebalance
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.signal_source import Prometheus, SignalSource
from bellwether.api.v1alpha1.spec.detection_spec import ExternalReachability
from bellwether.api.v1alpha1.spec.kafka_spec import Kafka, OAuth
from bellwether.destinations import NOT_LOCAL
from bellwether.ports.errors import Terminal
from realparts.tls import Authority
from testkit.kubernetes import api_objects, strimzi_objects
from testkit.kubernetes.memory_api import MemoryApi

THEIRS = "evil.example.com"
"""The author's own address; no credential of others may go there."""

WRITTEN: dict[str, Any] = {
    "enabled": True,
    "bootstrapServers": [f"{THEIRS}:9092"],
    "listeners": ["EVIL-9092"],
    "vantages": ["a"],
    "clusterName": "my-cluster",
    "namespace": "default",
    "listener": "external",
    "userName": "bellwether",
    "caSecretName": "their-ca",
    "certificateSecretName": "their-pair",
    "verifyHostname": False,
    "mechanism": "OAUTHBEARER",
    "username": "u",
    "passwordSecretName": "bellwether",
    "tokenEndpoint": f"https://{THEIRS}/token",
    "clientId": "id",
    "name": "their-password",
    "key": "password",
    "scope": "s",
    "url": f"http://{THEIRS}:3128",
    "credentialsSecretName": "their-password",
    "region": "eu-central-1",
    "accessKeySecretName": "their-password",
    "workloadIdentity": "kafka",
    "allowPlaintext": True,
    "userSecretName": "bellwether",
    "bearerTokenSecretName": "their-password",
    "basicAuthSecretName": "their-password",
    "headers": [{"name": "X-Forwarded-Host", "value": THEIRS}],
}
"""What an attacker writes into a field, by its name."""

LEADS_NOWHERE = {
    *("override.reason", "override.by", "policyRef.name", "policy", "store", "profile", "schedule"),
    *("objective.preferredRacks", "objective.excludedTopics", "demotion.maxBrokers"),
    *("scope.includedTopics", "scope.excludedTopics", "maintenance.pods.selector", "detection.canary.topic"),
    *("detection.signalSources.name", "detection.signalSources.selector"),
    *("placement.racks", "placement.weights.rack", "placement.topics.pattern", "placement.topics.racks"),
    *("placement.topics.weights.rack", "prometheus.rules.name", "prometheus.rules.query", "prometheus.rules.preset"),
    *("prometheus.rules.selector", "prometheus.rules.threshold", "prometheus.rules.brokerLabel", "plugin.type"),
    *("plugin.settings.name", "plugin.settings.value"),  # what a plug-in makes of them is guarded where it connects
}
"""Texts of an author that no connection is made from, in no part of the API that is tried here."""

Path_ = tuple[str, ...]


def texts(model: type[BaseModel], path: Path_ = ()) -> Iterator[Path_]:
    """Paths of all fields of a model, and of models in it, that may be a text."""

    def types(annotation: Any) -> Iterator[Any]:
        yield annotation
        for inner in get_args(annotation):
            yield from types(inner)

    for name, field in model.model_fields.items():
        inner, here = list(types(field.annotation)), (*path, field.alias or name)
        models = [one for one in inner if isinstance(one, type) and issubclass(one, BaseModel)]
        if str in inner:
            yield here
        for one in models:
            yield from texts(one, here)


def fields(model: type[BaseModel], skipped: frozenset[str] = frozenset()) -> Iterator[Path_]:
    """Paths of the fields of a model that have no fields of their own."""
    for name, field in model.model_fields.items():
        alias = field.alias or name
        if alias in skipped or field.annotation is int:  # a number is no destination
            continue
        inner = [t for t in (field.annotation, *get_args(field.annotation)) if isinstance(t, type)]
        models = [t for t in inner if issubclass(t, BaseModel)]
        if models and alias not in WRITTEN:
            yield from ((alias, *path) for path in fields(models[0]))
        else:
            yield (alias,)


def combinations(paths: list[Path_]) -> Iterator[tuple[Path_, ...]]:
    return itertools.chain(((path,) for path in paths), itertools.combinations(paths, 2))


def written(body: dict[str, Any], paths: tuple[Path_, ...]) -> dict[str, Any]:
    for path in paths:
        at = body
        for step in path[:-1]:
            at = at.setdefault(step, {})
        at[path[-1]] = WRITTEN[path[-1]]
    return body


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def secrets(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SecretReader]:
    api = MemoryApi()
    strimzi_objects.put_cluster(api, authority.path.read_text(), "administrators")
    own, administrators = Authority(tmp_path / "own"), Authority(tmp_path / "administrators")
    certificate, key = own.issue("eve")
    pair = {"tls_crt": certificate.read_text(), "tls_key": key.read_text()}
    api.put(SECRETS, strimzi_objects.secret("their-ca", ca_crt=own.path.read_text()))
    api.put(SECRETS, strimzi_objects.secret("their-pair", **pair))
    api.put(SECRETS, strimzi_objects.secret("their-password", password="p", username="u"))
    token, identities = tmp_path / "token", tmp_path / "identities.yaml"
    token.write_text("administrators")
    identities.write_text(
        f"workloadIdentities:\n  kafka: {{namespaces: [default], hosts: [kafka.example.com], tokenFile: {token},"
        f" caFile: {administrators.path}}}\n"
        f"  prometheus: {{namespaces: [default], prometheus: {{url: 'https://prometheus.example.com:9090'}},"
        f" tokenFile: {token}, caFile: {authority.path}}}\n"
    )
    monkeypatch.setenv(VARIABLE, str(identities))
    monkeypatch.setattr(secret_reader, "api_servers", lambda _: {("10.0.0.1", 443)})
    with SecretReader(api, "default", destinations=NOT_LOCAL) as reader:
        yield reader


def test_every_text_of_an_author_is_tried_or_leads_nowhere() -> None:
    kinds = (LeadershipPolicy, SignalSource, LeaderRebalance, BrokerHealth)
    specs = [kind.model_fields["spec"].annotation for kind in kinds]
    found = {".".join(path) for spec in specs if spec is not None for path in texts(spec)}
    tried = {"kafka": Kafka, "detection.externalReachability": ExternalReachability, "prometheus": Prometheus}
    for at, model in tried.items():
        found -= {".".join((at, *path)) for path in texts(model) if path[0] != "rules"}
    assert found == LEADS_NOWHERE


OWN = {"bootstrapServers": [f"{THEIRS}:9093"], "tls": {}, "sasl": {"mechanism": "SCRAM-SHA-512", "username": "u"}}
STRIMZI = {"strimzi": {"clusterName": "my-cluster"}}
IDENTITY = {
    "bootstrapServers": ["kafka.example.com:9093"],
    "tls": {},
    "sasl": {"mechanism": "OAUTHBEARER", "workloadIdentity": "kafka"},
}


BOTH = {"strimzi": {"clusterName": "my-cluster", "listener": "tls"}, "tls": {}, "sasl": IDENTITY["sasl"]}


@pytest.mark.parametrize(
    "base",
    [STRIMZI, IDENTITY, BOTH, OWN, {"bootstrapServers": OWN["bootstrapServers"], "tls": {}}],
    ids=["a Strimzi user", "an identity of the pods", "an identity for Strimzi", "a Secret by name", "a user by name"],
)
def test_no_credential_for_kafka_goes_to_what_an_author_wrote(
    secrets: SecretReader, authority: Authority, tmp_path: Path, base: dict[str, Any]
) -> None:
    used = 0
    outside = [("detection", "externalReachability", *path) for path in fields(ExternalReachability)]
    for paths in combinations([*(("kafka", *path) for path in fields(Kafka)), *outside]):
        kafka = {key: dict(value) if isinstance(value, dict) else value for key, value in base.items()}
        spec = written({"kafka": kafka, "detection": {}}, paths)
        try:
            policy = LeadershipPolicy.read(api_objects.policy(**spec)).spec
            reach = policy.detection.external_reachability
            found = sides(policy.kafka, secrets, tuple(reach.listeners), tuple(reach.bootstrap_servers))
        except Terminal:
            continue
        security, addresses = found.connection.security, (*found.connection.bootstrap, *found.outside)
        assert security.destinations == secrets.destinations, paths
        assert getattr(security.oauth, "destinations", secrets.destinations) == secrets.destinations, paths
        if security.password == "administrators":
            assert all(".default.svc:" in address for address in addresses), paths
        elif getattr(security.oauth, "path", ""):
            assert not security.oauth.allows(THEIRS), paths  # type: ignore[union-attr]
            assert security.protocol.tls, paths
            assert security.verify_hostname, paths
        else:
            continue
        used += 1
        owner = authority.path if security.oauth is None else tmp_path / "administrators" / authority.path.name
        trusted = Path(security.ca_file).read_text().strip() if security.ca_file else ""
        assert trusted == owner.read_text().strip() or not security.protocol.tls, paths
    assert used > 10 or base.get("bootstrapServers") == OWN["bootstrapServers"]


def test_no_token_endpoint_is_where_policies_may_not_connect(secrets: SecretReader) -> None:
    reference = {"name": "their-password", "key": "password"}
    oauth = {"tokenEndpoint": "https://idp.example.com/t", "clientId": "c", "clientSecretRef": reference}
    for path in fields(OAuth):
        sasl = {"mechanism": "OAUTHBEARER", "oauth": {**oauth, "proxy": {"url": "http://proxy.example.com:3128"}}}
        spec = {"kafka": {"bootstrapServers": ["k:9093"], "tls": {}, "sasl": sasl}}
        policy = LeadershipPolicy.read(api_objects.policy(**written(spec, (("kafka", "sasl", "oauth", *path),))))
        security = sides(policy.spec.kafka, secrets, (), ()).connection.security
        assert getattr(security.oauth, "destinations", None) == security.destinations == secrets.destinations, path


def test_no_query_goes_where_policies_may_not_connect(secrets: SecretReader) -> None:
    paths = list(fields(Prometheus, frozenset({"rules", "periodSeconds", "workloadIdentity"})))
    asked = 0
    for written_paths in combinations(paths):
        body = api_objects.at_prometheus()
        written(body["spec"]["prometheus"], written_paths)
        try:
            section = SignalSource.read(body).spec.prometheus
            assert section is not None
            _, access = prometheus_access(section, secrets)
        except Terminal:
            continue
        assert access.destinations == secrets.destinations, written_paths
        asked += 1
    assert asked > 10


def test_no_identity_for_prometheus_goes_to_what_an_author_wrote(secrets: SecretReader, authority: Authority) -> None:
    paths = list(fields(Prometheus, frozenset({"rules", "periodSeconds", "workloadIdentity"})))
    assert ("url",) in paths
    for written_paths in combinations(paths):
        body = api_objects.at_prometheus(workloadIdentity="prometheus")
        del body["spec"]["prometheus"]["url"]
        written(body["spec"]["prometheus"], written_paths)
        try:
            section = SignalSource.read(body).spec.prometheus
            assert section is not None
            url, access = prometheus_access(section, secrets)
        except Terminal:
            continue
        pytest.fail(f"{written_paths}: {url}, {access}")
    body["spec"]["prometheus"] = {"workloadIdentity": "prometheus", "rules": body["spec"]["prometheus"]["rules"]}
    section = SignalSource.read(body).spec.prometheus
    assert section is not None
    url, access = prometheus_access(section, secrets)
    assert (url, access.token, access.ca) == ("https://prometheus.example.com:9090", "administrators", authority.path)
