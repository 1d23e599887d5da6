"""From a policy's ``spec.kafka`` and the Secrets that it names to one connection for every Kafka client.

Called by the policy loops and by the probers. Terminal errors name the Secret and the key, never a value.
"""

from __future__ import annotations

from bellwether.adapters.kubernetes.credentials import SecretReader
from bellwether.api.v1alpha1.connections import Kafka, SecretKeyRef
from bellwether.connections import Connection, Mechanism, Protocol, Security
from bellwether.ports import Terminal


def connection_of(kafka: Kafka, secrets: SecretReader) -> Connection:
    """The connection that a policy describes. Terminal when a Secret is missing or the combination cannot work."""
    tls = kafka.tls is not None and kafka.tls.enabled
    try:
        settings = Security(
            protocol=_protocol(tls, kafka.sasl is not None),
            mechanism=Mechanism(str(kafka.sasl.mechanism)) if kafka.sasl is not None else None,
            username=kafka.sasl.username if kafka.sasl is not None else "",
            password=_value(kafka.sasl.password_secret_ref, secrets) if kafka.sasl is not None else "",
            ca_file=_file(kafka.tls.ca_secret_ref, secrets) if kafka.tls is not None and tls else "",
            cert_file=_file(kafka.tls.certificate_secret_ref, secrets) if kafka.tls is not None and tls else "",
            key_file=_file(kafka.tls.key_secret_ref, secrets) if kafka.tls is not None and tls else "",
            verify_hostname=kafka.tls.verify_hostname if kafka.tls is not None else True,
        )
        return Connection(tuple(kafka.bootstrap_servers), settings, kafka.client_id)
    except ValueError as error:
        raise Terminal(f"spec.kafka: {error}") from None


def _protocol(tls: bool, sasl: bool) -> Protocol:
    if sasl:
        return Protocol.SASL_SSL if tls else Protocol.SASL_PLAINTEXT
    return Protocol.SSL if tls else Protocol.PLAINTEXT


def _value(ref: SecretKeyRef, secrets: SecretReader) -> str:
    return secrets.value(ref.name, ref.key)


def _file(ref: SecretKeyRef | None, secrets: SecretReader) -> str:
    return str(secrets.file(ref.name, ref.key)) if ref is not None else ""
