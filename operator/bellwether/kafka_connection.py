"""Kafka connection settings as one value that feeds every client: addresses, TLS, SASL.

Built by ``adapters/kubernetes`` (from a policy and its Secrets), by ``cli`` and by the composition roots; read by
``adapters/kafka``, whose ``canary_client`` converts one into librdkafka's settings. It imports no client, so
any module may use it. Its secrets are hidden from ``repr``, hence from logs and tracebacks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar
from urllib.parse import quote

from bellwether.destinations import PROXY, Destinations


class Protocol(StrEnum):
    """Kafka's ``security.protocol``."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def tls(self) -> bool:
        """Whether the bytes are encrypted."""
        return self in (Protocol.SSL, Protocol.SASL_SSL)

    @property
    def sasl(self) -> bool:
        """Whether the client names itself by SASL."""
        return self in (Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL)


class Mechanism(StrEnum):
    """The SASL mechanisms that are supported."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"


class Hidden(str):
    """Text that ``repr`` does not show: a traceback with local variables, or a printed dictionary, keeps the secret."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<hidden>"


_REGION = re.compile("[a-z]{2,4}(-[a-z]{2,12}){1,3}-[0-9]{1,2}")

Names = tuple[tuple[str, str], ...]
"""Pairs of a field of ours and what the person who set it calls it, such as ``spec.kafka.tls.caSecretName``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpProxy:
    """An HTTP proxy that a person chose; proxies of the environment are never used.

    ``url`` is ``http://host:port`` or ``https://host:port``. Raises ValueError naming the field that is wrong.
    """

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    name: str = field(default="proxy", repr=False, compare=False)
    """What the person who set it calls it, for messages."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "password", Hidden(self.password))
        if not re.fullmatch(PROXY, self.url):
            # It may hold a password, which belongs elsewhere.
            shown = f" {self.url!r}" if "@" not in self.url else ""
            raise ValueError(f"{self.name}{shown} is not http://host:port or https://host:port, without a user")

    @property
    def address(self) -> Hidden:
        """The URL with the credentials in it, as HTTP clients want it."""
        scheme, _, address = self.url.partition("://")
        user = f"{quote(self.username, safe='')}:{quote(self.password, safe='')}@" if self.username else ""
        return Hidden(f"{scheme}://{user}{address}")


