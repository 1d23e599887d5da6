"""``spec.kafka``: how to connect to the Kafka cluster. Secrets are named here and never held: whoever connects resolves
them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from bellwether.api.v1alpha1.base_model import AS_SET, DISTINCT, Matching, Model, Rule, integer
from bellwether.api.v1alpha1.spec.strimzi_spec import Strimzi
from bellwether.core.settings import policy as core_policy

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
HttpsUrl = Annotated[
    str,
    Matching(
        r"^https://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~:/@!$&()*+,;=%-]*)?$",
        "must be a URL that begins with https://, without user, query and fragment",
        2048,
    ),
]
ClientId = Annotated[str, Matching("^[A-Za-z0-9._-]+$", "must consist of letters, digits, '-', '_' and '.'", 100)]


class SecretKeyRef(Model):
    """One key of one Secret in the policy's own namespace."""

    name: Annotated[SecretName, Field(description="Name of the Secret, in the policy's own namespace.")]
    key: Annotated[SecretKey, Field(description="Key of the Secret's data.")]


class SecretRef(Model):
    """One Secret in the policy's own namespace."""

    name: Annotated[SecretName, Field(description="Name of the Secret, in the policy's own namespace.")]


class AuthoritiesRef(Model):
    """Certificates of authorities in one Secret in the policy's own namespace."""

    name: Annotated[SecretName, Field(description="Name of the Secret, in the policy's own namespace.")]
    key: SecretKey | None = Field(
        default=None,
        description="Key of the Secret's data. Absent: all keys that end in .crt: Strimzi's <cluster>-cluster-ca-cert"
        " has one for each authority while it renews them.",
    )


