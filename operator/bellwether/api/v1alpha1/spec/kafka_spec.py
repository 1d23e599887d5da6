"""``spec.kafka``: how to connect to the Kafka cluster. Secrets are referenced only, and resolved at the connection."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from bellwether.api.v1alpha1.base_model import AS_SET, DISTINCT, Matching, Model, Rule
from bellwether.api.v1alpha1.spec.credentials_spec import (
    AwsMskIam,
    HttpProxy,
    IdentityName,
    ResourceName,
    workload_identity,
)
from bellwether.destinations import HOST, PORT
from bellwether.kafka_connection import Mechanism

HostPort = Annotated[
    str,
    Matching(
        f"^{HOST}:{PORT}$",
        "must be host:port with a port from 1 to 65535, such as kafka-bootstrap.example:9092 or [2001:db8::1]:9092",
        260,
    ),
]
SecretKey = Annotated[
    str, Matching("^[A-Za-z0-9._-]+$", "must be a key of the Secret: letters, digits, '-', '_' and '.'", 253)
]
HttpsUrl = Annotated[
    str,
    Matching(
        rf"^https://{HOST}(:{PORT})?(/[A-Za-z0-9._~:/@!$&()*+,;=%-]*)?$",
        "must be a URL that begins with https://, without user, query or fragment",
        2048,
    ),
]

Namespace = Annotated[
    str,
    Matching(
        "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "must be the name of a namespace: lower case letters, digits and '-'", 63
    ),
]
ListenerName = Annotated[
    str, Matching("^[a-z0-9]{1,11}$", "must be the name of a listener: up to 11 lower case letters and digits", 11)
]


class SecretKeyRef(Model):
    """One key of a Secret in the policy's namespace."""

    name: ResourceName
    """Name of the Secret, in the policy's namespace."""
    key: SecretKey
    """Key in the data of the Secret."""


def authorities_of(whose: str) -> Any:
    """The name of a Secret with trusted CAs."""
    return Field(
        default=None,
        description=f"Secret in the policy's namespace with the CA certificates (PEM) that signed {whose}, under ca.crt"
        " and other keys that end in .crt, as in Strimzi's <cluster>-cluster-ca-cert; tls.crt and user.crt are no CAs."
        " If unset, the CAs of the system are trusted.",
    )


class Tls(Model):
    """TLS for connections of the operator and the probers. If unset, connections are not encrypted."""

    ca_secret_name: ResourceName | None = authorities_of("the brokers' certificates")
    certificate_secret_name: ResourceName | None = None
    """Secret in the policy's namespace with a client certificate chain and its private key (PEM, not encrypted) for
    mutual TLS: tls.crt and tls.key, as from cert-manager, or user.crt and user.key.
    """
    verify_hostname: bool = Field(default=True, strict=True)
    """Whether the certificate of a broker must match the host name."""


class OAuth(Model):
    """Token endpoint and client, for the client credentials grant (RFC 6749, 4.4). OAUTHBEARER requires one of oauth,
    awsMskIam and workloadIdentity.
    """

    token_endpoint: HttpsUrl
    """URL of the token endpoint, with https."""
    client_id: str = Field(min_length=1, max_length=256)
    """Client id for the token endpoint."""
    client_secret_ref: SecretKeyRef
    """Secret with the client secret."""
    scope: str = Field(default="", max_length=1024)
    """Scope to request. If unset, none is requested."""
    ca_secret_name: ResourceName | None = authorities_of("the endpoint's certificate")
    proxy: HttpProxy | None = None
    """HTTP proxy to reach the token endpoint by. If unset, none is used."""


class Sasl(Model):
    """SASL for connections of the operator and the probers. If unset, SASL is not used."""

    mechanism: Mechanism
    """SASL mechanism of the listener."""
    username: str | None = Field(default=None, min_length=1, max_length=256)
    """User name. Required for all mechanisms except OAUTHBEARER."""
    password_secret_name: ResourceName | None = None
    """Secret in the policy's namespace with the password, under the key password. Required for all mechanisms except
    OAUTHBEARER.
    """
    oauth: OAuth | None = None
    aws_msk_iam: AwsMskIam | None = None
    workload_identity: IdentityName | None = workload_identity("Tokens for OAUTHBEARER")
    allow_plaintext: bool = Field(default=False, strict=True)
    """Allow sending credentials over connections without TLS."""

    @property
    def origins(self) -> tuple[object, ...]:
        """Where tokens come from, as far as it is set."""
        return tuple(one for one in (self.oauth, self.aws_msk_iam, self.workload_identity) if one is not None)

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.mechanism == 'OAUTHBEARER' || has(self.username)",
            message="is required for PLAIN and SCRAM: set it",
            holds=lambda s: s.mechanism is Mechanism.OAUTHBEARER or s.username is not None,
            field="username",
        ),
        Rule(
            cel="self.mechanism == 'OAUTHBEARER' || has(self.passwordSecretName)",
            message="is required for PLAIN and SCRAM: set it",
            holds=lambda s: s.mechanism is Mechanism.OAUTHBEARER or s.password_secret_name is not None,
            field="passwordSecretName",
        ),
        Rule(
            cel="(self.mechanism == 'OAUTHBEARER') =="
            " (has(self.oauth) || has(self.awsMskIam) || has(self.workloadIdentity))",
            message="OAUTHBEARER requires one of oauth, awsMskIam and workloadIdentity, other mechanisms none of them:"
            " set one, or remove it",
            holds=lambda s: (s.mechanism is Mechanism.OAUTHBEARER) == bool(s.origins),
            field="oauth",
        ),
        Rule(
            cel="[has(self.oauth), has(self.awsMskIam), has(self.workloadIdentity)].filter(one, one).size() <= 1",
            message="excludes awsMskIam and workloadIdentity, and they exclude each other: keep one",
            holds=lambda s: len(s.origins) <= 1,
            field="oauth",
        ),
        Rule(
            cel="self.mechanism != 'OAUTHBEARER' || !(has(self.username) || has(self.passwordSecretName))",
            message="OAUTHBEARER does not use username or passwordSecretName: set clientId and clientSecretRef in"
            " oauth, or awsMskIam, or workloadIdentity instead",
            holds=lambda s: s.mechanism is not Mechanism.OAUTHBEARER or not (s.username or s.password_secret_name),
            field="mechanism",
        ),
    )