class _Origin:
    """What the origins of tokens have in common: fields with names that people know, and hosts that may get a token."""

    __slots__ = ()
    hosts: tuple[str, ...]
    names: Names

    def allows(self, host: str) -> bool:
        """Whether a token may go to that host: one of ``hosts`` names it, or is ``*`` or ``*.`` and its domain."""
        host = host.lower().rstrip(".")
        return any(
            one == "*" or host == one or (one.startswith("*.") and host.endswith(one[1:]))
            for one in map(str.lower, self.hosts)
        )

    def called(self, name: str) -> str:
        """A field as the person who set it knows it."""
        return dict(self.names).get(name, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth(_Origin):
    """Tokens for OAUTHBEARER from a token endpoint, by the client credentials of RFC 6749 (4.4).

    ``ca_file`` empty means the system's trust store. Raises ValueError naming the field that is missing or wrong.
    """

    token_endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    destinations: Destinations = field(repr=False)
    scope: str = ""
    ca_file: str = ""
    proxy: HttpProxy | None = None
    names: Names = field(default=(), repr=False, compare=False)
    hosts: tuple[str, ...] = field(default=("*",), init=False, repr=False, compare=False)

    remedy: ClassVar[str] = "check that the listener trusts the issuer, the audience and the scope of its tokens"

    def __post_init__(self) -> None:
        object.__setattr__(self, "client_secret", Hidden(self.client_secret))
        missing = [name for name in ("client_id", "client_secret") if not getattr(self, name)]
        if missing:
            raise ValueError(f"OAUTHBEARER needs {', '.join(missing)}")
        if not self.token_endpoint.startswith("https://") or "@" in self.token_endpoint:
            raise ValueError("token_endpoint must begin with https:// and name no user: secrets travel to it")

    @property
    def principal(self) -> str:
        """The principal, for messages."""
        return f"client {self.client_id!r}"

    @property
    def where(self) -> str:
        """What gives the tokens, for messages."""
        return f"{self.called('token_endpoint')} {self.token_endpoint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFile(_Origin):
    """Tokens for OAUTHBEARER from a file that something else renews, such as a projected ServiceAccount token.

    ``hosts`` are the hosts that may receive a token (``allows``).
    """

    path: str
    hosts: tuple[str, ...] = ("*",)
    names: Names = field(default=(), repr=False, compare=False)

    remedy: ClassVar[str] = OAuth.remedy

    @property
    def principal(self) -> str:
        """The principal, for messages."""
        return f"the subject of the token in {self.where}"

    @property
    def where(self) -> str:
        """What gives the tokens, for messages."""
        return f"{self.called('path')} {self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsMskIam(_Origin):
    """Tokens for OAUTHBEARER of Amazon MSK: requests of ``kafka-cluster:Connect``, signed with AWS credentials.

    Without an access key, credentials come from the standard chain of the AWS SDKs: environment variables, web identity
    (IRSA), EKS Pod Identity, profiles, instance metadata. ``role_arn`` is a role to assume with them. ``hosts`` are the
    hosts that may receive a token (``allows``).
    """

    region: str
    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    role_arn: str = ""
    proxy: HttpProxy | None = None
    hosts: tuple[str, ...] = ("*",)
    names: Names = field(default=(), repr=False, compare=False)

    remedy: ClassVar[str] = (
        "check that the region is that of the cluster, that IAM authentication is enabled on the listener, and that the"
        " policies of this IAM principal allow kafka-cluster:Connect"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "secret_access_key", Hidden(self.secret_access_key))
        object.__setattr__(self, "session_token", Hidden(self.session_token))
        if not _REGION.fullmatch(self.region):
            raise ValueError(f"{self.called('region')} {self.region!r} is not an AWS region, such as eu-central-1")

    @property
    def principal(self) -> str:
        """The principal, for messages."""
        return f"AWS access key {self.access_key_id}" if self.access_key_id else f"AWS {self.role_arn or 'credentials'}"

    @property
    def where(self) -> str:
        """What gives the tokens, for messages."""
        return f"{self.called('region')} {self.region}: AWS"


TokenOrigin = OAuth | TokenFile | AwsMskIam
"""Where tokens for OAUTHBEARER come from."""


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True)
class Security:
    """How connections are encrypted and authenticated, and where they may go: ``destinations``.

    ``ca_file`` empty means the system's trust store; ``cert_file`` and ``key_file`` (PEM, the key without a passphrase)
    are the client's own certificate. Raises ValueError naming the field for combinations that cannot work. ``names``
    is for messages alone: two that differ in nothing else are equal.
    """

    destinations: Destinations = field(repr=False)
    protocol: Protocol = Protocol.PLAINTEXT
    mechanism: Mechanism | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    oauth: TokenOrigin | None = None
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    verify_hostname: bool = True
    names: Names = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "protocol", Protocol(self.protocol))
        object.__setattr__(self, "mechanism", None if self.mechanism is None else Mechanism(self.mechanism))
        object.__setattr__(self, "password", Hidden(self.password))
        if self.protocol.sasl:
            wanted = ("oauth",) if self.mechanism is Mechanism.OAUTHBEARER else ("username", "password")
            missing = [name for name in ("mechanism", *wanted) if not getattr(self, name)]
            if missing:
                raise ValueError(f"{self.protocol} needs {', '.join(missing)}: set them, or choose PLAINTEXT or SSL")
        if self.key_file and not self.cert_file:
            raise ValueError("key_file is set without cert_file: set both, or neither")

    @property
    def principal(self) -> str:
        """The principal that the client presents, for messages."""
        if self.oauth is not None:
            return self.oauth.principal
        return f"user {self.username!r}" if self.protocol.sasl else "this client"

    def called(self, name: str) -> str:
        """A field by the name that the user set; a file without a name by its path."""
        known = dict(self.names).get(name)
        return known if known is not None else f"{name} {getattr(self, name)}" if name.endswith("_file") else name


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a cluster is and how to speak to it; ``bootstrap`` are ``host:port`` addresses.

    Raises ValueError naming the address that is not ``host:port``.
    """

    bootstrap: tuple[str, ...]
    security: Security
    client_id: str = "bellwether"

    def __post_init__(self) -> None:
        if not self.bootstrap:
            raise ValueError("bootstrap is empty: name at least one host:port")
        for address in self.bootstrap:
            split_address(address)


def split_address(address: str) -> tuple[str, int]:
    """Host and port of ``host:port`` or ``[ipv6]:port``; ValueError names what is wrong with it."""
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"bootstrap address {address!r} is not host:port (an IPv6 host needs brackets, no scheme)")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"bootstrap address {address!r} is not host:port, as in kafka.example:9092")
    return host, int(port)


def join_address(host: str, port: int) -> str:
    """The inverse of ``split_address``."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