class Tls(Model):
    """Encryption, and who is trusted."""

    enabled: bool = Field(default=True, strict=True, description="Whether connections use TLS.")
    ca_secret_ref: AuthoritiesRef | None = Field(
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
    """The SASL mechanisms that both Kafka clients speak."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"


class OAuth(Model):
    """Tokens for OAUTHBEARER, by client credentials (RFC 6749, 4.4)."""

    token_endpoint: Annotated[HttpsUrl, Field(description="URL of the token endpoint, over HTTPS.")]
    client_id: str = Field(min_length=1, max_length=256, description="Client id at the token endpoint.")
    client_secret_ref: SecretKeyRef = Field(description="Where the client's secret is.")
    scope: str = Field(default="", max_length=1024, description="Scope to ask for, where the endpoint wants one.")
    ca_secret_ref: AuthoritiesRef | None = Field(
        default=None,
        description="PEM certificates of the authorities that sign the endpoint's. Absent: those of the system.",
    )


class Sasl(Model):
    """Authentication by user name and password, or by token."""

    mechanism: SaslMechanism = Field(description="SASL mechanism of the listener.")
    username: str | None = Field(
        default=None, min_length=1, max_length=256, description="User name; for all mechanisms but OAUTHBEARER."
    )
    password_secret_ref: SecretKeyRef | None = Field(
        default=None, description="Where the password is; for all mechanisms but OAUTHBEARER."
    )
    oauth: OAuth | None = Field(default=None, description="Where tokens come from; for OAUTHBEARER.")
    allow_plaintext: bool = Field(
        default=False, strict=True, description="Accept that the password travels over connections without TLS."
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.mechanism == 'OAUTHBEARER' || has(self.username)",
            message="is the user whom PLAIN and SCRAM authenticate: set it",
            holds=lambda s: s.mechanism is SaslMechanism.OAUTHBEARER or s.username is not None,
            field="username",
        ),
        Rule(
            cel="self.mechanism == 'OAUTHBEARER' || has(self.passwordSecretRef)",
            message="names the password for PLAIN and SCRAM: set it",
            holds=lambda s: s.mechanism is SaslMechanism.OAUTHBEARER or s.password_secret_ref is not None,
            field="passwordSecretRef",
        ),
        Rule(
            cel="(self.mechanism == 'OAUTHBEARER') == has(self.oauth)",
            message="says where tokens come from: set it for OAUTHBEARER, and for no other mechanism",
            holds=lambda s: (s.mechanism is SaslMechanism.OAUTHBEARER) == (s.oauth is not None),
            field="oauth",
        ),
        Rule(
            cel="self.mechanism != 'OAUTHBEARER' || !(has(self.username) || has(self.passwordSecretRef))",
            message="OAUTHBEARER takes neither username nor passwordSecretRef: put clientId and clientSecretRef into"
            " oauth",
            holds=lambda s: s.mechanism is not SaslMechanism.OAUTHBEARER or not (s.username or s.password_secret_ref),
            field="mechanism",
        ),
    )


class Kafka(Model):
    """How to reach the Kafka cluster."""

    bootstrap_servers: Annotated[
        tuple[HostPort, ...],
        Field(
            min_length=1,
            max_length=32,
            description="Where to connect first, as host:port, on a listener that the operator can reach. Or strimzi.",
            json_schema_extra=AS_SET,
        ),
        DISTINCT,
    ] = ()
    strimzi: Strimzi | None = Field(
        default=None,
        description="A Strimzi cluster by name, in place of bootstrapServers: addresses, certificates and user are"
        " found. What tls and sasl say goes before what is found.",
    )
    tls: Tls | None = Field(default=None, description="TLS of the operator's and the probers' connections.")
    sasl: Sasl | None = Field(default=None, description="SASL of the operator's and the probers' connections.")
    user_secret_ref: SecretRef | None = Field(
        default=None,
        description="Secret of a Strimzi KafkaUser, or one of its shape: user.crt and user.key for mutual TLS, or"
        " password and sasl.jaas.config for SCRAM-SHA-512. In place of sasl and of tls.certificateSecretRef.",
    )
    client_id: Annotated[ClientId, Field(description="Client id that brokers see in requests, logs and quotas.")] = (
        "bellwether"
    )
    broker_session_timeout_seconds: int = integer(
        core_policy.Policy(name="").session_timeout_seconds,
        1,
        3600,
        "The brokers' broker.session.timeout.ms in seconds: how long Kafka's own fencing is given for a broker that"
        " answers nobody.",
    )

    @property
    def brings_credentials(self) -> bool:
        """Whether the policy itself says who is to connect."""
        certificate = self.tls.certificate_secret_ref if self.tls is not None else None
        return bool(self.sasl or self.user_secret_ref or certificate)

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.bootstrapServers) != has(self.strimzi)",
            message="name the cluster once: bootstrapServers, or strimzi with a clusterName",
            holds=lambda k: bool(k.bootstrap_servers) != (k.strimzi is not None),
            field="bootstrapServers",
        ),
        Rule(
            cel="!has(self.strimzi) || !(has(self.sasl) || has(self.userSecretRef)"
            " || (has(self.tls) && has(self.tls.certificateSecretRef)))"
            " || (has(self.strimzi.listener) && !has(self.strimzi.userName))",
            message="where sasl, tls or userSecretRef bring credentials, name the listener that takes them, and no"
            " userName",
            holds=lambda k: (
                k.strimzi is None
                or not k.brings_credentials
                or (k.strimzi.listener is not None and k.strimzi.user_name is None)
            ),
            field="strimzi",
        ),
        Rule(
            cel="!has(self.sasl) || (has(self.tls) && self.tls.enabled) || self.sasl.allowPlaintext",
            message="sends a password without TLS: set kafka.tls, or sasl.allowPlaintext to true to accept that",
            holds=lambda k: k.sasl is None or (k.tls is not None and k.tls.enabled) or k.sasl.allow_plaintext,
            field="sasl",
        ),
        Rule(
            cel="!has(self.userSecretRef) || (has(self.tls) && self.tls.enabled)",
            message="names a user to authenticate over TLS: set kafka.tls",
            holds=lambda k: k.user_secret_ref is None or (k.tls is not None and k.tls.enabled),
            field="userSecretRef",
        ),
        Rule(
            cel="!has(self.userSecretRef)"
            " || !(has(self.sasl) || (has(self.tls) && has(self.tls.certificateSecretRef)))",
            message="stands in place of sasl and of tls.certificateSecretRef: remove one or the other",
            holds=lambda k: (
                k.user_secret_ref is None
                or not (k.sasl or (k.tls is not None and k.tls.certificate_secret_ref is not None))
            ),
            field="userSecretRef",
        ),
    )
