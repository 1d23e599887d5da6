"""Tokens that need no client secret, judged by real brokers: Amazon MSK's IAM requests, and tokens from a file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
from bellwether.adapters.kafka.canary_client import for_confluent
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import TopicPartition
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import AwsMskIam, Connection, Mechanism, Protocol, Security, TokenFile, TokenOrigin
from bellwether.ports.errors import Terminal, Unauthenticated
from realparts.kafka import create_topics
from realparts.mskiam import REGION, MskKafka, compiler
from realparts.secured import TOKEN_CLIENT, Acl
from realparts.tls import Authority
from waiting import limit

if TYPE_CHECKING:
    from realparts.secured import SecuredKafka

pytestmark = pytest.mark.kafka

PATIENT = Limits(opening_seconds=10, finding_seconds=20, request_seconds=20, read_seconds=60)
ACCESS_KEY, SECRET = "AKIABELLWETHER", "msk/secret+never-to-be-shown"
KEY = AwsMskIam(region=REGION, access_key_id=ACCESS_KEY, secret_access_key=SECRET)


@pytest.fixture(scope="module")
def msk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MskKafka]:
    if compiler() is None:
        pytest.skip("there is no Java compiler for the broker's validator")
    with MskKafka(tmp_path_factory.mktemp("msk"), {ACCESS_KEY: SECRET}) as running:
        create_topics(running.kafka.bootstrap, {"orders": 3}, replication_factor=1)
        yield running


def by(origin: TokenOrigin, bootstrap: tuple[str, ...], authority: Authority) -> Connection:
    """A connection with tokens of that origin."""
    return Connection(
        bootstrap,
        Security(
            destinations=ANYWHERE,
            protocol=Protocol.SASL_SSL,
            mechanism=Mechanism.OAUTHBEARER,
            oauth=origin,
            ca_file=str(authority.path),
        ),
    )


def refusal(connection: Connection) -> str:
    with pytest.raises(Unauthenticated) as caught:
        KafkaReader(BrokerPool(connection, PATIENT)).read()
    assert SECRET not in str(caught.value)
    return str(caught.value)


@pytest.mark.slow
def test_a_broker_with_iam_lets_us_read_move_and_probe(msk: MskKafka) -> None:
    connection = by(KEY, msk.bootstrap, msk.authority)
    nodes = BrokerPool(connection, PATIENT)
    assert sum(p.topic == "orders" for p in KafkaReader(nodes).read().partitions) == 3
    name = TopicPartition("orders", 0)
    assert KafkaMover(nodes).elect([name])[name].ok
    assert BrokerProbe(connection).ask(msk.bootstrap[0], 1, 20).ok


def test_librdkafka_gets_in_by_the_same_token(msk: MskKafka) -> None:
    client = AdminClient(for_confluent(by(KEY, msk.bootstrap, msk.authority)))
    client.poll(0)
    assert set(client.list_topics(timeout=limit(20)).brokers) == {1}


def test_a_wrong_key_and_another_region_are_refused_with_what_to_check(msk: MskKafka) -> None:
    wrong = replace(KEY, secret_access_key="hunter2")
    said = refusal(by(wrong, msk.bootstrap, msk.authority))
    assert f"AWS access key {ACCESS_KEY}" in said
    assert "policies of this IAM principal allow kafka-cluster:Connect" in said
    assert "hunter2" not in said
    assert "region is that of the cluster" in refusal(
        by(replace(KEY, region="us-east-1"), msk.bootstrap, msk.authority)
    )


def test_no_token_goes_to_a_host_that_is_not_allowed(msk: MskKafka) -> None:
    limited = by(replace(KEY, hosts=("*.kafka.eu-central-1.amazonaws.com",)), msk.bootstrap, msk.authority)
    assert "hosts does not allow 127.0.0.1, so it gets no token" in refusal(limited)
    with pytest.raises(Terminal, match="librdkafka connects to whatever addresses brokers advertise"):
        for_confluent(limited)
    KafkaReader(BrokerPool(by(replace(KEY, hosts=("127.0.0.1",)), msk.bootstrap, msk.authority), PATIENT)).read()


def test_a_token_file_is_followed_when_it_is_renewed(secured: SecuredKafka, tmp_path: Path) -> None:
    secured.grant(TOKEN_CLIENT, (Acl("Describe", "Cluster"), Acl("Describe", "Topic", "*")))
    file = tmp_path / "token"
    now = int(time.time())
    file.write_text(secured.tokens.token(TOKEN_CLIENT, iat=now - 5, exp=now + 4) + "\n")
    connection = by(TokenFile(path=str(file)), tuple(secured.bootstrap), secured.authority)
    assert KafkaReader(BrokerPool(connection, PATIENT)).read().partitions
    time.sleep(max(0.0, now + 4 - time.time()) + 0.1)
    assert "its token has expired: check what renews the file" in refusal(connection)
    file.write_text(secured.tokens.token(TOKEN_CLIENT))
    deadline = time.monotonic() + limit(30)
    while True:  # a failure is followed by a pause
        try:
            assert KafkaReader(BrokerPool(connection, PATIENT)).read().partitions
            break
        except Unauthenticated:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def test_token_of_stranger_names_file_and_not_token(secured: SecuredKafka, tmp_path: Path) -> None:
    file = tmp_path / "token"
    token = secured.tokens.token(TOKEN_CLIENT, aud="another-service")
    file.write_text(token)
    said = refusal(by(TokenFile(path=str(file)), tuple(secured.bootstrap), secured.authority))
    assert f"the subject of the token in path {file}" in said
    assert not any(part in said for part in token.split("."))
