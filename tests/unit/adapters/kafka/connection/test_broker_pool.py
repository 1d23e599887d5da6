"""Who is asked, in which order, and what it means when none answers."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import socket
import ssl
import struct
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509 import load_pem_x509_certificate
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.sasl import SaslHandshakeRequest, SaslHandshakeResponse

from bellwether.adapters.kafka.connection import broker_pool
from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.connection.connection_errors import BrokerConnectionError
from bellwether.adapters.kafka.connection.transport import READ_RATE, Deadline
from bellwether.core.model.cluster import Broker
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Connection, Security
from bellwether.ports.errors import Terminal, Transient
from realparts.tls import Authority
from testkit.kafka.scripted_broker import ScriptedBroker, dripping, hanging_up, silent, versions, web_server
from testkit.messages import assert_wording
from testkit.values.security_settings import PLAINTEXT
from waiting import limit

PATIENT = Limits(opening_seconds=300, finding_seconds=300, request_seconds=300, read_seconds=900)
"""No broker is silent: an answer may take its time, as the machine is shared."""
PASSING = Limits(opening_seconds=limit(1), finding_seconds=300, request_seconds=300, read_seconds=900)
"""One broker may be silent, and another answers."""
PLAIN = Security(destinations=ANYWHERE, protocol="SASL_PLAINTEXT", mechanism="PLAIN", username="u", password="s3cr3t")


def address(dialogue: BrokerConnection, _: Deadline) -> str:
    return dialogue.address


def broker(number: int) -> Broker:
    return Broker(number, host="h", port=number)


def read(*addresses: str, security: Security | None = None) -> str:
    return BrokerPool(Connection(addresses, security or PLAINTEXT), PATIENT).read(address)


class TestOrder:
    def test_brokers_that_metadata_names_come_with_the_bootstrap_addresses(self) -> None:
        nodes = BrokerPool(Connection(("boot:1", "h:2"), PLAINTEXT))
        assert nodes.addresses() == ("boot:1", "h:2")
        nodes.learn([broker(1), broker(2)])
        assert nodes.addresses() == ("h:1", "h:2", "boot:1")

    def test_fenced_broker_and_one_without_address_are_not_learned(self) -> None:
        nodes = BrokerPool(Connection(("boot:1",), PLAINTEXT))
        nodes.learn([broker(1), dataclasses.replace(broker(2), fenced=True), Broker(3)])
        assert nodes.addresses() == ("h:1", "boot:1")

    def test_metadata_without_any_broker_is_not_believed(self) -> None:
        nodes = BrokerPool(Connection(("boot:1",), PLAINTEXT))
        nodes.learn([broker(1)])
        nodes.learn([])
        assert nodes.addresses() == ("h:1", "boot:1")

    def test_brokers_to_avoid_come_last_even_as_bootstrap_addresses(self) -> None:
        nodes = BrokerPool(Connection(("h:1", "boot:1"), PLAINTEXT))
        nodes.learn([broker(1), broker(2)])
        nodes.avoid([1])
        assert nodes.addresses() == ("h:2", "boot:1", "h:1")
        nodes.avoid([])
        assert nodes.addresses() == ("h:1", "h:2", "boot:1")


class TestReads:
    @pytest.mark.parametrize("peer", [silent, dripping, hanging_up, web_server])
    def test_a_failing_peer_is_skipped_and_tried_last_afterwards(self, peer: Any) -> None:
        with ScriptedBroker(raw=peer) as first, ScriptedBroker() as second:
            nodes = BrokerPool(Connection((first.address, second.address), PLAINTEXT), PASSING)
            assert nodes.read(address) == second.address
            assert nodes.addresses() == (second.address, first.address)

    def test_the_one_that_answered_last_is_asked_first(self) -> None:
        with ScriptedBroker(raw=hanging_up) as first, ScriptedBroker() as second, ScriptedBroker() as third:
            nodes = BrokerPool(Connection((first.address, second.address, third.address), PLAINTEXT), PATIENT)
            nodes.read(address)
            assert nodes.addresses() == (second.address, third.address, first.address)

    def test_many_silent_brokers_cost_no_more_than_limit_of_read(self, leap: Callable[[float], None]) -> None:
        with contextlib.ExitStack() as stack:
            asked: list[socket.socket] = []

            def swallow(sock: socket.socket) -> None:
                asked.append(sock)
                leap(300)
                sock.sendall(struct.pack(">i", 100))
                silent(sock)

            peers = [stack.enter_context(ScriptedBroker(raw=swallow)) for _ in range(8)]
            limits = Limits(opening_seconds=300, request_seconds=300, read_seconds=1000)
            with pytest.raises(Transient):
                BrokerPool(Connection(tuple(peer.address for peer in peers), PLAINTEXT), limits).read(address)
            assert len(asked) == 4

    def test_broker_answering_with_error_is_not_next_first_choice(self) -> None:
        def refuses(dialogue: BrokerConnection, _: Deadline) -> str:
            raise Transient(f"{dialogue.address} cannot tell now")

        with ScriptedBroker() as one, ScriptedBroker() as other:
            nodes = BrokerPool(Connection((one.address, other.address), PLAINTEXT), PATIENT)
            first = nodes.read(address)
            with pytest.raises(Transient, match="cannot tell now"):
                nodes.read(refuses)
            assert nodes.read(address) != first


class TestSharedConnections:
    """How often a connection is opened for requests in a row."""

    def opened(
        self,
        monkeypatch: pytest.MonkeyPatch,
        kept_seconds: float,
        *asks: Callable[[BrokerConnection, Deadline], object],
    ) -> int:
        monkeypatch.setattr(broker_pool, "KEPT_SECONDS", kept_seconds)
        noted: list[str] = []
        with ScriptedBroker() as peer:
            nodes = BrokerPool(
                Connection((peer.address,), PLAINTEXT), PATIENT, observe=lambda what, *_: noted.append(what)
            )
            for ask in asks:
                with contextlib.suppress(Transient):
                    nodes.read(ask)
        return noted.count("Open")

    def test_requests_that_follow_one_another_share_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.opened(monkeypatch, 300, address, address, address) == 1

    def test_a_request_long_after_the_last_answer_has_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.opened(monkeypatch, 0, address, address, address) == 3

    def test_one_that_failed_is_not_used_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(_: BrokerConnection, _deadline: Deadline) -> None:
            raise Transient("it cannot tell now")

        assert self.opened(monkeypatch, 300, address, fails, address) == 2

    def test_a_mutation_follows_a_read_on_the_same_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(broker_pool, "KEPT_SECONDS", 300)
        with ScriptedBroker() as peer:
            nodes = BrokerPool(Connection((peer.address,), PLAINTEXT), PATIENT)
            assert nodes.read(lambda dialogue, _: dialogue) is nodes.send_once(lambda dialogue, _: dialogue)

    def test_the_last_one_is_closed_with_the_pool(self) -> None:
        with ScriptedBroker() as peer:
            nodes = BrokerPool(Connection((peer.address,), PLAINTEXT), PATIENT)
            dialogue = nodes.read(lambda dialogue, _: dialogue)
            del nodes
            gc.collect()
            with pytest.raises(BrokerConnectionError):
                dialogue.ask(SaslHandshakeRequest(version=1, mechanism="PLAIN"), SaslHandshakeResponse, Deadline(300))


def left_after(size: int) -> Callable[[BrokerConnection, Deadline], float]:
    def ask(_: BrokerConnection, deadline: Deadline) -> float:
        deadline.arrived(size)
        return deadline.left

    return ask


def test_only_the_time_of_reads_grows_with_the_answer() -> None:
    limits = dataclasses.replace(PATIENT, request_seconds=600)
    with ScriptedBroker() as one:
        nodes = BrokerPool(Connection((one.address,), PLAINTEXT), limits)
        nodes.learn([Broker(1, host="127.0.0.1", port=one.port)])
        size = 1000 * READ_RATE
        assert nodes.read(left_after(size)) > 900
        assert nodes.read_from(1, left_after(size), Deadline(900, grows=True)) > 900
        for change in (nodes.send_once(left_after(size)), nodes.send_to(1, left_after(size))):
            assert change <= limits.request_seconds


def test_a_failed_look_keeps_the_order_of_brokers() -> None:
    with ScriptedBroker(raw=silent) as one, ScriptedBroker() as other:
        nodes = BrokerPool(Connection((other.address,), PLAINTEXT), Limits(opening_seconds=0.1))
        nodes.learn([Broker(1, host="127.0.0.1", port=one.port), Broker(2, host="127.0.0.1", port=other.port)])
        order = nodes.addresses()
        with pytest.raises(Transient, match=one.address):
            nodes.look_at(1, address, 1.0)
        assert (nodes.look_at(2, address, 1.0), nodes.addresses()) == (other.address, order)


class TestReadsOfTheNextBroker:
    @pytest.fixture
    def brokers(self) -> Iterator[list[ScriptedBroker]]:
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(ScriptedBroker()) for _ in range(3)]

    @pytest.fixture
    def nodes(self, brokers: list[ScriptedBroker]) -> BrokerPool:
        pool = BrokerPool(Connection((brokers[0].address,), PLAINTEXT), PATIENT)
        pool.learn([Broker(n, host="127.0.0.1", port=one.port) for n, one in enumerate(brokers, 1)])
        pool.read(address)
        return pool

    def test_each_is_asked_in_turn_and_then_answers_first(
        self, nodes: BrokerPool, brokers: list[ScriptedBroker]
    ) -> None:
        asked = []
        for _ in range(4):
            asked.append(nodes.read_next(address))
            assert nodes.addresses()[0] == asked[-1]
        assert asked == [brokers[n].address for n in (1, 2, 0, 1)]

    def test_one_that_says_nothing_usable_leaves_the_first_choice_and_is_not_asked_at_once_again(
        self, nodes: BrokerPool, brokers: list[ScriptedBroker]
    ) -> None:
        asked: list[str] = []

        def behind(dialogue: BrokerConnection, _: Deadline) -> str | None:
            asked.append(dialogue.address)
            return None

        assert (nodes.read_next(behind), nodes.read_next(behind)) == (None, None)
        assert asked == [brokers[1].address, brokers[2].address]
        assert nodes.addresses()[0] == brokers[0].address

    def test_avoided_and_failed_brokers_are_left_out(self, nodes: BrokerPool, brokers: list[ScriptedBroker]) -> None:
        nodes.avoid([2])
        assert nodes.read_next(address) == brokers[2].address
        nodes.avoid([])
        brokers[0].forget(ApiVersionsRequest)
        assert nodes.read_next(address) is None
        assert nodes.read_next(address) == brokers[1].address
        assert nodes.read_next(address) == brokers[2].address
        assert nodes.read_next(address) == brokers[1].address

    def test_there_is_no_next_one_while_only_one_is_known(self, brokers: list[ScriptedBroker]) -> None:
        pool = BrokerPool(Connection((brokers[0].address,), PLAINTEXT), PATIENT)
        assert pool.read_next(address) is None
        pool.learn([Broker(1, host="127.0.0.1", port=brokers[0].port)])
        pool.read(address)
        assert pool.read_next(address) is None


class TestNobodyAnswers:
    def test_refused_connections_are_transient_and_named(self) -> None:
        with pytest.raises(Transient, match=r"127\.0\.0\.1:1: cannot connect.*Check that Kafka runs"):
            read("127.0.0.1:1")

    def test_the_same_word_of_many_is_said_once(self) -> None:
        with pytest.raises(Transient) as caught:
            read(*(f"127.0.0.1:{port}" for port in range(1, 6)))
        assert str(caught.value).count("cannot connect") == 1
        assert_wording(str(caught.value))

    def test_what_speaks_another_protocol_is_terminal(self) -> None:
        with ScriptedBroker(raw=web_server) as peer, pytest.raises(Terminal, match="does not speak the Kafka protocol"):
            read(peer.address)

    def test_a_name_that_does_not_exist_is_terminal(self) -> None:
        with pytest.raises(Terminal, match=r"nowhere\.invalid cannot be resolved"):
            read("nowhere.invalid:9092")

    def test_hang_up_is_wrong_configuration_only_until_it_once_worked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(broker_pool, "KEPT_SECONDS", 0)
        with ScriptedBroker(raw=hanging_up) as peer, pytest.raises(Terminal, match="closed the connection"):
            read(peer.address)
        answers: dict[Any, Any] = {ApiVersionsRequest: versions()}
        with ScriptedBroker(answers) as peer:
            nodes = BrokerPool(Connection((peer.address,), PLAINTEXT), PATIENT)
            nodes.read(address)
            peer.forget(ApiVersionsRequest)
            with pytest.raises(Transient, match="closed the connection"):
                nodes.read(address)

    def test_a_cluster_that_is_too_old_is_terminal(self) -> None:
        def old(_: Any) -> Any:
            return ApiVersionsResponse(error_code=35, api_keys=[], version=0)

        with ScriptedBroker({ApiVersionsRequest: old}) as peer, pytest.raises(Terminal, match=r"older than Kafka 2\.8"):
            read(peer.address)


class TestTelling:
    def test_opening_and_every_request_are_observed_with_their_outcome(self) -> None:
        def ask_twice(dialogue: BrokerConnection, deadline: Deadline) -> None:
            request = SaslHandshakeRequest(version=1, mechanism="PLAIN")
            dialogue.ask(request, SaslHandshakeResponse, deadline)
            peer.forget(SaslHandshakeRequest)
            dialogue.ask(request, SaslHandshakeResponse, deadline)

        def handshake(_: Any) -> Any:
            return SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"])

        noted: list[tuple[str, str]] = []
        answers: dict[Any, Any] = {ApiVersionsRequest: versions(), SaslHandshakeRequest: handshake}
        with ScriptedBroker(answers) as peer:
            connection = Connection((peer.address,), PLAINTEXT)
            nodes = BrokerPool(
                connection, PATIENT, observe=lambda what, outcome, _seconds: noted.append((what, outcome))
            )
            with pytest.raises((Transient, Terminal)):
                nodes.read(ask_twice)
        assert noted == [("Open", "ok"), ("SaslHandshake", "ok"), ("SaslHandshake", "Request")]

    def test_a_failed_connection_is_observed_with_its_stage(self) -> None:
        noted: list[tuple[str, str]] = []
        nodes = BrokerPool(
            Connection(("127.0.0.1:1",), PLAINTEXT), PATIENT, observe=lambda what, came, _: noted.append((what, came))
        )
        with pytest.raises(Transient):
            nodes.read(address)
        assert noted == [("Open", "Connect")]

    def test_the_end_of_the_brokers_certificate_is_observed(self, tmp_path: Path) -> None:
        authority = Authority(tmp_path)
        chain, key = authority.issue("broker")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
        with ScriptedBroker() as behind, TlsFront(context, behind.port) as front:
            noted: list[float] = []
            security = Security(destinations=ANYWHERE, protocol="SSL", ca_file=str(authority.path))  # type: ignore[arg-type]
            nodes = BrokerPool(Connection((front.address,), security), PATIENT, certified=noted.append)
            assert nodes.read(address) == front.address
        assert noted == [load_pem_x509_certificate(chain.read_bytes()).not_valid_after_utc.timestamp()]

    def test_without_tls_there_is_no_certificate_to_tell_of(self) -> None:
        noted: list[float] = []
        with ScriptedBroker() as peer:
            BrokerPool(Connection((peer.address,), PLAINTEXT), PATIENT, certified=noted.append).read(address)
        assert noted == []


class TlsFront:
    """Takes TLS off each connection and hands it on to a port."""

    def __init__(self, context: ssl.SSLContext, port: int) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._context, self._port = context, port
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"

    def __enter__(self) -> TlsFront:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            plain, _ = self._server.accept()
            near = self._context.wrap_socket(plain, server_side=True)
            far = socket.create_connection(("127.0.0.1", self._port))
            threading.Thread(target=self._pump, args=(far, near), daemon=True).start()
            self._pump(near, far)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)


class TestSecrets:
    def test_connection_lost_while_password_is_sent_does_not_print_it(self) -> None:
        def handshake(_: Any) -> Any:
            return SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"])

        with ScriptedBroker({SaslHandshakeRequest: handshake}) as peer:
            with pytest.raises(Terminal) as caught:
                read(peer.address, security=PLAIN)
            assert any(b"\0u\0s3cr3t" in frame for frame in peer.frames), "the password did not get as far"
        noted = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
        shown = [line for line in noted.splitlines() if "s3cr3t" in line and "in frame" not in line]
        assert shown == []
