"""Parse Strimzi's Secrets: the cluster's CA certificates, and a KafkaUser's credentials.

In: the Secret's name. Out: paths of PEM files and a password that ``repr`` hides, for a ``kafka_connection.Security``.
Called by ``connection_resolver``, for Secrets that a policy names and for those of a Strimzi cluster. Unauthenticated
names the Secret, the key and the remedy. A Secret with the same keys need not come from Strimzi.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from bellwether.adapters import pem
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import OpenSecret, SecretReader
from bellwether.kafka_connection import Hidden, Mechanism
from bellwether.ports.errors import Unauthenticated

AUTHORITY = ".crt"
TLS_PAIR, USER_PAIR = ("tls.crt", "tls.key"), ("user.crt", "user.key")
"""Keys of a certificate and its private key: in Secrets of type ``kubernetes.io/tls``, and in those of a KafkaUser."""
PASSWORD, JAAS = "password", "sasl.jaas.config"

_LOGIN_MODULES = {"PlainLoginModule": Mechanism.PLAIN, "ScramLoginModule": Mechanism.SCRAM_SHA_512}
_JAAS_OPTION = re.compile(r'\b(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCredentials:
    """Credentials of a user: a certificate (``cert_file``, ``key_file``) or a password.

    ``mechanism`` is None for a certificate.
    """

    cert_file: str = ""
    key_file: str = ""
    mechanism: Mechanism | None = None
    username: str = ""
    password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "password", Hidden(self.password))


def authorities(secrets: SecretReader, name: str) -> str:
    """A PEM file of all CA certificates, under keys that end in ``.crt``, as in ``<cluster>-cluster-ca-cert``.

    During a CA renewal Strimzi keeps the old CA in addition to ``ca.crt``: brokers then have certificates of either.
    """
    secret = secrets.open(name, "'ca.crt'")
    keys = [key for key in secret.keys if key.endswith(AUTHORITY) and key not in (TLS_PAIR[0], USER_PAIR[0])]
    if not keys:
        there = ", ".join(secret.keys) or "none"
        raise Unauthenticated(f"secret {secret.title} has no key 'ca.crt'; its keys: {there}")
    content = b"\n".join(_checked(secret, key, pem.validities) for key in keys)
    return str(secret.file("*" + AUTHORITY, content))


def client_certificate(secrets: SecretReader, name: str) -> tuple[str, str]:
    """Files with a client certificate and its private key."""
    secret = secrets.open(name, f"{TLS_PAIR[0]!r} and {TLS_PAIR[1]!r}")
    return _key_pair(secret, *(USER_PAIR if USER_PAIR[0] in secret.keys else TLS_PAIR))


def user_credentials(secrets: SecretReader, name: str) -> UserCredentials:
    """Credentials in the Secret of a KafkaUser: ``user.crt`` and ``user.key``, or ``password`` or ``sasl.jaas.config``.

    Its ``ca.crt`` is the clients CA and is not used to verify brokers.
    """
    secret = secrets.open(name, f"{USER_PAIR[0]!r} and {USER_PAIR[1]!r}, or {PASSWORD!r}")
    held = set(secret.keys)
    if held.intersection(USER_PAIR):
        cert_file, key_file = _key_pair(secret, *USER_PAIR)
        return UserCredentials(cert_file=cert_file, key_file=key_file)
    if JAAS in held:
        return _from_jaas(secret)
    if PASSWORD in held:
        return UserCredentials(mechanism=Mechanism.SCRAM_SHA_512, username=name, password=secret.text(PASSWORD))
    there = ", ".join(secret.keys) or "none"
    raise Unauthenticated(
        f"secret {secret.title} is not that of a KafkaUser: it contains neither {USER_PAIR[0]!r} with"
        f" {USER_PAIR[1]!r} nor {PASSWORD!r} nor {JAAS!r}; its keys: {there}"
    )


def _checked(secret: OpenSecret, key: str, check: Callable[[bytes], object]) -> bytes:
    """A value that passes a check of its PEM content."""
    data = secret.raw(key)
    try:
        check(data)
    except ValueError as error:
        raise Unauthenticated(f"secret {secret.title}: key {key!r} {error}") from None
    return data


def _key_pair(secret: OpenSecret, certificate: str, key: str) -> tuple[str, str]:
    """A certificate and its private key, as files."""
    cert_file = secret.file(certificate, _checked(secret, certificate, pem.validities))
    key_file = secret.file(key, _checked(secret, key, pem.check_key))
    try:
        # Without a callback OpenSSL would prompt for a passphrase, and wait.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(cert_file, key_file, password=lambda: "")
    except (OSError, ValueError):
        what = f"key {key!r} is not the private key of the certificate in {certificate!r}: renew both"
        raise Unauthenticated(f"secret {secret.title}: {what}") from None
    return str(cert_file), str(key_file)


def _from_jaas(secret: OpenSecret) -> UserCredentials:
    """User and password from a JAAS configuration, as for Java clients; the key ``password`` takes precedence."""
    words = secret.text(JAAS)
    module = next((name for name in _LOGIN_MODULES if name in words), None)
    options = {name: _unescaped(quoted) or bare for name, quoted, bare in _JAAS_OPTION.findall(words)}
    if module is None or not options.get("username"):
        known = " or ".join(_LOGIN_MODULES)
        raise Unauthenticated(f"secret {secret.title}: key {JAAS!r} is not a {known} with username and password")
    password = secret.text(PASSWORD) if PASSWORD in secret.keys else options.get("password", "")
    if not password:
        raise Unauthenticated(f"secret {secret.title}: key {JAAS!r} has no password, and there is no key {PASSWORD!r}")
    return UserCredentials(mechanism=_LOGIN_MODULES[module], username=options["username"], password=password)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
