"""How much consumers read of each topic: answers that are believed, and a Prometheus that delays no round."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import Any

import pytest

from bellwether.adapters.prometheus.query_client import PrometheusClient
from bellwether.ports.errors import Terminal, Transient
from bellwether_load.sampling.topic_consumption import BODY_LIMIT, DEFAULT_QUERY, SERIES_LIMIT, TopicReaders

HOSTS = {1: ("kafka-a.kafka.prod.svc",), 2: ("kafka-b.kafka.prod.svc",)}


def body(*series: tuple[dict[str, str], str]) -> bytes:
    result = [{"metric": labels, "value": [0, value]} for labels, value in series]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


def readers(server: Any, query: str = DEFAULT_QUERY) -> TopicReaders:
    return TopicReaders(PrometheusClient(server.url, body_limit=BODY_LIMIT, series_limit=SERIES_LIMIT), query)


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
