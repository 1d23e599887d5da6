"""How to reach a cluster, as a value: what cannot work is refused, and no secret is in what is printed of it."""

from __future__ import annotations

import dataclasses
import traceback

import pytest

from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Connection, Security, join_address, split_address
from testkit.values.security_settings import BY_TOKEN, FULL, OAUTH, PLAINTEXT


def test_the_password_is_printed_nowhere() -> None:
    for security in (FULL, BY_TOKEN):
        for shown in (Connection(("a:1",), security), security, security.password, dataclasses.asdict(security)):
            assert "s3cr3t" not in repr(shown)
    assert "s3cr3t" not in repr(OAUTH)


def test_a_traceback_with_local_variables_keeps_the_password() -> None:
    def fail(security: Security) -> None:
        password = security.password
        raise RuntimeError(len(password))

    with pytest.raises(RuntimeError) as caught:
        fail(FULL)
    noted = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    text = "".join(noted.format())
    # The source lines of this very test are shown too; what counts are the values.
    assert "password = <hidden>" in text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"protocol": "SASL_SSL"}, "needs mechanism, username, password"),
        ({"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "u"}, "needs password"),
        ({"protocol": "SSL", "key_file": "k"}, "key_file is set without cert_file"),
        ({"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "username": "u", "password": "p"}, "needs oauth"),
        ({"protocol": "TELNET"}, "TELNET"),
        ({"protocol": "SASL_SSL", "mechanism": "GSSAPI", "username": "u", "password": "p"}, "GSSAPI"),
    ],
)
def test_combination_that_cannot_work_is_refused_and_names_field(fields: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Security(destinations=ANYWHERE, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "address", ["kafka", "kafka:", ":9092", "kafka:0", "kafka:65536", "kafka:x", "PLAINTEXT://kafka:9092", "::1:9092"]
)
def test_an_address_that_is_not_host_and_port_is_refused_by_name(address: str) -> None:
    with pytest.raises(ValueError, match="not host:port") as caught:
        Connection((address,), PLAINTEXT)
    assert repr(address) in str(caught.value)


def test_an_empty_bootstrap_is_refused() -> None:
    with pytest.raises(ValueError, match="bootstrap is empty"):
        Connection((), PLAINTEXT)


@pytest.mark.parametrize("address", ["kafka.example:9092", "10.0.0.1:1", "[2001:db8::1]:9092"])
def test_an_address_survives_taking_apart(address: str) -> None:
    assert join_address(*split_address(address)) == address


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"client_id": ""}, "needs client_id"),
        ({"client_secret": ""}, "needs client_secret"),
        ({"token_endpoint": "http://login.example.com/token"}, "must begin with https://"),
        ({"token_endpoint": "https://me:hunter2@login.example.com/token"}, "name no user"),
    ],
)
def test_a_token_endpoint_that_cannot_work_is_refused(fields: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        dataclasses.replace(OAUTH, **fields)
    assert "hunter2" not in str(caught.value)


def test_field_is_called_what_person_who_set_it_calls_it() -> None:
    named = dataclasses.replace(FULL, names=(("ca_file", "spec.kafka.tls.caSecretName"),))
    assert named.called("ca_file") == "spec.kafka.tls.caSecretName"
    assert named.called("cert_file") == "cert_file /etc/client.pem"
    assert OAUTH.called("client_id") == "client_id"


def test_what_fields_are_called_makes_no_other_connection() -> None:
    named = dataclasses.replace(FULL, names=(("ca_file", "spec.kafka.tls.caSecretName"),))
    assert (named, hash(named)) == (FULL, hash(FULL))


def test_a_client_names_itself_by_user_by_client_id_or_not_at_all() -> None:
    assert [s.principal for s in (FULL, BY_TOKEN, PLAINTEXT)] == [
        "user 'operator'",
        "client 'bellwether'",
        "this client",
    ]
