"""How far a question to a broker comes, against peers that are no well-behaved brokers."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest
from kafka.protocol.admin.configs import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.metadata import ApiVersionsRequest
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe, _which_addresses
from bellwether.adapters.kafka.connection.connection_errors import Stage
from bellwether.core.signals import UnreachableCause
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Connection, Security
from bellwether.ports.errors import Terminal, Transient, Unauthenticated
from realparts.ports import HeldPorts
from testkit.kafka.scripted_broker import ScriptedBroker, dripping, hanging_up, silent, versions, web_server
from testkit.values.security_settings import PLAINTEXT
from waiting import limit

PLAIN = BrokerProbe(Connection(("127.0.0.1:1",), PLAINTEXT))


def described(error: int = 0, message: str | None = None, **configs: str | None) -> Callable[[Any], Any]:
    result = DescribeConfigsResponse.DescribeConfigsResult
    return lambda request: DescribeConfigsResponse(
        throttle_time_ms=0,
        results=[
            result(
                error_code=error,
                error_message=message,
                resource_type=4,
                resource_name=request.resources[0].resource_name,
                configs=[
                    result.DescribeConfigsResourceResult(
                        name=name.replace("_", "."), value=value, read_only=True, config_source=4, is_sensitive=False
                    )
                    for name, value in configs.items()
                ],
            )
        ],
    )


def test_the_broker_itself_is_asked_and_says_where_it_is() -> None:
    advertised = "INTERNAL://10.0.0.1:9092, EXTERNAL://[2001:db8::1]:9094,BROKEN"
    with ScriptedBroker({DescribeConfigsRequest: described(advertised_listeners=advertised)}) as broker:
        answer = PLAIN.ask(broker.address, 7, 20)
    assert answer.ok
    assert answer.advertised == {"INTERNAL": "10.0.0.1:9092", "EXTERNAL": "[2001:db8::1]:9094"}
    assert not answer.weaker
    asked = broker.asked(DescribeConfigsRequest)[0].resources[0]
    assert (asked.resource_type, asked.resource_name) == (4, "7")


def test_broker_without_own_addresses_advertises_listeners_without_all_interfaces() -> None:
    configs = described(advertised_listeners=None, listeners="A://h:1,B://:2,C://0.0.0.0:3,D://[::]:4")
    with ScriptedBroker({DescribeConfigsRequest: configs}) as broker:
        assert PLAIN.ask(broker.address, 1, 20).advertised == {"A": "h:1"}


def test_a_changed_answer_is_read_after_equal_ones_were_cached() -> None:
    said = {"advertised_listeners": "A://h:1"}

    def answer(request: Any) -> Any:
        return described(**said)(request)

    with ScriptedBroker({DescribeConfigsRequest: answer}) as broker:
        assert PLAIN.ask(broker.address, 71, 20).advertised == {"A": "h:1"}
        assert PLAIN.ask(broker.address, 71, 20).advertised == {"A": "h:1"}
        said["advertised_listeners"] = "A://h:2"
        assert PLAIN.ask(broker.address, 71, 20).advertised == {"A": "h:2"}
        assert len(broker.asked(DescribeConfigsRequest)) == 3


def test_a_huge_answer_is_read_and_not_remembered() -> None:
    huge = {"advertised_listeners": "A://h:1", "junk": "x" * 20_000}
    with ScriptedBroker({DescribeConfigsRequest: described(**huge)}) as broker:
        for _ in range(3):
            assert PLAIN.ask(broker.address, 72, 20).advertised == {"A": "h:1"}
    assert _which_addresses(4, 72, Connection(("x:1",), PLAINTEXT).client_id)._remembered.cache_info().currsize == 0


def test_request_of_clients_size_is_answered_as_small_one_is() -> None:
    sizes = []

    def noted(request: Any) -> Any:
        sizes.append(sum(map(len, request.resources[0].configuration_keys)))
        return described(advertised_listeners="A://h:1")(request)

    with ScriptedBroker({DescribeConfigsRequest: noted}) as broker:
        assert PLAIN.ask(broker.address, 1, 20, 16384).advertised == PLAIN.ask(broker.address, 1, 20).advertised
    assert sizes[0] - sizes[1] == 16384


def test_another_broker_at_address_is_named_as_wrong_one() -> None:
    refusal = described(42, "Unexpected broker id, expected 2 or empty string, but received 1")
    with ScriptedBroker({DescribeConfigsRequest: refusal}) as broker:
        answer = PLAIN.ask(broker.address, 1, 20)
    assert (answer.ok, answer.stage, answer.cause) == (False, Stage.WRONG_BROKER, UnreachableCause.WRONG_BROKER)
    assert answer.message.endswith("another broker than 1 answered: broker 2")


def test_missing_permission_makes_answer_weaker_and_names_acl() -> None:
    with ScriptedBroker({DescribeConfigsRequest: described(31)}) as broker:
        answer = PLAIN.ask(broker.address, 1, 20)
    assert (answer.ok, answer.weaker) == (True, True)
    assert "ACL DescribeConfigs on Cluster" in answer.message


def test_any_other_refusal_is_a_failed_request() -> None:
    with ScriptedBroker({DescribeConfigsRequest: described(-1, "it broke")}) as broker:
        answer = PLAIN.ask(broker.address, 1, 20)
    assert (answer.ok, answer.stage) == (False, Stage.REQUEST)
    assert answer.message.endswith("UNKNOWN_SERVER_ERROR")


@pytest.mark.parametrize("peer", [silent, dripping])
def test_a_peer_that_never_finishes_an_answer_is_left(peer: Any) -> None:
    with ScriptedBroker(raw=peer) as broker:
        answer = PLAIN.ask(broker.address, 1, limit(0.3))
    assert (answer.ok, answer.stage) == (False, Stage.REQUEST)
    assert "no answer in time" in answer.message


def test_broker_that_answers_first_request_and_then_freezes_is_left(
    leap: Callable[[float], None],
) -> None:
    def late(_: Any) -> Any:
        leap(1000)
        return described()(_)

    with ScriptedBroker({DescribeConfigsRequest: late}) as broker:
        answer = PLAIN.ask(broker.address, 1, 200)
    assert (answer.ok, answer.stage) == (False, Stage.REQUEST)


@pytest.mark.parametrize(
    ("security", "stage", "cause"),
    [
        (Security(destinations=ANYWHERE, protocol="SSL"), Stage.TLS, UnreachableCause.TLS_SILENT),
        (
            Security(destinations=ANYWHERE, protocol="SASL_PLAINTEXT", mechanism="PLAIN", username="u", password="p"),
            Stage.SASL,
            UnreachableCause.NO_ANSWER,
        ),
    ],
    ids=["tls", "sasl"],
)
def test_the_stage_says_where_a_black_hole_swallowed_the_question(
    security: Security, stage: Stage, cause: UnreachableCause
) -> None:
    with ScriptedBroker(raw=silent) as broker:
        answer = BrokerProbe(Connection((broker.address,), security)).ask(broker.address, 1, limit(0.3))
    assert (answer.ok, answer.stage, answer.cause) == (False, stage, cause)


def test_a_refused_connection_is_no_silence() -> None:
    with HeldPorts() as ports:
        address = f"127.0.0.1:{ports.take()}"
        answer = PLAIN.ask(address, 1, 20)
    assert (answer.ok, answer.stage) == (False, Stage.CONNECT)
    assert address in answer.message
    assert (answer.result, answer.cause) == ("Connect", UnreachableCause.REFUSED)


@pytest.mark.parametrize("peer", [hanging_up, web_server])
def test_what_is_no_broker_fails_the_request(peer: Any) -> None:
    with ScriptedBroker(raw=peer) as broker:
        answer = PLAIN.ask(broker.address, 1, 20)
    assert (answer.ok, answer.stage) == (False, Stage.REQUEST)


def test_a_peer_that_hangs_up_closes_the_connection() -> None:
    with ScriptedBroker(raw=hanging_up) as broker:
        assert PLAIN.ask(broker.address, 1, 20).cause is UnreachableCause.CONNECTION_CLOSED


def resolves_with(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(code, "as the resolver says")

    monkeypatch.setattr(socket, "getaddrinfo", fail)


def test_an_unresolvable_name_counts_against_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    resolves_with(socket.EAI_NONAME, monkeypatch)
    assert PLAIN.ask("nowhere.test:9092", 1, 20).cause is UnreachableCause.NAME_UNKNOWN


@pytest.mark.parametrize("code", [socket.EAI_AGAIN, socket.EAI_FAIL])
def test_a_name_service_that_fails_says_nothing_about_the_broker(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    resolves_with(code, monkeypatch)
    with pytest.raises(Transient, match=r"nowhere\.test cannot be resolved"):
        PLAIN.ask("nowhere.test:9092", 1, 20)


def test_an_unusable_certificate_here_says_nothing_about_the_broker() -> None:
    probe = BrokerProbe(
        Connection(("127.0.0.1:1",), Security(destinations=ANYWHERE, protocol="SSL", ca_file="/nowhere/ca.pem"))
    )
    with ScriptedBroker(raw=silent) as broker, pytest.raises(Terminal, match="ca_file /nowhere/ca"):
        probe.ask(broker.address, 1, 1)


def guarded(takes: Callable[[], bool]) -> ScriptedBroker:
    """A broker that asks for a password, and takes it or not."""

    def authenticate(_: Any) -> Any:
        error, message = (0, None) if takes() else (58, "Authentication failed: Invalid username or password")
        return SaslAuthenticateResponse(error_code=error, error_message=message, auth_bytes=b"", session_lifetime_ms=0)

    return ScriptedBroker(
        {
            SaslHandshakeRequest: lambda _: SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"]),
            SaslAuthenticateRequest: authenticate,
            DescribeConfigsRequest: described(advertised_listeners="A://h:1"),
        }
    )


PLAIN_USER = Security(destinations=ANYWHERE, protocol="SASL_PLAINTEXT", mechanism="PLAIN", username="u", password="p")  # type: ignore[arg-type]


def test_a_refusal_is_inconclusive_while_every_broker_refuses_the_credentials() -> None:
    with guarded(lambda: False) as broker:
        probe = BrokerProbe(Connection((broker.address,), PLAIN_USER))
        for _ in range(3):
            with pytest.raises(Unauthenticated, match="refused user 'u'"):
                probe.ask(broker.address, 1, 20)


def test_refusal_counts_against_broker_while_another_takes_credentials() -> None:
    with guarded(lambda: False) as broker, guarded(lambda: True) as other:
        probe = BrokerProbe(Connection((broker.address,), PLAIN_USER))
        assert probe.ask(other.address, 2, 20).ok
        answer = probe.ask(broker.address, 1, 20)
    assert (answer.ok, answer.stage, answer.cause) == (False, Stage.SASL, UnreachableCause.CREDENTIALS_REFUSED)


def test_old_credentials_may_be_at_fault() -> None:
    takes = [True, False]
    with guarded(lambda: takes.pop(0)) as broker:
        probe = BrokerProbe(Connection((broker.address,), PLAIN_USER), credit_seconds=0)
        assert probe.ask(broker.address, 1, 20).ok
        with pytest.raises(Unauthenticated):
            probe.ask(broker.address, 1, 20)


def test_quota_of_ours_is_never_measured_as_brokers_time() -> None:
    throttled = versions(throttle_ms=60_000)
    with ScriptedBroker({ApiVersionsRequest: throttled, DescribeConfigsRequest: described()}) as broker:
        answer = PLAIN.ask(broker.address, 7, 20)
    assert (answer.ok, answer.seconds < 0.01) == (True, True)
    with (
        ScriptedBroker({ApiVersionsRequest: throttled, DescribeConfigsRequest: lambda _: None}) as broker,
        pytest.raises(Transient, match="over a quota"),
    ):
        PLAIN.ask(broker.address, 7, 0.3)
