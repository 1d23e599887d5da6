"""How much consumers read of each topic: what is believed and dealt to partitions, and that no round is delayed."""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.adapters.prometheus.query_client import PrometheusClient
from bellwether.core.model.cluster import Partition, PartitionKey
from bellwether.ports.errors import Terminal, Transient
from bellwether_load.sampling.topic_consumption import BODY_LIMIT, DEFAULT_QUERY, SERIES_LIMIT, TopicReaders, spread
from testkit.values.security_settings import WITHOUT_CREDENTIALS

HOSTS = {1: ("kafka-a.kafka.prod.svc",), 2: ("kafka-b.kafka.prod.svc",)}


def body(*series: tuple[dict[str, str], str]) -> bytes:
    result = [{"metric": labels, "value": [0, value]} for labels, value in series]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


def readers(server: Any, query: str = DEFAULT_QUERY) -> TopicReaders:
    return TopicReaders(
        PrometheusClient(server.url, WITHOUT_CREDENTIALS, body_limit=BODY_LIMIT, series_limit=SERIES_LIMIT), query
    )


def test_bytes_are_read_by_topic(server: Any) -> None:
    server.says("200 OK", body(({"topic": "orders"}, "1024"), ({"topic": "eu.clicks"}, "0.5")))
    assert readers(server).begin(5, HOSTS)() == {"orders": 1024.0, "eu.clicks": 0.5}


def of(pod: str, topic: str = "orders") -> dict[str, str]:
    return {"topic": topic, "pod": pod} if pod else {"topic": topic}


def test_brokers_of_a_topic_are_kept_apart(server: Any) -> None:
    server.says("200 OK", body((of("kafka-a"), "3"), (of("kafka-b"), "5")))
    assert readers(server).begin(5, HOSTS)() == {("orders", 1): 3.0, ("orders", 2): 5.0}


@pytest.mark.parametrize("pods", [("kafka-a", "other"), ("main-1", "main-2"), ("", "kafka-a")])
def test_where_a_pod_is_no_brokers_the_topic_has_one_sum(server: Any, pods: tuple[str, str]) -> None:
    server.says("200 OK", body(*((of(pod), "4") for pod in pods)))
    assert readers(server).begin(5, HOSTS)() == {"orders": 8.0}


def test_the_query_is_the_one_that_was_given(server: Any) -> None:
    server.says("200 OK", body())
    readers(server, "sum by (topic) (mine)").begin(5, HOSTS)()
    assert b"query=sum+by+%28topic%29+%28mine%29" in server.requests[0]
    assert b"limit=200001" in server.requests[0]


def test_entries_without_topic_or_figure_are_skipped(server: Any) -> None:
    server.says(
        "200 OK",
        body(
            ({}, "9"), ({"topic": ""}, "9"), ({"topic": "a"}, "NaN"), ({"topic": "b"}, "-1"), ({"topic": "c"}, "+Inf")
        ),
    )
    assert readers(server).begin(5, HOSTS)() == {}


def test_two_series_for_one_topic_are_refused_with_the_remedy(server: Any) -> None:
    server.says("200 OK", body(({"topic": "a", "partition": "1"}, "1"), ({"topic": "a", "partition": "2"}, "1")))
    with pytest.raises(Terminal, match=r"several series for topic a: aggregate the query by \(topic\)"):
        readers(server).begin(5, HOSTS)()


def test_more_topics_than_a_prober_may_have_brokers_are_no_trouble(server: Any) -> None:
    server.says("200 OK", body(*(({"topic": f"topic-{n}"}, "1") for n in range(15_000))))
    assert len(readers(server).begin(30, HOSTS)()) == 15_000


@pytest.mark.parametrize(("status", "error"), [("503 Busy", Transient), ("400 Bad", Terminal)])
def test_a_refusal_names_prometheus(server: Any, status: str, error: type[Exception]) -> None:
    server.says(status, b"")
    with pytest.raises(error, match=r"^Prometheus "):
        readers(server).begin(5, HOSTS)()


def test_a_prometheus_that_hangs_costs_its_timeout_and_is_not_asked_again_meanwhile(server: Any) -> None:
    over = threading.Event()

    def hang(_request: bytes, client: socket.socket) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\n")
        while not over.wait(0.05):
            client.sendall(b"X-More: y\r\n")

    server.reply = hang
    asker = readers(server)
    began = time.monotonic()
    with pytest.raises(Transient, match="does not answer in time"):
        asker.begin(0.2, HOSTS)()
    assert time.monotonic() - began < 20, "it would not have ended by itself"
    with pytest.raises(Transient, match="has not answered the query of an earlier round"):
        asker.begin(0.2, HOSTS)()
    assert len(server.requests) == 1
    over.set()


