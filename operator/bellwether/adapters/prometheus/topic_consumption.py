"""Bytes consumed per topic from Prometheus: one query, run on a thread of its own.

In: a client and a query that yields one series for each topic. Out: bytes/s by topic, or Transient or Terminal with why
not. Called by the sampler, which goes on without it. A question that hangs is left behind, and not doubled.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Mapping

from bellwether.adapters.prometheus.query_client import PrometheusClient
from bellwether.adapters.prometheus.query_response import QueryResponse
from bellwether.ports.errors import Terminal, Transient

LABEL = "topic"
SERIES_LIMIT = 200_000
BODY_LIMIT = 64 * 1024 * 1024
# BytesOutPerSec, which leaves replication out, as the JMX exporter (Strimzi's rules) and Strimzi's reporter name it.
DEFAULT_QUERY = " or ".join(
    f'sum by ({LABEL}) (rate(kafka_server_brokertopicmetrics_{name}{{{LABEL}!=""}}[3m]))'
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

    def begin(self, timeout_seconds: float) -> Callable[[], Mapping[str, float]]:
        """Ask; the result waits for the answer and gives bytes/s by topic, or raises Transient or Terminal."""
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

        def collect() -> Mapping[str, float]:
            try:
                found = answers.get(timeout=timeout_seconds + _GRACE_SECONDS)
            except queue.Empty:
                raise Transient("Prometheus does not answer in time") from None
            if isinstance(found, QueryResponse):
                return _by_topic(found)
            raise type(found)(f"Prometheus {found}")

        return collect


def _by_topic(answer: QueryResponse) -> dict[str, float]:
    found: dict[str, float] = {}
    for topic, value in answer.samples:
        # Without the label a series is about all topics together.
        if topic is None or value is None or not math.isfinite(value) or value < 0:
            continue
        if topic in found:
            raise Terminal(f"Prometheus returns several series for topic {topic}: aggregate the query by ({LABEL})")
        found[topic] = value
    return found


def _raising(error: Transient) -> Callable[[], Mapping[str, float]]:
    def collect() -> Mapping[str, float]:
        raise error

    return collect
