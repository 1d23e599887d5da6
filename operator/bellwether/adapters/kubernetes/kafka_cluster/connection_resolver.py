"""Resolve ``spec.kafka`` of a policy and its Secrets to a Kafka connection.

In: ``spec.kafka``. Out: a ``Connection`` in which each value has the name of its field, for messages. Called by the
operator, the probers and the CLI for every new connection. A Secret is read once per call, so that its values belong
together. Unauthenticated names field, Secret and key; StrimziUnavailable names what a Strimzi cluster lacks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bellwether.adapters.kubernetes.kafka_cluster.kafka_user_secrets import (
    PASSWORD,
    authorities,
    client_certificate,
    user_credentials,
)
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader, about, http_proxy, named_identity
from bellwether.adapters.kubernetes.kafka_cluster.strimzi_discovery import Found, StrimziClusters
from bellwether.api.config.workload_identity import WorkloadIdentity
from bellwether.api.v1alpha1.spec.credentials_spec import AwsMskIam as AwsMskIamSpec
from bellwether.api.v1alpha1.spec.kafka_spec import Kafka, Sasl
from bellwether.api.v1alpha1.spec.kafka_spec import OAuth as OAuthSpec
from bellwether.core.model.strimzi import Strimzi
from bellwether.kafka_connection import (
    AwsMskIam,
    Connection,
    HttpProxy,
    Names,
    OAuth,
    Protocol,
    Security,
    TokenFile,
    TokenOrigin,
)
from bellwether.ports.errors import Terminal, Unauthenticated

KAFKA, TLS, SASL, OAUTH = "spec.kafka", "spec.kafka.tls", "spec.kafka.sasl", "spec.kafka.sasl.oauth"
AWS = f"{SASL}.awsMskIam"
ACCESS_KEY, SECRET_KEY, SESSION_TOKEN = "aws_access_key_id", "aws_secret_access_key", "aws_session_token"
"""Keys of a Secret with an AWS access key."""
USER, STRIMZI = f"{KAFKA}.userSecretName", f"{KAFKA}.strimzi"


def connection(kafka: Kafka, secrets: SecretReader, bootstrap: tuple[str, ...] = ()) -> Connection:
    """The connection; ``bootstrap`` replaces the policy's own addresses. Raises Transient or Terminal."""
    return _connection(kafka, secrets, _found(kafka, StrimziClusters(secrets)), bootstrap)


def surroundings(kafka: Kafka, secrets: SecretReader) -> tuple[Connection, Strimzi | None]:
    """The connection, and the current Strimzi operations on the cluster; None if Strimzi does not run it."""
    clusters = StrimziClusters(secrets)
    found = _found(kafka, clusters)
    made = _connection(kafka, secrets, found)
    return made, clusters.surroundings(found.strimzi) if found is not None else None


def at_work_now(known: Strimzi, secrets: SecretReader) -> Strimzi:
    """Current Strimzi operations on a cluster that was found before, whether or not it could be connected to."""
    return StrimziClusters(secrets).at_work_now(known)


@dataclass(frozen=True, slots=True)
class Sides:
    """The connection, and the external listeners: their names, and bootstrap addresses of the first."""

    connection: Connection
    listeners: tuple[str, ...]
    outside: tuple[str, ...]


def sides(kafka: Kafka, secrets: SecretReader, listeners: tuple[str, ...], outside: tuple[str, ...]) -> Sides:
    """Internal connection and external listeners, from the policy, or from Strimzi where it does not set them."""
    found = _found(kafka, StrimziClusters(secrets), listeners)
    made = _connection(kafka, secrets, found)
    if found is None:
        return Sides(made, listeners, outside)
    names = tuple(one if isinstance(one, str) else one.advertised_as for one in found.outside)
    first = found.outside[0]
    if found.credentials is not None:
        outside = ()  # they are for addresses that Strimzi has, only
    return Sides(made, names, outside or (() if isinstance(first, str) else first.bootstrap))


def _connection(
    kafka: Kafka, secrets: SecretReader, found: Found | None, bootstrap: tuple[str, ...] = ()
) -> Connection:
    try:
        if found is None:
            made = Connection(bootstrap or tuple(kafka.bootstrap_servers), _security(kafka, secrets))
        else:
            made = Connection(bootstrap or found.listener.bootstrap, _beside(found, kafka, secrets))
    except ValueError as error:
        raise Terminal(f"{KAFKA}: {error}") from None
    if _by_identity(kafka) and not (made.security.protocol.tls and made.security.verify_hostname):
        raise Terminal(
            f"{SASL}.workloadIdentity requires TLS that verifies host names: set {TLS}, without verifyHostname: false"
        )
    return made


