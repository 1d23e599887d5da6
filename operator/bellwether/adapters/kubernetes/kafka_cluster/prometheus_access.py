"""Resolve the access to Prometheus of a SignalSource: Secrets, an identity of the pod, headers, a proxy, CAs.

In: its ``spec.prometheus``. Out: an ``Access``, or Unauthenticated with field, Secret, key and remedy. Called by
``bellwether probe prometheus`` whenever it reads the source.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

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
from bellwether.kafka_connection import Hidden, TokenFile
from bellwether.ports.errors import Unauthenticated


def prometheus_access(section: Prometheus, secrets: SecretReader) -> Access:
    """The access as its Secrets and files are now. Raises Transient or Terminal."""
    token, user = Hidden(""), ("", Hidden(""))
    if section.bearer_token_secret_name is not None:
        with about("bearerTokenSecretName"):
            token = Hidden(secrets.value(section.bearer_token_secret_name, "token"))
    elif section.basic_auth_secret_name is not None:
        user = basic_auth(secrets, section.basic_auth_secret_name, "basicAuthSecretName")
    elif section.workload_identity is not None:
        token = _of_workload(section.workload_identity, section.url, secrets.namespace)
    ca = None
    if section.ca_secret_name is not None:
        with about("caSecretName"):
            ca = Path(authorities(secrets, section.ca_secret_name))
    return Access(
        token=token,
        username=user[0],
        password=user[1],
        headers=tuple((header.name, header.value) for header in section.headers),
        proxy=http_proxy(secrets, section.proxy, "proxy"),
        ca=ca,
    )


def _of_workload(name: str, url: str, namespace: str) -> Hidden:
    found = named_identity(name, namespace, "workloadIdentity")
    where = f"workloadIdentity ({name})"
    if found.token_file is None:
        raise Unauthenticated(f"{where} is not one with a tokenFile: name one that is")
    file = TokenFile(path=found.token_file, hosts=found.hosts, names=(("path", f"{where}:"),))
    host = urlsplit(url).hostname or ""
    if not file.allows(host):
        raise Unauthenticated(f"hosts of the workload identity {name} omit {host}: add it there, or change url")
    return token_of(Path(file.path), file.where)
