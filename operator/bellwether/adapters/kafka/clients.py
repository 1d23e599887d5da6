"""One connection in the words of each client: librdkafka's and kafka-python's. They get their tokens from one source.

In: a ``Connection``. Out: the configuration to construct a client with. Our own conversations (``dialogue``) read the
connection themselves; this is for whoever works with a client, as signals that are plugged in and tests do.
"""

from __future__ import annotations

from kafka.net.sasl.oauth import AbstractTokenProvider

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.tokens import TokenSource, source_of
from bellwether.connections import Connection

TOKEN_SECONDS = 10.0
"""How long a client waits for its first token."""


def for_confluent(connection: Connection) -> dict[str, object]:
    """The configuration of a confluent-kafka client (librdkafka's names)."""
    security = connection.security
    config: dict[str, object] = {
        "bootstrap.servers": ",".join(connection.bootstrap),
        "client.id": connection.client_id,
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
        if security.oauth is None:
            config["sasl.username"] = security.username
            config["sasl.password"] = security.password
        else:
            config["oauth_cb"] = _Callback(source_of(security.oauth), security.oauth.client_id)
    return config


def for_kafka_python(connection: Connection) -> dict[str, object]:
    """The keyword arguments of a kafka-python client."""
    security = connection.security
    config: dict[str, object] = {
        "bootstrap_servers": list(connection.bootstrap),
        "client_id": connection.client_id,
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
        if security.oauth is None:
            config["sasl_plain_username"] = security.username
            config["sasl_plain_password"] = security.password
        else:
            config["sasl_oauth_token_provider"] = _Provider(source_of(security.oauth))
    return config


class _Callback:
    """librdkafka asks again by itself before the token ends."""

    def __init__(self, source: TokenSource, principal: str) -> None:
        self._source = source
        self._principal = principal

    def __call__(self, _configuration: str) -> tuple[str, float, str, dict[str, str]]:
        """The token and the moment when it ends, in seconds since the epoch."""
        token = self._source.token(TOKEN_SECONDS)
        ends = SystemClock().now().timestamp() + self._source.seconds_left(token)
        return str(token.text), ends, self._principal, {}


class _Provider(AbstractTokenProvider):  # type: ignore[misc]
    """kafka-python asks at every connection."""

    def __init__(self, source: TokenSource) -> None:
        super().__init__()
        self._source = source

    def token(self) -> str:
        """The token."""
        return str(self._source.token(TOKEN_SECONDS).text)
