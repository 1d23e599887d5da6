"""A policy's words on how to reach Kafka, with its Secrets resolved: what the Kafka adapter connects with.

In: ``spec.kafka``. Out: a ``Connection``. Called wherever a policy's connection is made: the operator, the probers, the
command line. Terminal names the Secret and the key that are missing.
"""

from __future__ import annotations

from bellwether.adapters.kubernetes.credentials import SecretReader
from bellwether.api.v1alpha1.connections import Kafka, SecretKeyRef
from bellwether.connections import Connection, Mechanism, Protocol, Security
from bellwether.ports import Terminal


def connection(kafka: Kafka, secrets: SecretReader, bootstrap: tuple[str, ...] = ()) -> Connection:
    """How to connect; ``bootstrap`` stands in for the policy's own addresses. Raises Transient or Terminal."""
    try:
        return Connection(bootstrap or tuple(kafka.bootstrap_servers), _security(kafka, secrets), kafka.client_id)
    except ValueError as error:
        raise Terminal(f"spec.kafka: {error}") from None


def _security(kafka: Kafka, secrets: SecretReader) -> Security:
    tls, sasl = kafka.tls, kafka.sasl
    encrypted = tls is not None and tls.enabled
    protocol = {
        (False, False): Protocol.PLAINTEXT,
        (True, False): Protocol.SSL,
        (False, True): Protocol.SASL_PLAINTEXT,
        (True, True): Protocol.SASL_SSL,
    }[encrypted, sasl is not None]

    def file(reference: SecretKeyRef | None) -> str:
        return str(secrets.file(reference.name, reference.key)) if encrypted and reference is not None else ""

    return Security(
        protocol=protocol,
        mechanism=Mechanism(sasl.mechanism.value) if sasl else None,
        username=sasl.username if sasl else "",
        password=secrets.value(sasl.password_secret_ref.name, sasl.password_secret_ref.key) if sasl else "",
        ca_file=file(tls.ca_secret_ref) if tls else "",
        cert_file=file(tls.certificate_secret_ref) if tls else "",
        key_file=file(tls.key_secret_ref) if tls else "",
        verify_hostname=tls.verify_hostname if tls else True,
    )
