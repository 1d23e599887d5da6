"""Why the canary topic cannot be used, with the remedy; a connection in librdkafka's words, with no secret shown."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from confluent_kafka import KafkaError, ThrottleEvent

from bellwether.adapters.kafka import canary_client
from bellwether.adapters.kafka.canary_client import ConfluentCanary, for_confluent, topic_error
from bellwether.adapters.kafka.tokens.token_grant import Grant
from bellwether.adapters.kafka.tokens.token_source import TokenSource
from bellwether.kafka_connection import Connection, Hidden
from bellwether.ports.canary import FETCH, PRODUCE
from bellwether.ports.errors import Terminal, Transient
from testkit.messages import assert_wording
from testkit.values import security_settings
from testkit.values.security_settings import FULL, OAUTH, PLAINTEXT

BY_TOKEN = Connection(("a:1",), security_settings.BY_TOKEN)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "topic .. does not exist: create it as"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "not authorized to describe topic ..: grant Read and Write on it"),
        (KafkaError.TOPIC_EXCEPTION, "not a valid name of a topic: correct spec.detection.canary.topic"),
    ],
)
def test_topic_that_cannot_be_used_is_reported_with_its_remedy(code: int, remedy: str):
    found = topic_error("..", KafkaError(code))
    assert isinstance(found, Terminal)
    assert remedy in str(found)


def test_another_error_of_the_topic_passes():
    assert isinstance(topic_error("canary", KafkaError(KafkaError.LEADER_NOT_AVAILABLE)), Transient)


def test_requests_over_a_quota_of_ours_measure_nothing():
    canary = ConfluentCanary(Connection(("127.0.0.1:1",), PLAINTEXT), "canary", 1.0)
    try:
        canary._partitions = {3: 7}
        canary._throttled(PRODUCE, ThrottleEvent("b", 3, 60.0))
        canary._throttled(FETCH, ThrottleEvent("b", 4, 60.0))  # has no partition of ours
        canary.produce(7)
        found = canary.results(1.0)
    finally:
        canary.close()
    assert [(r.partition, r.kind, r.own_trouble) for r in found] == [(7, PRODUCE, True)] * 2
    assert_wording(found[0].problem)


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> TokenSource:
    """A source whose tokens are good for a minute."""
    made = TokenSource(OAUTH, lambda *_: Grant(Hidden("t0ken"), 60.0))
    monkeypatch.setattr(canary_client, "source_of", lambda _: made)
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
    plain = Connection(("a:1",), PLAINTEXT)
    assert set(for_confluent(plain)) == {"bootstrap.servers", "client.id", "security.protocol", "logger"}


def test_librdkafka_and_our_own_connections_share_one_token(source: TokenSource) -> None:
    callback: Any = for_confluent(BY_TOKEN)["oauth_cb"]
    text, ends, principal, extensions = callback("")
    assert (text, principal, extensions) == ("t0ken", OAUTH.principal, {})
    assert ends > 1.7e9, "librdkafka counts seconds since the epoch"
    assert source.token(0).text == "t0ken"


def test_no_secret_is_printed(source: TokenSource) -> None:
    for connection in (Connection(("a:1",), FULL), BY_TOKEN):
        for shown in (connection, for_confluent(connection)):
            assert "s3cr3t" not in repr(shown)
            assert "t0ken" not in repr(shown)
