"""Credentials that a policy names: user and password in a Secret, an HTTP proxy, an identity of Bellwether's own pods.

In: fields of a policy. Out: values, or Unauthenticated with the field, the Secret and the remedy. For the connection to
Kafka and for Prometheus.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.api.config.workload_identity import VARIABLE, WorkloadIdentities, WorkloadIdentity
from bellwether.api.v1alpha1.spec.credentials_spec import HttpProxy as HttpProxySpec
from bellwether.kafka_connection import Hidden, HttpProxy
from bellwether.ports.errors import Unauthenticated

USERNAME, PASSWORD = "username", "password"
"""Keys of a Secret of type ``kubernetes.io/basic-auth``."""


@contextmanager
def about(field: str) -> Iterator[None]:
    """Add this field to errors raised inside the block."""
    try:
        yield
    except Unauthenticated as error:
        raise Unauthenticated(f"{field}: {error}") from None


def basic_auth(secrets: SecretReader, name: str, field: str) -> tuple[str, Hidden]:
    """User name and password. Raises Unauthenticated."""
    with about(field):
        secret = secrets.open(name, f"{USERNAME!r} and {PASSWORD!r}")
        username = secret.text(USERNAME)
        if ":" in username:
            raise Unauthenticated(f"secret {secret.title}: key {USERNAME!r} contains a colon, which RFC 7617 forbids")
        return username, Hidden(secret.text(PASSWORD))


def http_proxy(secrets: SecretReader, proxy: HttpProxySpec | None, field: str) -> HttpProxy | None:
    """The proxy of a field, with its user; None without one. Raises Unauthenticated."""
    if proxy is None:
        return None
    username = password = ""
    if proxy.credentials_secret_name is not None:
        username, password = basic_auth(secrets, proxy.credentials_secret_name, f"{field}.credentialsSecretName")
    return HttpProxy(url=proxy.url, username=username, password=password, name=f"{field}.url")


def named_identity(name: str, namespace: str, field: str) -> WorkloadIdentity:
    """The identity that a field of a policy names, as it is configured now. Raises Unauthenticated."""
    return WorkloadIdentities.read(os.environ.get(VARIABLE, "")).named(name, namespace, field)