def _by_identity(kafka: Kafka) -> bool:
    """Whether a token of Bellwether's own pods is sent, which goes only where the administrator's CAs verify."""
    return kafka.sasl is not None and kafka.sasl.workload_identity is not None


def _found(kafka: Kafka, clusters: StrimziClusters, outside_as: tuple[str, ...] = ()) -> Found | None:
    """The Strimzi cluster of the policy; None if it has none."""
    if kafka.strimzi is None:
        return None
    own_ca = _by_identity(kafka) or (
        kafka.brings_credentials and kafka.tls is not None and kafka.tls.ca_secret_name is not None
    )
    return clusters.find(kafka.strimzi, own_user=kafka.brings_credentials, own_ca=own_ca, outside_as=outside_as)


def _beside(found: Found, kafka: Kafka, secrets: SecretReader) -> Security:
    """Security settings of a Strimzi cluster; the policy's own settings take precedence."""
    own, tls = _security(kafka, secrets), found.listener.tls
    if own.mechanism is not None and not tls and not (kafka.sasl is not None and kafka.sasl.allow_plaintext):
        raise Terminal(
            f"{STRIMZI}.listener: {found.listener} would send a password without TLS: choose another"
            f" listener, or set {SASL}.allowPlaintext to true to allow it"
        )
    names, who = dict(own.names), found.credentials
    if not own.ca_file:
        names["ca_file"] = f"{STRIMZI} ({found.strimzi.name}-cluster-ca-cert)"
    if who is not None:
        called = f"{STRIMZI}.userName ({found.strimzi.user})"
        names |= dict.fromkeys(("cert_file", "key_file", "mechanism", "username"), called)
        names["password"] = "the password in its Secret"  # noqa: S105 - a name for messages
        own = replace(
            own,
            protocol=Protocol.PLAINTEXT,
            cert_file=who.cert_file,
            key_file=who.key_file,
            mechanism=who.mechanism,
            username=who.username,
            password=who.password,
        )
    return replace(
        own,
        protocol=_protocol(tls, own.mechanism is not None),
        ca_file=found.ca_file or own.ca_file,
        names=tuple(names.items()),
    )


def _security(kafka: Kafka, secrets: SecretReader) -> Security:
    tls = kafka.tls
    pair = _named(f"{TLS}.certificateSecretName", tls.certificate_secret_name if tls else None)
    names = {
        "ca_file": _named(f"{TLS}.caSecretName", tls.ca_secret_name if tls else None),
        "cert_file": pair,
        "key_file": pair,
        "verify_hostname": f"{TLS}.verifyHostname",
        "mechanism": f"{SASL}.mechanism",
        "username": f"{SASL}.username",
        "password": _named(f"{SASL}.passwordSecretName", kafka.sasl.password_secret_name if kafka.sasl else None),
    }
    values: dict[str, object] = _sasl(secrets, kafka.sasl) if kafka.sasl is not None else {}
    if tls is not None:
        if tls.ca_secret_name is not None:
            values["ca_file"] = _authorities(secrets, tls.ca_secret_name, f"{TLS}.caSecretName")
        values["verify_hostname"] = tls.verify_hostname
    if tls is not None and tls.certificate_secret_name is not None:
        with about(f"{TLS}.certificateSecretName"):
            values["cert_file"], values["key_file"] = client_certificate(secrets, tls.certificate_secret_name)
    if (name := kafka.user_secret_name) is not None:
        with about(USER):
            user = user_credentials(secrets, name)
        values |= {"cert_file": user.cert_file, "key_file": user.key_file, "mechanism": user.mechanism}
        values |= {"username": user.username, "password": user.password}
        names |= dict.fromkeys(("cert_file", "key_file", "username", "password", "mechanism"), f"{USER} ({name})")
    protocol = _protocol(tls is not None, values.get("mechanism") is not None)
    values |= {"protocol": protocol, "names": tuple(names.items())}
    return Security(destinations=secrets.destinations, **values)  # type: ignore[arg-type]


