"""How a policy reaches its Kafka cluster. Secrets are named here and never held: whoever connects resolves them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from bellwether.api.v1alpha1.models import AS_SET, DISTINCT, Matching, Model, Rule, integer
from bellwether.core import policies

_PORT = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_HOST = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)"

HostPort = Annotated[
    str,
    Matching(
        f"^{_HOST}:{_PORT}$",
        "must be host:port with a port from 1 to 65535, such as kafka-bootstrap.example:9092 or [2001:db8::1]:9092",
        260,
    ),
]
SecretName = Annotated[
    str,
    Matching(
        "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", "must be the name of a Secret: lower case letters, digits, '-' and '.'", 253
    ),
]
SecretKey = Annotated[
    str, Matching("^[A-Za-z0-9._-]+$", "must be a key of the Secret: letters, digits, '-', '_' and '.'", 253)
]
ClientId = Annotated[str, Matching("^[A-Za-z0-9._-]+$", "must consist of letters, digits, '-', '_' and '.'", 100)]


class SecretKeyRef(Model):
    """One key of one Secret in the policy's own namespace."""

    name: Annotated[SecretName, Field(description="Name of the Secret, in the policy's own namespace.")]
    key: Annotated[SecretKey, Field(description="Key of the Secret's data.")]


class Tls(Model):
    """Encryption, and who is trusted."""

    enabled: bool = Field(default=True, strict=True, description="Whether connections use TLS.")
    ca_secret_ref: SecretKeyRef | None = Field(
        default=None,
        description="PEM certificates of the authorities that sign the brokers'. Absent: those of the system.",
    )
    certificate_secret_ref: SecretKeyRef | None = Field(
        default=None, description="PEM certificate chain to authenticate with (mutual TLS); needs keySecretRef."
    )
    key_secret_ref: SecretKeyRef | None = Field(
        default=None, description="PEM private key that belongs to certificateSecretRef, not encrypted."
    )
    verify_hostname: bool = Field(
        default=True, strict=True, description="Whether a broker's certificate must carry the host name connected to."
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.certificateSecretRef) == has(self.keySecretRef)",
            message="certificateSecretRef and keySecretRef go together: set both for mutual TLS, or neither",
            holds=lambda tls: (tls.certificate_secret_ref is None) == (tls.key_secret_ref is None),
        ),
        Rule(
            cel="self.enabled || !(has(self.caSecretRef) || has(self.certificateSecretRef) || has(self.keySecretRef))",
            message="is false though Secrets for TLS are named: set enabled to true, or remove the references",
            holds=lambda tls: (
                tls.enabled or not (tls.ca_secret_ref or tls.certificate_secret_ref or tls.key_secret_ref)
            ),
            field="enabled",
        ),
    )


class SaslMechanism(StrEnum):
    """The SASL mechanisms that both Kafka clients speak with a password."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


class Sasl(Model):
    """Authentication by user name and password."""

    mechanism: SaslMechanism = Field(description="SASL mechanism of the listener.")
    username: str = Field(min_length=1, max_length=256, description="User name.")
    password_secret_ref: SecretKeyRef = Field(description="Where the password is.")
    allow_plaintext: bool = Field(
        default=False, strict=True, description="Accept that the password travels over connections without TLS."
    )


class Kafka(Model):
    """How to reach the Kafka cluster."""

    bootstrap_servers: Annotated[
        tuple[HostPort, ...],
        Field(
            min_length=1,
            max_length=32,
            description="Where to connect first, as host:port, on a listener that the operator can reach.",
            json_schema_extra=AS_SET,
        ),
        DISTINCT,
    ]
    tls: Tls | None = Field(default=None, description="TLS of the operator's and the probers' connections.")
    sasl: Sasl | None = Field(default=None, description="SASL of the operator's and the probers' connections.")
    client_id: Annotated[ClientId, Field(description="Client id that brokers see in requests, logs and quotas.")] = (
        "bellwether"
    )
    broker_session_timeout_seconds: int = integer(
        policies.Policy(name="").session_timeout_seconds,
        1,
        3600,
        "The brokers' broker.session.timeout.ms in seconds: how long Kafka's own fencing is given for a broker that"
        " answers nobody.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.sasl) || (has(self.tls) && self.tls.enabled) || self.sasl.allowPlaintext",
            message="sends a password without TLS: set kafka.tls, or sasl.allowPlaintext to true to accept that",
            holds=lambda k: k.sasl is None or (k.tls is not None and k.tls.enabled) or k.sasl.allow_plaintext,
            field="sasl",
        ),
    )
