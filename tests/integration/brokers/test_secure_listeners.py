"""A SASL_SSL listener, and the errors of a wrong configuration; every way in is in ``security/test_mechanisms``."""

from __future__ import annotations

import dataclasses
import traceback
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.connection.connection_errors import Stage
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Connection, Security
from bellwether.ports.errors import Terminal, Transient, Unauthenticated
from realparts.kafka import KafkaCluster
from realparts.tls import Authority
from testkit.kafka.kafka_site import PATIENT
from testkit.values.security_settings import PLAINTEXT

pytestmark = pytest.mark.kafka


@pytest.fixture
def secure(brokers: KafkaCluster) -> Connection:
    known = brokers.security
    assert known is not None
    return Connection(
        tuple(known.bootstrap.split(",")),
        Security(
            destinations=ANYWHERE,
            protocol="SASL_SSL",
            mechanism="SCRAM-SHA-512",
            username=known.username,
            password=known.password,
            ca_file=str(known.ca),
        ),
    )


def changed(connection: Connection, **security: Any) -> Connection:
    return dataclasses.replace(connection, security=dataclasses.replace(connection.security, **security))


def test_wrong_password_is_terminal_names_user_and_keeps_secret(brokers: KafkaCluster, secure: Connection) -> None:
    wrong = changed(secure, password="s3cr3t-and-wrong")
    with pytest.raises(Terminal, match="refused user 'admin'") as caught:
        KafkaReader(BrokerPool(wrong, PATIENT)).read()
    assert "check username, password and mechanism" in str(caught.value)
    noted = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "s3cr3t" not in noted
    with pytest.raises(Unauthenticated, match="refused user 'admin'"):
        BrokerProbe(wrong).ask(brokers.broker(1).secure or "", 1, 30)  # which says nothing about the broker


def test_a_mechanism_that_is_not_offered_is_terminal_and_names_those_that_are(secure: Connection) -> None:
    with pytest.raises(Terminal, match="choose one of SCRAM-SHA-512"):
        KafkaReader(BrokerPool(changed(secure, mechanism="PLAIN"), PATIENT)).read()


def test_a_wrong_authority_is_terminal_and_names_the_file(
    brokers: KafkaCluster, secure: Connection, tmp_path: Path
) -> None:
    stranger = changed(secure, ca_file=str(Authority(tmp_path).path))
    with pytest.raises(Terminal, match="does not verify against ca_file") as caught:
        KafkaReader(BrokerPool(stranger, PATIENT)).read()
    assert str(tmp_path) in str(caught.value)
    answer = BrokerProbe(stranger).ask(brokers.broker(1).secure or "", 1, 30)
    assert (answer.ok, answer.stage) == (False, Stage.TLS)


def test_a_wrong_protocol_is_terminal_and_says_what_to_check(secure: Connection, connection: Connection) -> None:
    plain = Connection(secure.bootstrap, PLAINTEXT)
    with pytest.raises(Terminal, match="a TLS listener needs SSL or SASL_SSL"):
        KafkaReader(BrokerPool(plain, PATIENT)).read()
    with pytest.raises(Terminal, match="check the port, security"):
        KafkaReader(BrokerPool(changed(secure, protocol="SSL"), PATIENT)).read()
    with pytest.raises(Terminal, match="check that the port is a TLS listener"):
        KafkaReader(BrokerPool(dataclasses.replace(secure, bootstrap=connection.bootstrap), PATIENT)).read()
    with pytest.raises(Terminal, match="this listener does not use SASL"):
        KafkaReader(
            BrokerPool(
                changed(dataclasses.replace(secure, bootstrap=connection.bootstrap), protocol="SASL_PLAINTEXT"), PATIENT
            )
        ).read()


def test_controller_s_port_is_not_taken_for_broker_s(brokers: KafkaCluster) -> None:
    properties = (brokers.directory / "controller-101" / "server.properties").read_text()
    port = next(line for line in properties.splitlines() if line.startswith("listeners=")).rpartition(":")[2]
    with pytest.raises((Terminal, Transient), match=rf"127\.0\.0\.1:{port}"):
        KafkaReader(BrokerPool(Connection((f"127.0.0.1:{port}",), PLAINTEXT))).read()
