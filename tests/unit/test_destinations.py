"""Connections of policies go where the administrator lets them, whatever a name leads to by then: on real sockets."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from kafka.protocol.admin.cluster import DescribeClusterRequest, DescribeClusterResponse
from kafka.protocol.metadata import MetadataRequest

from bellwether.adapters.kafka import connect_guard
from bellwether.adapters.kafka.brokers.broker_directory import BrokerDirectory
from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
from bellwether.adapters.kafka.canary_client import ConfluentCanary
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.connection.connection_errors import BrokerConnectionError
from bellwether.adapters.kafka.connection.transport import Deadline, Transport
from bellwether.adapters.kafka.tokens import token_endpoint
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.adapters.prometheus.query_client import Access, PrometheusClient
from bellwether.api.v1alpha1.spec.kafka_spec import Kafka
from bellwether.destinations import ANYWHERE, NOT_LOCAL, Destination, DestinationRefused, Destinations
from bellwether.kafka_connection import Connection, HttpProxy, OAuth, Security
from bellwether.ports.errors import Terminal, Transient
from testkit.kafka.scripted_broker import ScriptedBroker
from testkit.kafka.scripted_metadata import metadata, partition, topic
from testkit.kubernetes.memory_api import MemoryApi
from waiting import limit

ALLOWED = "allowed.example.com"


def only(*entries: str) -> Destinations:
    return Destinations(tuple(map(Destination.parse, entries)))


class Victim:
    """A server on loopback that a policy may not reach."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.2)
        self.port = int(self._socket.getsockname()[1])

    @property
    def reached(self) -> bool:
        try:
            self._socket.accept()[0].close()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def victim() -> Iterator[Victim]:
    one = Victim()
    yield one
    one.close()