def _protocol(encrypted: bool, sasl: bool) -> Protocol:
    return Protocol(f"{'SASL_' if sasl else ''}{'SSL' if encrypted else 'PLAINTEXT'}")


def _sasl(secrets: SecretReader, sasl: Sasl) -> dict[str, object]:
    values: dict[str, object] = {"mechanism": sasl.mechanism}
    if sasl.oauth is not None:
        return values | {"oauth": _oauth(secrets, sasl.oauth)}
    if sasl.aws_msk_iam is not None:
        return values | {"oauth": _aws_key(secrets, sasl.aws_msk_iam)}
    if sasl.workload_identity is not None:
        return values | _workload_identity(secrets, sasl.workload_identity)
    values["username"] = sasl.username or ""
    if sasl.password_secret_name is not None:
        with about(f"{SASL}.passwordSecretName"):
            values["password"] = secrets.value(sasl.password_secret_name, PASSWORD)
    return values


def _oauth(secrets: SecretReader, oauth: OAuthSpec) -> OAuth:
    with about(f"{OAUTH}.clientSecretRef"):
        secret = secrets.value(oauth.client_secret_ref.name, oauth.client_secret_ref.key)
    names: Names = (
        ("token_endpoint", f"{OAUTH}.tokenEndpoint"),
        ("client_id", f"{OAUTH}.clientId"),
        ("client_secret", f"{OAUTH}.clientSecretRef ({oauth.client_secret_ref.name}, {oauth.client_secret_ref.key})"),
        ("scope", f"{OAUTH}.scope"),
        ("ca_file", _named(f"{OAUTH}.caSecretName", oauth.ca_secret_name)),
    )
    return OAuth(
        token_endpoint=oauth.token_endpoint,
        client_id=oauth.client_id,
        client_secret=secret,
        scope=oauth.scope,
        ca_file=_authorities(secrets, oauth.ca_secret_name, f"{OAUTH}.caSecretName"),
        proxy=http_proxy(secrets, oauth.proxy, f"{OAUTH}.proxy"),
        destinations=secrets.destinations,
        names=names,
    )


def _aws_key(secrets: SecretReader, key: AwsMskIamSpec) -> AwsMskIam:
    field = f"{AWS}.accessKeySecretName"
    with about(field):
        secret = secrets.open(key.access_key_secret_name, f"{ACCESS_KEY!r} and {SECRET_KEY!r}")
        temporary = secret.text(SESSION_TOKEN) if SESSION_TOKEN in secret.keys else ""
        return AwsMskIam(
            region=key.region,
            access_key_id=secret.text(ACCESS_KEY),
            secret_access_key=secret.text(SECRET_KEY),
            session_token=temporary,
            names=(("region", f"{AWS}.region"), ("access_key_id", f"{field} ({key.access_key_secret_name})")),
        )


def _workload_identity(secrets: SecretReader, name: str) -> dict[str, object]:
    """The origin of tokens, and the CAs of the brokers that may have them."""
    field = f"{SASL}.workloadIdentity"
    found = named_identity(name, secrets.namespace, field)
    if found.prometheus is not None:
        raise Unauthenticated(f"{field} ({name}) is for Prometheus: name one whose chart value has hosts")
    return {"oauth": _token_origin(found, name, field), "ca_file": found.ca_file or ""}


def _token_origin(found: WorkloadIdentity, name: str, field: str) -> TokenOrigin:
    hosts = ("hosts", f"hosts of the workload identity {name}")
    if (role := found.aws_msk_iam) is not None:
        proxy = f"proxyUrl of the workload identity {name}"
        return AwsMskIam(
            region=role.region,
            role_arn=role.role_arn or "",
            proxy=HttpProxy(url=role.proxy_url, name=proxy) if role.proxy_url is not None else None,
            hosts=found.hosts,
            names=(("region", f"{field} ({name}):"), hosts),
        )
    return TokenFile(path=found.token_file or "", hosts=found.hosts, names=(("path", f"{field} ({name}):"), hosts))


def _authorities(secrets: SecretReader, name: str | None, field: str) -> str:
    """File with the trusted CAs; empty for those of the system."""
    with about(field):
        return authorities(secrets, name) if name is not None else ""


def _named(field: str, secret: str | None) -> str:
    """A field with its Secret, for messages."""
    return f"{field} ({secret})" if secret is not None else field
