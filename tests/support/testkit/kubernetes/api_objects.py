"""Objects of the API as people and probers write them; ``bad_objects`` has those that must be refused."""

from __future__ import annotations

import copy
from typing import Any

from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.settings.source_settings import PrometheusRule

Body = dict[str, Any]
LATER = "2126-01-01T00:00:00Z"
BY_HAND = {"state": "Demoted", "reason": "x"}
LOADS = "loads"
"""Name of the LeaderRebalance of tests."""

DRAIN = {**BY_HAND, "until": LATER, "purpose": "Maintenance"}


def policy(name: str = "main", **spec: Any) -> Body:
    """The smallest LeadershipPolicy, with further fields of its spec."""
    kafka = {"bootstrapServers": ["kafka-bootstrap.example:9092"]}
    return {
        "apiVersion": "bellwether.dev/v1alpha1",
        "kind": "LeadershipPolicy",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"mode": "Observe", "kafka": kafka, **spec},
    }


def health(broker: Any = 1, name: str | None = None, **spec: Any) -> Body:
    """The smallest BrokerHealth, with further fields of its spec."""
    return {
        "apiVersion": "bellwether.dev/v1alpha1",
        "kind": "BrokerHealth",
        "metadata": {"name": name or f"main-{broker}", "namespace": "default"},
        "spec": {"brokerId": broker, "policyRef": {"name": "main"}, **spec},
    }


def entry(source: str = "eu-west-1a", **fields: Any) -> Body:
    """One entry of status.signals."""
    return {
        "type": "ExternalReachability",
        "source": source,
        "reading": "Failing",
        "control": "Passing",
        "since": "2026-01-02T03:04:05Z",
        "message": "connection refused",
        "proberUID": f"uid-{source}",
        "sequence": 7,
        "leaseName": f"bellwether-prober-main-{source}",
        **fields,
    }


def kafka(**fields: Any) -> Body:
    """A spec.kafka with further fields."""
    return {"bootstrapServers": ["kafka-bootstrap.example:9092"], **fields}


def strimzi(tls: Body | None = None, sasl: Body | None = None, **fields: Any) -> Body:
    """A spec.kafka that names a Strimzi cluster, with further fields of it."""
    besides = {"tls": tls, "sasl": sasl}
    return {"strimzi": {"clusterName": "my-cluster", **fields}, **{k: v for k, v in besides.items() if v is not None}}


def without(body: Body, *path: str) -> Body:
    """The same object without one field."""
    result = copy.deepcopy(body)
    parent = result
    for step in path[:-1]:
        parent = parent[step]
    del parent[path[-1]]
    return result


REFERENCE = {"name": "kafka-user", "key": "password"}
OAUTH = {
    "tokenEndpoint": "https://login.example.com/realms/kafka/token",
    "clientId": "bellwether",
    "clientSecretRef": REFERENCE,
}
SASL = {"mechanism": "SCRAM-SHA-512", "username": "bellwether", "passwordSecretName": "kafka-user"}


def oauth_sasl(**fields: Any) -> Body:
    """SASL by token, with further fields of its spec.kafka.sasl.oauth."""
    return {"mechanism": "OAUTHBEARER", "oauth": {**OAUTH, **fields}}


REACHABILITY = "spec.detection.externalReachability"


def reachability(**fields: Any) -> Body:
    """A policy with settings of external reachability."""
    return policy(detection={"externalReachability": fields})


REACHABILITY = "spec.detection.externalReachability"


def source(name: str, namespace: str = "default", **spec: Any) -> Body:
    """A SignalSource with that spec."""
    head = {"apiVersion": "bellwether.dev/v1alpha1", "kind": "SignalSource"}
    return {**head, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def naming(*sources: str | Body, **spec: Any) -> Body:
    """A policy that names these SignalSources."""
    refs = [{"name": one} if isinstance(one, str) else one for one in sources]
    return policy(detection={"signalSources": refs}, **spec)


def prometheus(**rule: Any) -> Body:
    """A SignalSource with one Prometheus rule; fields of the rule."""
    rules = [{"name": "flush", "threshold": "200", **rule}]
    return source("prom", prometheus={"url": "http://prometheus:9090", "rules": rules})


def at_prometheus(**fields: Any) -> Body:
    """A SignalSource with one Prometheus rule, with further fields of its spec.prometheus."""
    body = prometheus(query="up")
    body["spec"]["prometheus"] |= fields
    return body


def rules_of(body: Body) -> tuple[PrometheusRule, ...]:
    """The rules that a policy gets from a SignalSource."""
    policy = LeadershipPolicy.read(naming(body["metadata"]["name"])).with_sources([body])
    return policy.policy().detection.prometheus_rules


def plugin(type_: str, **fields: Any) -> Body:
    """A SignalSource of a plug-in."""
    return source("plug", plugin={"type": type_, **fields})


def rebalance(name: str = LOADS, policy: str = "main", **fields: Any) -> Body:
    """A LeaderRebalance of a policy, with further fields of its spec."""
    head = {"apiVersion": "bellwether.dev/v1alpha1", "kind": "LeaderRebalance"}
    return {**head, "metadata": {"name": name, "namespace": "default"}, "spec": {"policy": policy, **fields}}


def rebalanced(body: Body | None = None, **fields: Any) -> LeadershipPolicy:
    """A policy, the smallest by default, with a LeaderRebalance, with further fields of its spec."""
    found = LeadershipPolicy.read(body or policy())
    return found.with_rebalances([rebalance(policy=found.metadata.name, **fields)])
