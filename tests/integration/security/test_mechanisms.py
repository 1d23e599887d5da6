"""Every way to say who we are, over TLS to brokers that deny the rest: our own connections and librdkafka."""

from __future__ import annotations

import dataclasses
import re
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
from bellwether.adapters.kafka.canary_client import for_confluent
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.kafka.tokens import token_source
from bellwether.core.model.cluster import TopicPartition
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Connection, Mechanism, OAuth, Protocol, Security
from bellwether.ports.errors import Terminal, Transient, Unauthenticated
from realparts.secured import (
    PLAIN_PASSWORD,
    PLAIN_USER,
    TOKEN_CLIENT,
    TOKEN_SECRET,
    Acl,
)
from waiting import limit, until

if TYPE_CHECKING:
    from realparts.secured import SecuredKafka

pytestmark = pytest.mark.kafka

PATIENT = Limits(opening_seconds=10, finding_seconds=20, request_seconds=20, read_seconds=60)
ALL = (Acl("Alter", "Cluster"), Acl("DescribeConfigs", "Cluster"), Acl("Describe", "Topic", "*"))
WAYS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "mutual TLS")


@pytest.fixture(scope="module")
def ways(secured: SecuredKafka) -> dict[str, Connection]:
    """A connection for each way, with all that the main job needs."""
    secured.user("scram-256", "pw-256", "SCRAM-SHA-256")
    secured.user("scram-512", "pw,=512", "SCRAM-SHA-512")
    certificate, key = secured.authority.issue("certified")
    for name in (PLAIN_USER, "scram-256", "scram-512", TOKEN_CLIENT, "certified"):
        secured.grant(name, ALL)
    ca = str(secured.authority.path)

    def by_password(mechanism: str, username: str, password: str) -> Connection:
        security = Security(
            destinations=ANYWHERE,
            protocol=Protocol.SASL_SSL,
            mechanism=Mechanism(mechanism),
            username=username,
            password=password,
            ca_file=ca,
        )
        return Connection(tuple(secured.bootstrap), security)

    token = OAuth(
        destinations=ANYWHERE,
        token_endpoint=secured.tokens.url,
        client_id=TOKEN_CLIENT,
        client_secret=TOKEN_SECRET,
        ca_file=str(secured.login_ca),
    )
    oauth = Security(
        destinations=ANYWHERE, protocol=Protocol.SASL_SSL, mechanism=Mechanism.OAUTHBEARER, oauth=token, ca_file=ca
    )
    mutual = Security(
        destinations=ANYWHERE, protocol=Protocol.SSL, ca_file=ca, cert_file=str(certificate), key_file=str(key)
    )
    return {
        "PLAIN": by_password("PLAIN", PLAIN_USER, PLAIN_PASSWORD),
        "SCRAM-SHA-256": by_password("SCRAM-SHA-256", "scram-256", "pw-256"),
        "SCRAM-SHA-512": by_password("SCRAM-SHA-512", "scram-512", "pw,=512"),
        "OAUTHBEARER": Connection(tuple(secured.bootstrap), oauth),
        "mutual TLS": Connection(tuple(secured.mutual), mutual),
    }


@pytest.fixture
def endpoint(secured: SecuredKafka) -> Iterator[SecuredKafka]:
    """The cluster with its token endpoint, which is repaired afterwards; tokens of other tests are forgotten."""
    token_source._sources.clear()
    yield secured
    secured.tokens.answer, secured.tokens.delay_seconds, secured.tokens.life_seconds = None, 0.0, 300
    if secured.tokens._server is None:
        secured.tokens.start()
    token_source._sources.clear()


@pytest.mark.parametrize("way", WAYS)
def test_reads_moves_and_probes_work(secured: SecuredKafka, ways: dict[str, Connection], way: str) -> None:
    connection = ways[way]
    nodes = BrokerPool(connection, PATIENT)
    cluster = KafkaReader(nodes).read()
    assert {f"{b.host}:{b.port}" for b in cluster.brokers.values()} == set(connection.bootstrap)
    assert sum(p.topic == "orders" for p in cluster.partitions) == 6
    name = TopicPartition("orders", 0)
    assert KafkaMover(nodes).elect([name])[name].ok
    answer = BrokerProbe(connection).ask(connection.bootstrap[1], 2, 20)
    assert (answer.ok, answer.weaker, answer.message) == (True, False, "")


@pytest.mark.parametrize("way", WAYS)
def test_the_same_connection_feeds_librdkafka(ways: dict[str, Connection], way: str) -> None:
    connection = ways[way]
    client = AdminClient(for_confluent(connection))
    client.poll(0)
    assert set(client.list_topics(timeout=limit(20)).brokers) == {1, 2, 3}


