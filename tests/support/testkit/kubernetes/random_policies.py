"""Random policies and sources from a seed, valid and broken, as YAML that people might write.

In: a random generator. Out: the text of one LeadershipPolicy or SignalSource. The schema of the CRD says what fields
there are; good values of strings come from a table by the name of the field. Whether it is valid is for others to say.
"""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

import yaml

from bellwether.api.v1alpha1.schema.crd_manifests import KINDS

SCHEMAS = {kind.name: kind.schema()["properties"]["spec"] for kind in KINDS}
GOOD = {
    "accessKeySecretName": ["aws"],
    "alerts": ["DiskSlow", "a", "9-x"],
    "basicAuthSecretName": ["prom"],
    "bearerTokenSecretName": ["prom"],
    "bootstrapServers": ["kafka:9092", "[2001:db8::1]:9092", "k_1.example:65535", "10.0.0.1:1"],
    "brokerLabel": ["broker", "_id"],
    "caSecretName": ["kafka-ca"],
    "certificateSecretName": ["cert"],
    "credentialsSecretName": ["proxy"],
    "clusterName": ["my-cluster", "a.b"],
    "excludedTopics": ["payments-*", "a?", "__x"],
    "includedTopics": ["*", "orders-?"],
    "key": ["password", "a_b.c"],
    "listener": ["EXTERNAL", "tls"],
    "name": ["one", "two", "cluster", "x-1"],
    "namespace": ["kafka"],
    "passwordSecretName": ["kafka-user"],
    "pattern": ["orders", "pay*", "a?b"],
    "preferredRacks": ["eu-a", "eu b", "z"],
    "preset": ["NodeIoStalled", "RequestHandlerIdle", "ProduceLocalTimeP99", ""],
    "profile": ["default", "big-1"],
    "query": ["up", "max by (broker) (x)", ""],
    "region": ["eu-central-1", "us-gov-west-1"],
    "rack": ["eu-a", "eu-b"],
    "racks": ["eu-a", "eu-b"],
    "schedule": ["0 4 * * *", "*/5 1-3 * * 1"],
    "selector": ["app=kafka", 'namespace="kafka"', "a=b,c=d"],
    "store": ["default", "loads"],
    "threshold": ["200", "-0.5"],
    "tokenEndpoint": ["https://login.example.com/token"],
    "topic": ["bellwether-canary", "a.b"],
    "type": ["TlsVersion", "StorageLatency", "X"],
    "url": ["http://prometheus:9090", "https://prometheus.example.com/x", "https://proxy:3128"],
    "userName": ["bellwether"],
    "userSecretName": ["user"],
    "username": ["bellwether"],
    "value": ["orders", "a b"],
    "workloadIdentity": ["msk", "azure-1"],
    "vantages": ["eu-west-1a", "b", "c.d_e"],
}
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 50, 101, 10**6, 2**31, 10**19, 0.5, 2.0, "", " ", "a", "A", "5", "20%", "50%",
    "é", "a b", "x" * 64, "x" * 300, "kafka", "kafka:0", "kafka:65536", "0 4 * *", "a\n", "@daily", [], {}, ["a"],
    ["a", "a"], [None], [1], {"a": 1}, {"name": "x"}, "Enforce", "enforce", "2030-01-01T00:00:00Z", "http://u@p",
    "kafka:9092\u00a0",
]  # fmt: skip


def random_policy(rng: random.Random) -> str:
    """The YAML of a policy: mostly as the schema wants it, in half of the cases with one to three changes."""
    spec = _object(SCHEMAS["LeadershipPolicy"], rng, 0.25)
    kafka = spec.setdefault("kafka", {})
    if rng.random() < 0.8:  # otherwise hardly any connection were valid
        kafka.clear()
        kafka.update(bootstrapServers=["kafka:9092"])
        if "scope" in spec:
            spec["scope"].setdefault("includedTopics", ["orders-?"])
    return _written("LeadershipPolicy", spec, rng)


