"""The query for what consumers read, put to a real Prometheus that has scraped each exporter for a while."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bellwether.adapters.prometheus.query_client import PrometheusClient
from bellwether.ports.errors import Terminal
from bellwether_load.sampling.topic_consumption import TopicReaders
from realparts.prometheus import PrometheusServer
from testkit.processes.exporters import Line, past
from testkit.values.security_settings import WITHOUT_CREDENTIALS

pytestmark = pytest.mark.prometheus

HOSTS = {1: ("kafka-1.kafka.prod.svc",), 2: ("kafka-2.kafka.prod.svc",)}
# Bytes/s of each broker and topic.
READ = {(1, "orders"): 1000.0, (2, "orders"): 500.0, (2, "eu.clicks"): 20.0}


def lines(metric: str, now: float) -> list[Line]:
    """Counters of each broker by topic, and one over all topics, as every exporter has it."""

    def counter(rate: float) -> object:
        return lambda when: rate * (when - now + 7200)

    found = [
        Line(metric, {"topic": topic, "pod": f"kafka-{broker}"}, counter(rate))  # type: ignore[arg-type]
        for (broker, topic), rate in READ.items()
    ]
    return [*found, Line(metric, {"pod": "kafka-1"}, counter(99999.0))]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["bytesout_total", "bytesoutpersec_total"])
def test_what_consumers_read_is_found_under_each_exporters_name(tmp_path: Path, name: str) -> None:
    now = time.time()
    server = PrometheusServer(tmp_path / "prometheus")
    server.remember(past(lines(f"kafka_server_brokertopicmetrics_{name}", now), now))
    with server:
        found = TopicReaders(PrometheusClient(server.url, WITHOUT_CREDENTIALS)).begin(10, HOSTS)()
        assert found == pytest.approx({("orders", 1): 1000.0, ("orders", 2): 500.0, ("eu.clicks", 2): 20.0}, rel=0.01)
        with pytest.raises(Terminal, match="Prometheus refuses the query"):
            TopicReaders(PrometheusClient(server.url, WITHOUT_CREDENTIALS), "sum by (topic (").begin(10, HOSTS)()