def test_the_default_query_names_what_each_exporter_calls_it() -> None:
    assert "kafka_server_brokertopicmetrics_bytesout_total" in DEFAULT_QUERY
    assert "kafka_server_brokertopicmetrics_bytesoutpersec_total" in DEFAULT_QUERY
    assert DEFAULT_QUERY.count("sum by (topic, broker, broker_id, ") == 2


def partitions(topic: str, count: int, topic_id: str = "") -> list[Partition]:
    return [Partition(topic, topic_id or topic, index, (1,), (1,), 1) for index in range(count)]


def before(topic: str, *ends: int) -> dict[PartitionKey, int]:
    return {PartitionKey(topic, index): end for index, end in enumerate(ends)}


def test_a_topics_bytes_are_dealt_as_its_new_records_are() -> None:
    found = spread({"t": 1024.0}, partitions("t", 3), [103, 205, 300], before("t", 100, 200, 300))
    assert found == pytest.approx([384, 640, 0], rel=2e-3)


def test_each_topic_has_its_own() -> None:
    both = partitions("t", 1) + partitions("u", 1)
    found = spread({"t": 8.0, "u": 2.0}, both, [1, 100], before("t", 0) | before("u", 0))
    assert found == [8.0, 2.0]


def test_what_a_broker_sends_is_dealt_to_the_partitions_that_it_leads() -> None:
    led = [Partition("t", "t", index, (1, 2), (1, 2), leader) for index, leader in enumerate((1, 1, 2, None))]
    topics = {("t", 1): 900.0, ("t", 2): 50.0, ("t", 3): 7.0}
    found = spread(topics, led, [10, 20, 30, 0], before("t", 0, 0, 0, 0))
    assert found == [pytest.approx(300, rel=2e-3), pytest.approx(600, rel=2e-3), 50.0, None]


def test_a_leader_of_which_nothing_is_said_has_unknown_consumption() -> None:
    assert spread({("t", 2): 5.0}, partitions("t", 1), [1], before("t", 0)) == [None]


def test_a_topic_that_prometheus_does_not_name_is_unknown() -> None:
    assert spread({"u": 5.0}, partitions("t", 2), [1, 1], before("t", 0, 0)) == [None, None]


def test_while_nothing_is_known_of_the_round_before_nothing_is_said() -> None:
    assert spread({"t": 5.0}, partitions("t", 2), [1, 1], {}) == [None, None]


def test_a_missing_partition_leaves_only_its_topic_unknown() -> None:
    both = partitions("t", 2) + partitions("u", 1)
    found = spread({"t": 8.0, "u": 2.0}, both, [None, 5, 7], before("t", 0, 0) | before("u", 0))
    assert found == [None, None, 2.0]


def test_a_truncated_log_or_recreated_topic_is_unknown() -> None:
    assert spread({"t": 8.0}, partitions("t", 1), [3], before("t", 5)) == [None]
    assert spread({"t": 8.0}, partitions("t", 1, topic_id="new"), [3], before("t", 1)) == [None]


def test_a_topic_without_readers_and_records_is_known_to_be_idle() -> None:
    assert spread({"t": 0.0}, partitions("t", 2), [5, 5], before("t", 5, 5)) == [0.0, 0.0]


def test_readers_of_what_came_long_ago_are_not_dealt_out() -> None:
    assert spread({"t": 9.0}, partitions("t", 2), [5, 5], before("t", 5, 5)) == [None, None]


def test_requests_of_a_topic_without_new_records_are_dealt_evenly() -> None:
    assert spread({"t": 9.0}, partitions("t", 3), [5, 5, 5], before("t", 5, 5, 5), evenly=True) == [3.0, 3.0, 3.0]
    dealt = spread({"t": 8.0}, partitions("t", 2), [6, 8], before("t", 5, 5), evenly=True)
    assert dealt == [2.0, 6.0]


@pytest.mark.parametrize("nonsense", [math.nan, math.inf, -1.0])
def test_a_figure_that_cannot_be_is_unknown(nonsense: float) -> None:
    assert spread({"t": nonsense}, partitions("t", 1), [5], before("t", 1)) == [None]


@given(st.floats(0, 1e12), st.lists(st.integers(0, 10**9), min_size=1, max_size=30))
def test_what_is_dealt_adds_up_to_what_there_was(total: float, came: list[int]) -> None:
    found = spread({"t": total}, partitions("t", len(came)), came, before("t", *[0] * len(came)))
    if None not in found:
        assert sum(value for value in found if value is not None) == pytest.approx(total, rel=2e-3, abs=1e-6)
        assert all(value is not None and 0 <= value <= total * 1.002 for value in found)