def random_source(rng: random.Random) -> str:
    """The YAML of a SignalSource, in the same way."""
    fields = SCHEMAS["SignalSource"]["properties"]
    chosen = [name for name in fields if rng.random() < 0.05] or [rng.choice([*fields])]
    spec = {name: _object(fields[name], rng, 0.25) for name in chosen}
    if "prometheus" in spec and rng.random() < 0.8:  # otherwise hardly any rule were valid
        excluded = {"basicAuthSecretName", rng.choice(["workloadIdentity", "workloadIdentity", "url"])}
        if "url" in excluded:
            excluded |= {"bearerTokenSecretName", "headers", "proxy", "caSecretName"}
            spec["prometheus"]["workloadIdentity"] = "monitoring"
        spec["prometheus"]["url"] = "https://prometheus.example.com"
        for name in excluded:
            spec["prometheus"].pop(name, None)
        for rule in spec["prometheus"]["rules"]:
            rule |= {"query": "up", "preset": ""}
            rule.pop("selector", None)
    return _written("SignalSource", spec, rng)


def _written(kind: str, spec: dict[str, Any], rng: random.Random) -> str:
    head = {"apiVersion": "bellwether.dev/v1alpha1", "kind": kind}
    body: dict[str, Any] = {**head, "metadata": {"name": "generated"}, "spec": spec}
    if rng.random() < 0.5:
        for _ in range(rng.randint(1, 3)):
            _change(body, rng)
    if rng.random() < 0.1:
        body["metadata"]["labels"] = {
            rng.choice(["team", "a/b", "a b", "x" * 64]): rng.choice(["x", "", 1, "a b", None])
        }
    text: str = yaml.safe_dump(body, sort_keys=False, allow_unicode=True, default_flow_style=rng.random() < 0.3)
    return text


def _value(schema: dict[str, Any], name: str, rng: random.Random, share: float) -> Any:
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return rng.choice([1, 1000, "20%", "49%", "1%"])
    kind = schema["type"]
    if kind == "object":
        return _object(schema, rng, share)
    if kind == "array":
        most = min(schema.get("maxItems", 4), 3)
        least = schema.get("minItems", 0)
        if name == "steps":
            return rng.choice([[100], [10, 50, 100], [1, 2, 100]])
        return [_value(schema["items"], name, rng, share) for _ in range(rng.randint(least, max(least, most)))]
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "integer":
        least, most = schema.get("minimum", 0), schema.get("maximum", 100)
        return rng.choice([least, most, rng.randint(least, most)])
    return rng.choice(GOOD.get(name, ["a"]))


def _object(schema: dict[str, Any], rng: random.Random, share: float) -> dict[str, Any]:
    required = schema.get("required", [])
    return {
        name: _value(field, name, rng, share)
        for name, field in schema.get("properties", {}).items()
        if name in required or rng.random() < share
    }


def _change(body: dict[str, Any], rng: random.Random) -> None:
    """Change one place: remove, rename or repeat it, or give it another value."""
    places = list(_places(body["spec"]))
    if not places:
        return
    parent, key = rng.choice(places)
    action = rng.choice(["remove", "rename", "replace", "replace", "repeat", "add"])
    if action == "replace":
        parent[key] = deepcopy(rng.choice(ODD))  # a list that is changed later must not hold itself
    elif action == "remove":
        del parent[key]
    elif isinstance(parent, list):
        parent.append(deepcopy(parent[key]))
    elif action == "rename":
        parent[f"{key}s"] = parent.pop(key)
    elif action == "add":
        parent[rng.choice(["enabled", "mode", "periodSeconds", "colour"])] = deepcopy(rng.choice(ODD))


def _places(value: Any) -> list[tuple[Any, Any]]:
    items = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [place for key, inside in items for place in [(value, key), *_places(inside)]]