def test_all_that_speak_to_kafka_share_one_token(endpoint: SecuredKafka, ways: dict[str, Connection]) -> None:
    before = len(endpoint.tokens.given)
    connection = ways["OAUTHBEARER"]
    threads = [threading.Thread(target=lambda: KafkaReader(BrokerPool(connection, PATIENT)).read()) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(limit(60))
    AdminClient(for_confluent(connection)).list_topics(timeout=limit(20))
    assert len(endpoint.tokens.given) == before + 1


def test_a_token_is_renewed_before_it_ends_and_not_at_each_read(
    endpoint: SecuredKafka, ways: dict[str, Connection]
) -> None:
    endpoint.tokens.life_seconds = 5
    reader = KafkaReader(BrokerPool(ways["OAUTHBEARER"], PATIENT))
    before = len(endpoint.tokens.given)

    def renewed_twice() -> bool:
        reader.read()  # never refused
        return len(endpoint.tokens.given) >= before + 3

    until(renewed_twice, 60)
    endpoint.tokens.life_seconds = 300
    given = len(endpoint.tokens.given)
    for _ in range(10):
        reader.read()
    assert len(endpoint.tokens.given) <= given + 2, "the short-lived token that is in use, and one under way"


def test_a_token_endpoint_that_is_down_or_talks_nonsense_is_named_and_recovers(
    endpoint: SecuredKafka, ways: dict[str, Connection]
) -> None:
    reader = KafkaReader(BrokerPool(ways["OAUTHBEARER"], PATIENT))
    endpoint.tokens.stop()
    with pytest.raises(Transient, match=r"token_endpoint https://127\.0\.0\.1:.* cannot be reached"):
        reader.read()
    endpoint.tokens.start()
    endpoint.tokens.answer = 200, b"<html>"
    _until_said(reader, "without an access_token")
    endpoint.tokens.answer = 200, b'{"access_token": "bm9uc2Vuc2U.e30.x", "expires_in": 300}'
    _until_said(reader, "refused the token of client 'token-user'|refused client 'token-user'")
    endpoint.tokens.answer = None
    _until_said(reader, "")


def test_a_refused_token_says_whose_it_was_and_not_what_it_was(
    endpoint: SecuredKafka, ways: dict[str, Connection]
) -> None:
    token = endpoint.tokens.token("token-user", aud="another-service")
    endpoint.tokens.answer = 200, f'{{"access_token": "{token}", "expires_in": 300}}'.encode()
    with pytest.raises(Unauthenticated, match="check that the listener trusts the issuer") as caught:
        KafkaReader(BrokerPool(ways["OAUTHBEARER"], PATIENT)).read()
    assert "client 'token-user'" in str(caught.value)
    assert not any(part in str(caught.value) for part in token.split("."))


def test_a_slow_token_endpoint_is_no_evidence_about_a_broker(
    endpoint: SecuredKafka, ways: dict[str, Connection]
) -> None:
    endpoint.tokens.delay_seconds = 6
    probe = BrokerProbe(ways["OAUTHBEARER"])
    with pytest.raises(Transient, match="has given no token yet"):
        probe.ask(endpoint.bootstrap[0], 1, 1)
    endpoint.tokens.delay_seconds = 0
    assert probe.ask(endpoint.bootstrap[0], 1, 20).ok, "what came late serves the next"


def test_an_expired_certificate_and_a_foreign_one_differ_in_message(
    secured: SecuredKafka, ways: dict[str, Connection]
) -> None:
    connection = ways["mutual TLS"]

    def said(**security: str) -> str:
        changed = dataclasses.replace(connection.security, **security)
        with pytest.raises(Unauthenticated) as caught:
            KafkaReader(BrokerPool(dataclasses.replace(connection, security=changed), PATIENT)).read()
        return str(caught.value)

    certificate, key = secured.authority.issue("certified", expired=True)
    assert "which has expired on " in said(cert_file=str(certificate), key_file=str(key))
    assert "cert_file is not set" in said(cert_file="", key_file="")
    assert "TLS failed" in said(cert_file=str(secured.login()[0]), key_file=str(secured.login()[1]))


def _until_said(reader: KafkaReader, pattern: str) -> None:
    """Read again and again, as the operator does, until it fails in these words, or (without words) works."""

    def said() -> str:
        try:
            reader.read()
        except (Transient, Terminal) as error:
            return str(error)
        return ""

    until(said, 40, f"{pattern!r} is said", so=lambda last: re.search(pattern, last) if pattern else not last)
