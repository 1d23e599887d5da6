"""Resolve the access to Prometheus of a SignalSource: Secrets, an identity of the pod, headers, a proxy, CAs.

In: its ``spec.prometheus``. Out: the server's URL and an ``Access``, or Unauthenticated with field, Secret, key and
remedy. Called by ``bellwether probe prometheus`` whenever it reads the source.
"""

from __future__ import annotations

from pathlib import Path

from bellwether.adapters.kafka.tokens.token_file import token_of
from bellwether.adapters.kubernetes.kafka_cluster.kafka_user_secrets import authorities
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import (
    SecretReader,
    about,
    basic_auth,
    http_proxy,
    named_identity,
)
from bellwether.adapters.prometheus.query_client import Access
from bellwether.api.v1alpha1.signal_source import Prometheus
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Hidden, HttpProxy
from bellwether.ports.errors import Unauthenticated


def prometheus_access(section: Prometheus, secrets: SecretReader) -> tuple[str, Access]:
    """URL and access as its Secrets and files are now. Raises Transient or Terminal."""
    if section.workload_identity is not None:
        return _of_workload(section.workload_identity, secrets.namespace)
    token, user = Hidden(""), ("", Hidden(""))
    if section.bearer_token_secret_name is not None:
        with about("bearerTokenSecretName"):
            token = Hidden(secrets.value(section.bearer_token_secret_name, "token"))
    elif section.basic_auth_secret_name is not None:
        user = basic_auth(secrets, section.basic_auth_secret_name, "basicAuthSecretName")
    ca = None
    if section.ca_secret_name is not None:
        with about("caSecretName"):
            ca = Path(authorities(secrets, section.ca_secret_name))
    access = Access(
        token=token,
        username=user[0],
        password=user[1],
        headers=tuple((header.name, header.value) for header in section.headers),
        proxy=http_proxy(secrets, section.proxy, "proxy"),
        ca=ca,
        destinations=secrets.destinations,
    )
    return section.url or "", access


def _of_workload(name: str, namespace: str) -> tuple[str, Access]:
    """All of it as the administrator has it: nothing that the source's author writes decides where the token goes."""
    found = named_identity(name, namespace, "workloadIdentity")
    where = f"workloadIdentity ({name})"
    server = found.prometheus
    if server is None or found.token_file is None:
        raise Unauthenticated(f"{where} is for Kafka: name one whose chart value workloadIdentities has prometheus.url")
    token = token_of(Path(found.token_file), where)
    proxy = HttpProxy(url=server.proxy_url, name=f"proxyUrl of {where}") if server.proxy_url is not None else None
    ca = Path(found.ca_file) if found.ca_file else None
    return server.url, Access(destinations=ANYWHERE, token=token, proxy=proxy, ca=ca)
