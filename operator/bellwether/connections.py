"""How to reach a Kafka cluster: bootstrap addresses, TLS and SASL, as one value that feeds every client.

Built by ``api`` (from a policy and its Secrets), by ``cli`` and by the composition roots; read by ``adapters/kafka``.
It imports no client, so everybody may hold one. Its password is hidden from ``repr``, hence from logs and tracebacks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


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


class Hidden(str):
    """Text that ``repr`` does not show: a traceback with local variables, or a printed dictionary, keeps the secret."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<hidden>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """How connections are encrypted and authenticated.

    ``ca_file`` empty means the system's trust store; ``cert_file`` and ``key_file`` (PEM, the key without a passphrase)
    are the client's own certificate. Raises ValueError naming the field for combinations that cannot work.
    """

    protocol: Protocol = Protocol.PLAINTEXT
    mechanism: Mechanism | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    verify_hostname: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "protocol", Protocol(self.protocol))
        object.__setattr__(self, "mechanism", None if self.mechanism is None else Mechanism(self.mechanism))
        object.__setattr__(self, "password", Hidden(self.password))
        if self.protocol.sasl:
            missing = [name for name in ("mechanism", "username", "password") if not getattr(self, name)]
            if missing:
                raise ValueError(f"{self.protocol} needs {', '.join(missing)}: set them, or choose PLAINTEXT or SSL")
        if self.key_file and not self.cert_file:
            raise ValueError("key_file is set without cert_file: set both, or neither")


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a cluster is and how to speak to it; ``bootstrap`` are ``host:port`` addresses.

    Raises ValueError naming the address that is not ``host:port``.
    """

    bootstrap: tuple[str, ...]
    security: Security = field(default_factory=Security)
    client_id: str = "bellwether"

    def __post_init__(self) -> None:
        if not self.bootstrap:
            raise ValueError("bootstrap is empty: name at least one host:port")
        for address in self.bootstrap:
            split_address(address)

    def for_confluent(self) -> dict[str, object]:
        """The configuration of a confluent-kafka client (librdkafka's names)."""
        security = self.security
        config: dict[str, object] = {
            "bootstrap.servers": ",".join(self.bootstrap),
            "client.id": self.client_id,
            "security.protocol": str(security.protocol),
        }
        if security.protocol.tls:
            config["ssl.endpoint.identification.algorithm"] = "https" if security.verify_hostname else "none"
            files = {
                "ssl.ca.location": security.ca_file,
                "ssl.certificate.location": security.cert_file,
                "ssl.key.location": security.key_file or security.cert_file,
            }
            config.update({name: path for name, path in files.items() if path})
        if security.protocol.sasl:
            config["sasl.mechanism"] = str(security.mechanism)
            config["sasl.username"] = security.username
            config["sasl.password"] = security.password
        return config

    def for_kafka_python(self) -> dict[str, object]:
        """The keyword arguments of a kafka-python client."""
        security = self.security
        config: dict[str, object] = {
            "bootstrap_servers": list(self.bootstrap),
            "client_id": self.client_id,
            "security_protocol": str(security.protocol),
        }
        if security.protocol.tls:
            config["ssl_check_hostname"] = security.verify_hostname
            files = {
                "ssl_cafile": security.ca_file,
                "ssl_certfile": security.cert_file,
                "ssl_keyfile": security.key_file,
            }
            config.update({name: path for name, path in files.items() if path})
        if security.protocol.sasl:
            config["sasl_mechanism"] = str(security.mechanism)
            config["sasl_plain_username"] = security.username
            config["sasl_plain_password"] = security.password
        return config


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
