"""Identities of the pods: who may use which, and what is wrong with a file of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from bellwether.api.config.workload_identity import WorkloadIdentities
from bellwether.kafka_connection import TokenFile
from bellwether.ports.errors import Unauthenticated

FIELD = "spec.kafka.sasl.workloadIdentity"
FILE = {"namespaces": ["payments"], "hosts": ["*.example.com"], "tokenFile": "/var/run/secrets/kafka/token"}
SERVER = {"namespaces": ["a"], "prometheus": {"url": "https://prom:9090"}, "tokenFile": "/token"}
ROLE = {"namespaces": ["*"], "hosts": ["*"], "awsMskIam": {"region": "eu-central-1"}}


def configured(tmp_path: Path, identities: Any) -> WorkloadIdentities:
    path = tmp_path / "identities.yaml"
    path.write_text(yaml.safe_dump({"workloadIdentities": identities}))
    return WorkloadIdentities.read(str(path))


def test_an_identity_is_for_the_namespaces_that_the_administrator_named(tmp_path: Path):
    found = configured(tmp_path, {"azure": FILE, "msk": ROLE})
    assert found.named("azure", "payments", FIELD).token_file == "/var/run/secrets/kafka/token"
    assert found.named("msk", "orders", FIELD).aws_msk_iam is not None
    with pytest.raises(
        Unauthenticated, match=rf"{FIELD} is 'azure', but policies in namespace orders may use only msk"
    ):
        found.named("azure", "orders", FIELD)


def test_without_a_file_no_policy_has_an_identity():
    with pytest.raises(Unauthenticated, match=r"may use none: the administrator configures .* workloadIdentities"):
        WorkloadIdentities.read("").named("msk", "orders", FIELD)


@pytest.mark.parametrize(
    ("identity", "said"),
    [
        ({**FILE, **ROLE}, "workloadIdentities.one.tokenFile: set exactly one of tokenFile and awsMskIam"),
        ({"namespaces": ["a"], "hosts": ["*"]}, "workloadIdentities.one.tokenFile: set exactly one of"),
        ({**FILE, "hosts": []}, "workloadIdentities.one.hosts: set exactly one of hosts, for Kafka, and prometheus"),
        ({**FILE, "prometheus": {"url": "https://prom:9090"}}, "hosts: set exactly one of hosts"),
        ({**SERVER, "prometheus": {"url": "http://prom:9090"}}, "prometheus.url: must be an https URL of host, port"),
        ({**SERVER, "prometheus": {"url": "https://evil\\x.monitoring.svc"}}, "prometheus.url: must be an https URL"),
        ({**SERVER, "caFile": "ca.pem"}, "caFile: must be the absolute path of a file"),
        (
            {"namespaces": ["a"], "prometheus": {"url": "https://prom"}, "awsMskIam": {"region": "eu-central-1"}},
            "awsMskIam: prometheus takes the token of a tokenFile",
        ),
        ({**FILE, "hosts": ["*evil.com"]}, r"hosts\[0\]: must be a host name, '\*\.' and a domain, or '\*'"),
        ({**FILE, "hosts": ["kafka.example.com:9092"]}, r"hosts\[0\]: must be a host name"),
        ({**FILE, "tokenFile": "token"}, "tokenFile: must be the absolute path of a file"),
        ({**FILE, "namespaces": []}, "namespaces"),
        ({**ROLE, "awsMskIam": {"region": "Frankfurt"}}, "awsMskIam.region: must be an AWS region, such as"),
        ({**ROLE, "awsMskIam": {"region": "eu-central-1", "roleArn": "admin"}}, "roleArn: must be the ARN of an IAM"),
        ({**ROLE, "awsMskIam": {"region": "eu-central-1", "proxyUrl": "http://me:pw@p:1"}}, "proxyUrl: must be http"),
    ],
)
def test_an_invalid_identity_names_its_field(tmp_path: Path, identity: Any, said: str):
    with pytest.raises(Unauthenticated, match=said):
        configured(tmp_path, {"one": identity})


@pytest.mark.parametrize(("text", "said"), [("{", "is not YAML"), ("[1]", "identities.yaml: ")])
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str, said: str):
    path = tmp_path / "identities.yaml"
    path.write_text(text)
    with pytest.raises(Unauthenticated, match=said):
        WorkloadIdentities.read(str(path))
    path.unlink()
    with pytest.raises(Unauthenticated, match=r"BELLWETHER_WORKLOAD_IDENTITIES .* cannot be read: No such file"):
        WorkloadIdentities.read(str(path))


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("b-1.example.com", True),
        ("B-1.Example.COM", True),
        ("b-1.example.com.", True),
        ("kafka", True),
        ("example.com", False),
        ("evilexample.com", False),
        ("b-1.example.com.evil.org", False),
        ("kafka.evil.org", False),
        ("127.0.0.1", False),
        ("", False),
    ],
)
def test_a_host_pattern_covers_one_domain_only(host: str, allowed: bool):
    assert TokenFile(path="/token", hosts=("*.example.com", "kafka")).allows(host) is allowed
