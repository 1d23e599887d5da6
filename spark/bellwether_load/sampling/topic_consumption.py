"""Bytes consumed per broker and topic from Prometheus: one query, run on a thread of its own.

In: a client and a query that yields one series for each topic, or for each broker and topic. Out: bytes/s by these, or
Transient or Terminal with why not. Called by the sampler, which goes on without it. A question that hangs is left
behind, and not doubled.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable

from bellwether.adapters.prometheus.query_client import PrometheusClient
from bellwether.adapters.prometheus.query_response import QueryResponse
from bellwether.core.model.broker_identity import IDENTITY_LABELS, Hosts, Named, match
from bellwether.ports.errors import Terminal, Transient
from bellwether_load.sampling.consumption_estimate import Consumption

LABEL = "topic"
SERIES_LIMIT = 200_000
BODY_LIMIT = 64 * 1024 * 1024
# BytesOutPerSec, which leaves replication out, as the JMX exporter (Strimzi's rules) and Strimzi's reporter name it.
DEFAULT_QUERY = " or ".join(
    f'sum by ({LABEL}, {", ".join(IDENTITY_LABELS)}) (rate(kafka_server_brokertopicmetrics_{name}{{{LABEL}!=""}}[3m]))'
    for name in ("bytesout_total", "bytesoutpersec_total")
)
# Extra time for a query to report its own timeout.
_GRACE_SECONDS = 0.5

_Outcome = QueryResponse | Transient | Terminal


class TopicReaders:
    """One query of one Prometheus. For one thread."""

    def __init__(self, client: PrometheusClient, query: str = DEFAULT_QUERY) -> None:
        self._client = client
        self._query = query
        self._thread: threading.Thread | None = None

    def begin(self, timeout_seconds: float, hosts: Hosts) -> Callable[[], Consumption]:
        """Ask; the result waits for the answer: bytes/s by topic or broker. It raises Transient or Terminal.

        ``hosts`` are what the brokers advertise.
        """
        if self._thread is not None and self._thread.is_alive():
            return _raising(Transient("Prometheus has not answered the query of an earlier round"))
        answers: queue.SimpleQueue[_Outcome] = queue.SimpleQueue()

        def ask() -> None:
            try:
                answers.put(self._client.ask(self._query, LABEL, timeout_seconds))
            except (Transient, Terminal) as error:
                answers.put(error)

        self._thread = threading.Thread(target=ask, name="consumers", daemon=True)
        self._thread.start()

        def collect() -> Consumption:
            try:
                found = answers.get(timeout=timeout_seconds + _GRACE_SECONDS)
            except queue.Empty:
                raise Transient("Prometheus does not answer in time") from None
            if isinstance(found, QueryResponse):
                return _by_topic(found, hosts)
            raise type(found)(f"Prometheus {found}")

        return collect


def _by_topic(answer: QueryResponse, hosts: Hosts) -> Consumption:
    found: dict[str, dict[Named, float]] = {}
    for labels, value in answer.samples:
        topic = labels.get(LABEL)
        # Without the label a series is about all topics together.
        if topic is None or value is None or not math.isfinite(value) or value < 0:
            continue
        one = Named.of_labels(labels)
        if one in found.setdefault(topic, {}):
            raise Terminal(f"Prometheus returns several series for topic {topic}: aggregate the query by ({LABEL})")
        found[topic][one] = value
    things = list(dict.fromkeys(one for by_broker in found.values() for one in by_broker))
    broker_of = dict(zip(things, (one.broker for one in match(things, hosts).of), strict=True))
    read: dict[str | tuple[str, int], float] = {}
    for topic, by_broker in found.items():
        brokers = {broker_of[one]: value for one, value in by_broker.items()}
        if None in brokers or len(brokers) < len(by_broker):
            read[topic] = sum(by_broker.values())
        else:
            read |= {(topic, broker): value for broker, value in brokers.items() if broker is not None}
    return read


def _raising(error: Transient) -> Callable[[], Consumption]:
    def collect() -> Consumption:
        raise error

    return collect
