"""One configuration for every client, and no secret in what is printed of it."""

from __future__ import annotations

import dataclasses
import traceback

import pytest

from bellwether.connections import Connection, Mechanism, Protocol, Security, join_address, split_address

FULL = Security(
    protocol=Protocol.SASL_SSL,
    mechanism=Mechanism.SCRAM_SHA_512,
    username="operator",
    password="s3cr3t",
    ca_file="/etc/ca.pem",
    cert_file="/etc/client.pem",
    key_file="/etc/client-key.pem",
    verify_hostname=False,
)


def test_confluent_gets_librdkafka_s_names() -> None:
    assert Connection(("a:1", "b:2"), FULL).for_confluent() == {
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


def test_kafka_python_gets_its_keywords() -> None:
    assert Connection(("a:1", "b:2"), FULL).for_kafka_python() == {
        "bootstrap_servers": ["a:1", "b:2"],
        "client_id": "bellwether",
        "security_protocol": "SASL_SSL",
        "ssl_check_hostname": False,
        "ssl_cafile": "/etc/ca.pem",
        "ssl_certfile": "/etc/client.pem",
        "ssl_keyfile": "/etc/client-key.pem",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "operator",
        "sasl_plain_password": "s3cr3t",
    }


def test_a_plain_connection_says_nothing_of_tls_and_sasl() -> None:
    plain = Connection(("a:1",))
    assert set(plain.for_confluent()) == {"bootstrap.servers", "client.id", "security.protocol"}
    assert set(plain.for_kafka_python()) == {"bootstrap_servers", "client_id", "security_protocol"}


def test_the_password_is_printed_nowhere() -> None:
    connection = Connection(("a:1",), FULL)
    configurations = (connection.for_confluent(), connection.for_kafka_python())
    for shown in (connection, FULL, configurations, FULL.password, dataclasses.asdict(FULL)):
        assert "s3cr3t" not in repr(shown)


def test_a_traceback_with_local_variables_keeps_the_password() -> None:
    def fail(security: Security) -> None:
        password = security.password
        raise RuntimeError(len(password))

    with pytest.raises(RuntimeError) as caught:
        fail(FULL)
    told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    text = "".join(told.format())
    # The source lines of this very test are shown too; what counts are the values.
    assert "password = <hidden>" in text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"protocol": "SASL_SSL"}, "needs mechanism, username, password"),
        ({"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "u"}, "needs password"),
        ({"protocol": "SSL", "key_file": "k"}, "key_file is set without cert_file"),
        ({"protocol": "TELNET"}, "TELNET"),
        ({"protocol": "SASL_SSL", "mechanism": "GSSAPI", "username": "u", "password": "p"}, "GSSAPI"),
    ],
)
def test_a_combination_that_cannot_work_is_refused_and_names_the_field(fields: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Security(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "address", ["kafka", "kafka:", ":9092", "kafka:0", "kafka:65536", "kafka:x", "PLAINTEXT://kafka:9092", "::1:9092"]
)
def test_an_address_that_is_not_host_and_port_is_refused_by_name(address: str) -> None:
    with pytest.raises(ValueError, match="not host:port") as caught:
        Connection((address,))
    assert repr(address) in str(caught.value)


def test_an_empty_bootstrap_is_refused() -> None:
    with pytest.raises(ValueError, match="bootstrap is empty"):
        Connection(())


@pytest.mark.parametrize("address", ["kafka.example:9092", "10.0.0.1:1", "[2001:db8::1]:9092"])
def test_an_address_survives_taking_apart(address: str) -> None:
    assert join_address(*split_address(address)) == address
