"""A Kafka cluster that trusts no one: TLS, every SASL mechanism, mutual TLS, and an authorizer that denies the rest.

In: a folder. Out: the cluster, users of each mechanism, a token endpoint, and ACLs to grant and to take away. The
internal listener stays in the clear, and its clients are administrators. Tests of credentials start it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from realparts.kafka import KafkaCluster
from realparts.kafka_topics import admin
from realparts.spreading import Permission, everywhere, iterations, permissions
from realparts.tls import Authority
from realparts.tokenendpoint import AUDIENCE, ISSUER, TokenEndpoint

PLAIN_USER, PLAIN_PASSWORD = "plain-user", "plain-pw-0"
TOKEN_CLIENT, TOKEN_SECRET = "token-user", "token-pw-0"
LISTENER = "listener.name.secure"
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_VALIDATOR = f"{_OAUTH}.OAuthBearerValidatorCallbackHandler"
_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Acl:
    """One permission: ``Describe`` on ``Topic *``, say; on Cluster there is one resource alone."""

    operation: str
    resource: str
    name: str = "kafka-cluster"

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource}" + (f" {self.name}" if self.resource != "Cluster" else "")


class SecuredKafka:
    """Three brokers. A context manager: started on entry, gone on exit."""

    def __init__(self, directory: Path, *, brokers: int = 3) -> None:
        login = Authority(directory / "login")
        self.login_ca = login.path
        self.tokens = TokenEndpoint(directory / "login", login.issue("login"), {TOKEN_CLIENT: TOKEN_SECRET})
        self._login = login
        self._iterations = itertools.count(4096)
        tls = directory / "kafka" / "tls" / "ca.pem"
        words = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": "User:ANONYMOUS",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,SECURE:SASL_SSL,EXTERNAL:SSL",
            "listener.name.external.ssl.client.auth": "required",
            "listener.name.external.ssl.truststore.type": "PEM",
            "listener.name.external.ssl.truststore.location": str(tls),
            "listener.name.external.ssl.principal.mapping.rules": "RULE:^CN=(.*?)(,.*)?$/$1/,DEFAULT",
            f"{LISTENER}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            f"{LISTENER}.plain.sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                f'user_{PLAIN_USER}="{PLAIN_PASSWORD}";'
            ),
            f"{LISTENER}.scram-sha-256.sasl.jaas.config": _SCRAM,
            f"{LISTENER}.oauthbearer.sasl.jaas.config": f"{_OAUTH}.OAuthBearerLoginModule required;",
            f"{LISTENER}.oauthbearer.sasl.server.callback.handler.class": _VALIDATOR,
            f"{LISTENER}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": self.tokens.jwks.as_uri(),
            f"{LISTENER}.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
            f"{LISTENER}.oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
        }
        self.kafka = KafkaCluster(
            brokers,
            directory=directory / "kafka",
            proxied=False,
            sasl_ssl=True,
            external_ssl=True,
            heap="192m",
            properties=words,
        )
        authority = self.kafka._authority
        if authority is None:
            raise RuntimeError("the cluster has no secure listener")
        self.authority = authority

    @property
    def bootstrap(self) -> list[str]:
        """The listener with TLS and SASL."""
        if self.kafka.security is None:
            raise RuntimeError("the cluster has no secure listener")
        return self.kafka.security.bootstrap.split(",")

    @property
    def mutual(self) -> list[str]:
        """The listener that asks clients for a certificate; its principal is the certificate's common name."""
        return self.kafka.external_bootstrap.split(",")

    def login(self, *, expired: bool = False) -> tuple[Path, Path]:
        """Another certificate for the token endpoint."""
        return self._login.issue("login", expired=expired)

    def user(self, name: str, password: str, mechanism: str = "SCRAM-SHA-512") -> None:
        """Make a SCRAM user, or give it another password."""
        kind = ScramMechanism[mechanism.replace("-", "_")]
        number = next(self._iterations)  # of its own for each password: brokers show nothing else of it
        change = UserScramCredentialUpsertion(name, ScramCredentialInfo(kind, number), password.encode())
        client = admin(self.kafka.bootstrap)  # which must outlive its answers
        for done in client.alter_user_scram_credentials([change]).values():
            done.result(_SECONDS)
        self._spread(lambda broker: iterations(broker, name, mechanism) == number, f"the password of {name}")

    def grant(self, user: str, acls: Sequence[Acl]) -> None:
        """Allow a user these things, from everywhere."""
        client = admin(self.kafka.bootstrap)
        for done in client.create_acls([_binding(user, acl) for acl in acls]).values():
            done.result(_SECONDS)
        wanted = {_permission(acl) for acl in acls}
        self._spread(lambda broker: wanted <= permissions(broker, user), f"what {user} may")

    def revoke(self, user: str, acls: Sequence[Acl] | None = None) -> None:
        """Take these permissions away, or all that a user has."""
        allow, kind = AclPermissionType.ALLOW, ResourcePatternType.LITERAL
        wanted = [
            AclBindingFilter(
                ResourceType[acl.resource.upper()] if acl.resource != "Cluster" else ResourceType.BROKER,
                acl.name,
                kind,
                f"User:{user}",
                "*",
                _operation(acl),
                allow,
            )
            for acl in acls or ()
        ] or [
            AclBindingFilter(
                ResourceType.ANY,
                None,
                ResourcePatternType.ANY,
                f"User:{user}",
                None,
                AclOperation.ANY,
                AclPermissionType.ANY,
            )
        ]
        client = admin(self.kafka.bootstrap)
        for done in client.delete_acls(wanted).values():
            done.result(_SECONDS)
        ended = {_permission(acl) for acl in acls or ()}
        self._spread(
            lambda broker: not (permissions(broker, user) & ended if ended else permissions(broker, user)),
            f"what {user} may no more",
        )

    def _spread(self, heard: Callable[[str], bool], what: str) -> None:
        everywhere([broker.internal for broker in self.kafka.brokers.values()], heard, what)

    def __enter__(self) -> SecuredKafka:
        self.tokens.start()
        # Kafka takes tokens' keys from nowhere but where its operator allows it to.
        with _set("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.tokens.jwks.as_uri()}"):
            self.kafka.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kafka.stop()
        self.tokens.stop()


def _operation(acl: Acl) -> AclOperation:
    words = {"DescribeConfigs": "DESCRIBE_CONFIGS", "AlterConfigs": "ALTER_CONFIGS"}
    return AclOperation[words.get(acl.operation, acl.operation.upper())]


def _permission(acl: Acl) -> Permission:
    kind = ResourceType.BROKER if acl.resource == "Cluster" else ResourceType[acl.resource.upper()]
    return int(kind.value), acl.name, int(_operation(acl).value)


def _binding(user: str, acl: Acl) -> AclBinding:
    kind = ResourceType.BROKER if acl.resource == "Cluster" else ResourceType[acl.resource.upper()]
    return AclBinding(
        kind,
        acl.name,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        _operation(acl),
        AclPermissionType.ALLOW,
    )


@contextmanager
def _set(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
