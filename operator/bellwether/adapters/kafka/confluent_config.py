"""Configuration of a confluent-kafka client for one ``Connection``, with tokens from the shared source.

In: a ``Connection``. Out: a dictionary to construct a client with. Our own connections (``broker_connection``) read the
``Connection`` themselves. Called by ``canary_client``.
"""

from __future__ import annotations

import logging

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.tokens.token_source import TokenSource, source_of
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal

TOKEN_SECONDS = 10.0
"""How long a client waits for its first token."""

# librdkafka writes each failed connection to standard error. What matters to a caller comes as an error of its request.
_log = logging.getLogger("bellwether.librdkafka")
_log.disabled = True


def for_confluent(connection: Connection) -> dict[str, object]:
    """The configuration of a confluent-kafka client (librdkafka's names). Raises Terminal for limited hosts."""
    security = connection.security
    config: dict[str, object] = {
        "bootstrap.servers": ",".join(connection.bootstrap),
        "client.id": connection.client_id,
        "security.protocol": str(security.protocol),
        "logger": _log,
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
        elif "*" not in security.oauth.hosts:
            raise Terminal(
                f"{security.oauth.called('hosts')} limits the hosts that may get a token, and librdkafka connects to"
                " whatever addresses brokers advertise: it can only be used with hosts: ['*']"
            )
        else:
            config["oauth_cb"] = _Callback(source_of(security.oauth), security.oauth.principal)
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