class Strimzi(Model):
    """A Strimzi cluster by name, instead of bootstrapServers: addresses, certificates and user are discovered, and
    changes of them followed. Values in tls and sasl take precedence.
    """

    cluster_name: ResourceName
    """Name of the Kafka resource."""
    namespace: Namespace | None = None
    """Namespace of the Kafka and KafkaUser resources. If unset, that of the policy. A Kafka resource in another
    namespace must permit it: its annotation bellwether.dev/policies-from lists the namespaces whose policies may use
    it, separated by commas.
    """
    listener: ListenerName | None = None
    """Name of the listener to connect to. If unset, the first internal listener that supports the user's
    authentication, preferably one with TLS.
    """
    user_name: ResourceName | None = None
    """Name of the KafkaUser to connect as, with authentication tls or scram-sha-512. If unset, the KafkaUser named
    bellwether if it exists; otherwise connections are not authenticated.
    """


class Kafka(Model):
    """Connection to the Kafka cluster."""

    bootstrap_servers: Annotated[
        tuple[HostPort, ...], Field(min_length=1, max_length=32, json_schema_extra=AS_SET), DISTINCT
    ] = ()
    """Initial addresses, as host:port, on a listener that the operator can reach. Required unless strimzi is set."""
    strimzi: Strimzi | None = None
    tls: Tls | None = None
    sasl: Sasl | None = None
    user_secret_name: ResourceName | None = None
    """Secret of a Strimzi KafkaUser, or one with the same keys: user.crt and user.key for mutual TLS, or password and
    sasl.jaas.config for SCRAM-SHA-512. Use it instead of sasl and tls.certificateSecretName.
    """

    @property
    def brings_credentials(self) -> bool:
        """Whether the policy itself contains credentials."""
        certificate = self.tls.certificate_secret_name if self.tls is not None else None
        return bool(self.sasl or self.user_secret_name or certificate)

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.bootstrapServers) != has(self.strimzi)",
            message="set exactly one of bootstrapServers and strimzi",
            holds=lambda k: bool(k.bootstrap_servers) != (k.strimzi is not None),
            field="bootstrapServers",
        ),
        Rule(
            cel="!has(self.strimzi) || !(has(self.sasl) || has(self.userSecretName)"
            " || (has(self.tls) && has(self.tls.certificateSecretName)))"
            " || (has(self.strimzi.listener) && !has(self.strimzi.userName))",
            message="if sasl, tls.certificateSecretName or userSecretName is set, set strimzi.listener to a listener"
            " that accepts these credentials, and do not set strimzi.userName",
            holds=lambda k: (
                k.strimzi is None
                or not k.brings_credentials
                or (k.strimzi.listener is not None and k.strimzi.user_name is None)
            ),
            field="strimzi",
        ),
        Rule(
            cel="!has(self.sasl) || has(self.tls) || self.sasl.allowPlaintext",
            message="sends credentials without TLS: set kafka.tls, or set sasl.allowPlaintext to true to allow it",
            holds=lambda k: k.sasl is None or k.tls is not None or k.sasl.allow_plaintext,
            field="sasl",
        ),
        Rule(
            cel="!(has(self.sasl) && has(self.sasl.workloadIdentity) && has(self.tls) && has(self.tls.caSecretName))",
            message="excludes tls.caSecretName: the administrator sets caFile with the identity",
            holds=lambda k: not (k.sasl and k.sasl.workload_identity and k.tls and k.tls.ca_secret_name),
            field="sasl.workloadIdentity",
        ),
        Rule(
            cel="!has(self.strimzi) || has(self.sasl) || has(self.userSecretName) || !has(self.tls)"
            " || has(self.tls.certificateSecretName) || !has(self.tls.caSecretName)",
            message="is that of the Strimzi cluster, whose KafkaUser is used: remove it, or set credentials too",
            holds=lambda k: k.strimzi is None or k.brings_credentials or k.tls is None or k.tls.ca_secret_name is None,
            field="tls.caSecretName",
        ),
        Rule(
            cel="!has(self.userSecretName) || has(self.tls)",
            message="requires TLS: set kafka.tls",
            holds=lambda k: k.user_secret_name is None or k.tls is not None,
            field="userSecretName",
        ),
        Rule(
            cel="!has(self.userSecretName)"
            " || !(has(self.sasl) || (has(self.tls) && has(self.tls.certificateSecretName)))",
            message="replaces sasl and tls.certificateSecretName: remove one or the other",
            holds=lambda k: (
                k.user_secret_name is None
                or not (k.sasl or (k.tls is not None and k.tls.certificate_secret_name is not None))
            ),
            field="userSecretName",
        ),
    )