@pytest.fixture
def rebound(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each lookup of ``ALLOWED`` gives the first of these addresses and forgets it, but for the last."""
    answers = ["192.0.2.1", "127.0.0.1"]
    real = socket.getaddrinfo

    def lookup(host: str, port: Any, *arguments: Any, **options: Any) -> Any:
        if host == ALLOWED:
            host = answers.pop(0) if len(answers) > 1 else answers[0]
        return real(host, port, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    return answers


def by_kafka(host: str, port: int, destinations: Destinations) -> None:
    Transport.open(f"{host}:{port}", Security(destinations=destinations), Deadline(2)).close()


def by_broker_pool(host: str, port: int, destinations: Destinations) -> None:
    connection = Connection((f"{host}:{port}",), Security(destinations=destinations))
    BrokerPool(connection, Limits(read_seconds=1, opening_seconds=1)).read(lambda *_: None)


def by_prometheus(host: str, port: int, destinations: Destinations) -> None:
    PrometheusClient(f"http://{host}:{port}", Access(destinations=destinations)).ask("up", "broker", 1)


def by_proxy(host: str, port: int, destinations: Destinations) -> None:
    proxy = HttpProxy(url=f"http://{host}:{port}")
    PrometheusClient("http://prom.example.com:9090", Access(destinations=destinations, proxy=proxy)).ask(
        "up", "broker", 1
    )


def by_token_endpoint(host: str, port: int, destinations: Destinations) -> None:
    endpoint = f"https://{host}:{port}/token"
    token_endpoint.ask(OAuth(token_endpoint=endpoint, client_id="a", client_secret="b", destinations=destinations), 1)


def by_canary(host: str, port: int, destinations: Destinations) -> None:
    ConfluentCanary(Connection((f"{host}:{port}",), Security(destinations=destinations)), "topic", 1).close()


WAYS = [by_kafka, by_broker_pool, by_prometheus, by_proxy, by_token_endpoint, by_canary]
Way = Callable[[str, int, Destinations], None]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0", "127.1", "0x7f.1", "[::ffff:7f00:1]", "[::1]"]
)
def test_server_on_this_machine_is_not_reached_by_default(way: Way, host: str, victim: Victim) -> None:
    with pytest.raises(Exception, match=r"policies may not connect to .*allowedDestinations"):
        way(host, victim.port, NOT_LOCAL)
    assert not victim.reached


@pytest.mark.parametrize("way", WAYS)
def test_name_that_leads_elsewhere_at_connection_is_refused(way: Way, rebound: list[str], victim: Victim) -> None:
    del rebound[0]
    with pytest.raises(Exception, match=rf"policies may not connect to {ALLOWED}"):
        way(ALLOWED, victim.port, only("*.example.com"))
    assert not victim.reached


@pytest.mark.parametrize("way", [by_prometheus, by_token_endpoint])
def test_address_is_checked_when_connecting_not_before(way: Way, rebound: list[str], victim: Victim) -> None:
    (info,) = socket.getaddrinfo(ALLOWED, victim.port, type=socket.SOCK_STREAM)
    only("*.example.com").check((ALLOWED,), info[4])  # what a check before would have seen
    with pytest.raises(Terminal, match="may not connect"):
        way(ALLOWED, victim.port, only("*.example.com"))
    assert not victim.reached


@pytest.mark.parametrize("way", WAYS[:5])
def test_listed_port_is_reached_and_another_is_not(way: Way, victim: Victim) -> None:
    with pytest.raises(Exception, match="may not connect"):
        way("127.0.0.1", victim.port, only(f"127.0.0.1:{victim.port + 1 if victim.port < 65535 else 1}"))
    assert not victim.reached
    with suppress(Transient, Terminal):  # it does not answer
        way("127.0.0.1", victim.port, only(f"127.0.0.1:{victim.port}"))
    assert victim.reached


def test_readers_for_strimzi_keep_where_policies_may_connect(victim: Victim) -> None:
    policy = Kafka(bootstrapServers=[f"127.0.0.1:{victim.port}"])
    with SecretReader(MemoryApi(), "a", destinations=NOT_LOCAL) as reader:
        for one in (reader, reader.of_strimzi("a"), reader.of_strimzi("b")):
            made = connection(policy, one)
            with pytest.raises(BrokerConnectionError, match="may not connect"):
                Transport.open(made.bootstrap[0], made.security, Deadline(2)).close()
    assert not victim.reached


def test_address_that_a_broker_advertises_is_under_the_list(victim: Victim) -> None:
    brokers = [
        DescribeClusterResponse.DescribeClusterBroker(broker_id=1, host="127.0.0.1", port=victim.port, rack=None)
    ]
    noted = DescribeClusterResponse(
        throttle_time_ms=0, error_code=0, error_message=None, cluster_id="c", controller_id=1, brokers=brokers
    )
    with ScriptedBroker({DescribeClusterRequest: lambda _: noted}) as broker:
        made = Connection((broker.address,), Security(destinations=only(broker.address)))
        found = BrokerDirectory(made).brokers()
        with pytest.raises(Transient, match=rf"127.0.0.1:{victim.port}: policies may not connect"):
            BrokerProbe(made).ask(f"{found[1].host}:{found[1].port}", 1, 2)
    assert not victim.reached


def canary(broker: ScriptedBroker) -> ConfluentCanary:
    """A canary that may connect to that broker only."""
    return ConfluentCanary(Connection((broker.address,), Security(destinations=only(broker.address))), "canary", 1)


def test_canary_never_connects_to_a_forbidden_address_that_is_advertised(victim: Victim) -> None:
    noted = metadata(topic("canary", partition(0, leader=victim.port)), brokers=[victim.port])
    with ScriptedBroker({MetadataRequest: noted}) as broker:
        client = canary(broker)
        with pytest.raises(Terminal, match=rf"may not connect to 127.0.0.1, port {victim.port}"):
            client.partitions()
        client.produce(0)
        assert [one for one in client.results(limit(20)) if one.problem] != []
        client.close()
    assert not victim.reached


@contextmanager
def own_broker() -> Iterator[ScriptedBroker]:
    """A broker that advertises its own address, and leads the one partition of the canary's topic."""
    with ScriptedBroker() as broker:
        broker.answer(
            MetadataRequest, metadata(topic("canary", partition(0, leader=broker.port)), brokers=[broker.port])
        )
        yield broker


def test_canary_asks_brokers_that_are_allowed() -> None:
    with own_broker() as broker:
        client = canary(broker)
        client.partitions()
        assert client.brokers == 1
        client.close()


def test_canary_whose_library_connects_unasked_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect_guard._library(), "rd_kafka_conf_set_connect_cb", lambda *_: None)
    with own_broker() as broker:
        client = canary(broker)
        with pytest.raises(Terminal, match="without asking"):
            client.partitions()
        client.close()


