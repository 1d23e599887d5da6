"""One connection in librdkafka's words, and no secret in what is printed of it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kafka import confluent_config
from bellwether.adapters.kafka.confluent_config import for_confluent
from bellwether.adapters.kafka.tokens import token_source
from bellwether.adapters.kafka.tokens.token_grant import Grant
from bellwether.adapters.kafka.tokens.token_source import TokenSource
from bellwether.kafka_connection import Connection, Hidden
from testkit.values import security_settings
from testkit.values.security_settings import FULL, OAUTH

BY_TOKEN = Connection(("a:1",), security_settings.BY_TOKEN)


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> TokenSource:
    """A source whose tokens are good for a minute."""
    made = TokenSource(OAUTH, lambda *_: Grant(Hidden("t0ken"), 60.0))
    monkeypatch.setattr(confluent_config, "source_of", lambda _: made)
    monkeypatch.setattr(token_source, "source_of", lambda _: made)
    return made


def test_confluent_gets_librdkafka_s_names() -> None:
    config = for_confluent(Connection(("a:1", "b:2"), FULL))
    logger = config.pop("logger")
    assert isinstance(logger, logging.Logger)
    assert logger.disabled, "librdkafka writes to standard error otherwise"
    assert config == {
        "bootstrap.servers": "a:1,b:2",
        "client.id": "bellwether",
        "security.protocol": "SASL_SSL",
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.ca.location": "/etc/ca.pem",
        "ssl.certificate.location": "/etc/client.pem",
        "ssl.key.location": "/etc/client-key.pem",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "operator",
        "sasl.password": "s3cr3t",
    }


def test_a_plain_connection_says_nothing_of_tls_and_sasl() -> None:
    plain = Connection(("a:1",))
    assert set(for_confluent(plain)) == {"bootstrap.servers", "client.id", "security.protocol", "logger"}


def test_librdkafka_and_our_own_connections_share_one_token(source: TokenSource) -> None:
    callback: Any = for_confluent(BY_TOKEN)["oauth_cb"]
    text, ends, principal, extensions = callback("")
    assert (text, principal, extensions) == ("t0ken", OAUTH.principal, {})
    assert ends > 1.7e9, "librdkafka counts seconds since the epoch"
    assert source.token(0).text == "t0ken"


def test_no_secret_is_printed(tmp_path: Path, source: TokenSource) -> None:
    for connection in (Connection(("a:1",), FULL), BY_TOKEN):
        for shown in (connection, for_confluent(connection)):
            assert "s3cr3t" not in repr(shown)
            assert "t0ken" not in repr(shown)