@pytest.mark.parametrize(
    ("entries", "address", "port", "allowed"),
    [
        ([], "10.1.2.3", 9092, True),
        ([], "2001:db8::1", 9092, True),
        ([], "127.0.0.2", 9092, False),
        ([], "::1", 9092, False),
        ([], "::ffff:127.0.0.1", 9092, False),
        ([], "::", 9092, False),
        ([], "169.254.169.254", 80, False),
        ([], "::ffff:169.254.169.254", 80, False),
        ([], "fe80::1%eth0", 80, False),
        ([], "fd00:ec2::254", 80, False),
        (["10.0.0.0/8"], "10.1.2.3", 9092, True),
        (["10.0.0.0/8"], "11.1.2.3", 9092, False),
        (["10.0.0.0/8:9092-9094"], "10.1.2.3", 9094, True),
        (["10.0.0.0/8:9092-9094"], "10.1.2.3", 9095, False),
        (["[2001:db8::/32]:9092"], "2001:db8::1", 9092, True),
        (["0.0.0.0/0"], "169.254.169.254", 80, False),
        (["[::/0]"], "::1", 80, False),
        (["host.example.com"], "127.0.0.1", 80, False),
        (["host.example.com"], "192.0.2.1", 80, True),
        (["*.example.com"], "192.0.2.1", 80, True),
        (["example.com"], "192.0.2.1", 80, False),
        (["127.0.0.0/8"], "127.0.0.1", 80, True),
        (["127.0.0.1:80"], "127.0.0.1", 81, False),
        (["169.254.169.254"], "169.254.169.254", 80, True),
    ],
)
def test_address_is_allowed_by_entries_for_it(entries: list[str], address: str, port: int, allowed: bool) -> None:
    try:
        only(*entries).check(("Host.example.com.",), (address, port))
    except DestinationRefused:
        assert not allowed
    else:
        assert allowed


def test_api_server_needs_an_entry_for_its_own_address() -> None:
    servers = [("10.0.0.1", 443)]
    for entries in ([], ["10.0.0.0/8"], ["0.0.0.0/0"], ["*.example.com"]):
        with pytest.raises(DestinationRefused):
            only(*entries).without(servers).check(("k.example.com",), ("10.0.0.1", 443))
    only().without(servers).check((), ("10.0.0.1", 9092))
    only("10.0.0.1:443").without(servers).check((), ("10.0.0.1", 443))


@pytest.mark.parametrize("target", ["/run/some.sock", ("localhost", 80), b"\0abstract", None])
def test_what_is_no_address_is_refused(target: Any) -> None:
    with pytest.raises(DestinationRefused):
        NOT_LOCAL.check((), target)


@pytest.mark.parametrize(
    "entry", ["10.0.0.1/8", "*", "1.2.3", "host:0", "host:99999", "::1", "host:9094-9092", "a b", "http://host", ""]
)
def test_entry_that_means_nothing_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Destination.parse(entry)


def test_guard_ends_with_its_block_and_is_off_by_hand(victim: Victim) -> None:
    with NOT_LOCAL.guard("127.0.0.1") as refused, pytest.raises(DestinationRefused):
        socket.create_connection(("127.0.0.1", victim.port))
    assert len(refused) == 1
    with ANYWHERE.guard("127.0.0.1"):
        socket.create_connection(("127.0.0.1", victim.port)).close()
    assert victim.reached
    socket.create_connection(("127.0.0.1", victim.port)).close()
    assert victim.reached
