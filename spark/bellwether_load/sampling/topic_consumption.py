"""Bytes consumed and requests per broker and topic from Prometheus, and the estimate for each partition.

In: a client and a query that yields one series for each topic, or for each broker and topic. Out: a rate by these, or
Transient or Terminal with why not; and the rates of partitions. Called by ``rounds``, which goes on without it. The
query runs on a thread of its own; one that hangs is left behind, and not doubled.

The bytes of a topic are dealt to its partitions as its new records are, since consumers mostly read what has just been
written. Where a broker's bytes are known apart, they are dealt to the topic's partitions that it leads; what consumers
read from followers then counts for no partition, as it does not move with the leader. Requests are dealt likewise;
those of a topic without new records evenly, since consumers and followers ask for all of its partitions.
"""

from __future__ import annotations

import math
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from bellwether.adapters.prometheus.query_client import PrometheusClient
from bellwether.adapters.prometheus.query_response import QueryResponse
from bellwether.core.model.broker_identity import IDENTITY_LABELS, Hosts, Named, match
from bellwether.core.model.cluster import Partition, PartitionKey
from bellwether.ports.errors import Terminal, Transient

LABEL = "topic"
SERIES_LIMIT = 200_000
BODY_LIMIT = 64 * 1024 * 1024
# BytesOutPerSec, which leaves replication out, as the JMX exporter (Strimzi's rules) and Strimzi's reporter name it.
DEFAULT_QUERY = " or ".join(
    f'sum by ({LABEL}, {", ".join(IDENTITY_LABELS)}) (rate(kafka_server_brokertopicmetrics_{name}{{{LABEL}!=""}}[3m]))'
    for name in ("bytesout_total", "bytesoutpersec_total")
)
_BY = f"{LABEL}, {', '.join(IDENTITY_LABELS)}"
# TotalProduceRequestsPerSec and TotalFetchRequestsPerSec count a request for each of its partitions. Kafka creates each
# with its first request, so that a sum of two queries would lack topics that have only one of them.
DEFAULT_REQUEST_QUERY = " or ".join(
    f"sum by ({_BY}) ("
    + " or ".join(
        f'label_replace(rate(kafka_server_brokertopicmetrics_total{kind}requests{name}{{{LABEL}!=""}}[3m]),'
        f' "request", "{kind}", "", "")'
        for kind in ("produce", "fetch")
    )
    + ")"
    for name in ("_total", "persec_total")
)
# Extra time for a query to report its own timeout.
_GRACE_SECONDS = 0.5

_Outcome = QueryResponse | Transient | Terminal
# Enough digits for an estimate, and few enough for files to stay small.
_STEPS = 1 << 10

Consumption = Mapping[str | tuple[str, int], float]
"""Bytes/s or requests/s by topic, or by topic and broker."""


class TopicReaders:
    """One query of one Prometheus. For one thread."""

    def __init__(self, client: PrometheusClient, query: str = DEFAULT_QUERY) -> None:
        self._client = client
        self._query = query
        self._thread: threading.Thread | None = None

    def begin(self, timeout_seconds: float, hosts: Hosts) -> Callable[[], Consumption]:
        """Ask; the result waits for the answer: a rate by topic or broker. It raises Transient or Terminal.

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


def spread(
    topics: Consumption,
    partitions: Sequence[Partition],
    ends: Sequence[int | None],
    before: Mapping[PartitionKey, int],
    *,
    evenly: bool = False,
) -> list[float | None]:
    """The rate of each partition, in their order; None: unknown. ``evenly``: of topics to which nothing new came, too.

    Unknown is every partition of a topic (or of a topic on its leader) that Prometheus does not name, or of which some
    partition's end is not known now or was not known before (``before``, by topic id and partition), or that is read
    though nothing new came, unless ``evenly``.
    """
    apart = {key[0] for key in topics if isinstance(key, tuple)}
    keys = [(p.topic, -1 if p.leader is None else p.leader) if p.topic in apart else p.topic for p in partitions]
    came: dict[str | tuple[str, int], list[int | None]] = defaultdict(list)
    for key, partition, end in zip(keys, partitions, ends, strict=True):
        if key in topics:
            came[key].append(_new(end, before.get(partition.key)))
    shares = {key: _share(topics[key], new, evenly=evenly) for key, new in came.items()}
    found: list[float | None] = []
    for key, partition, end in zip(keys, partitions, ends, strict=True):
        share = shares.get(key)
        new = _new(end, before.get(partition.key))
        found.append(None if share is None or new is None else _coarse(share[0] * new + share[1]))
    return found


def _new(end: int | None, before: int | None) -> int | None:
    """Records that came; None when that cannot be known, as after a topic was recreated or its log was truncated."""
    return None if end is None or before is None or end < before else end - before


def _share(rate: float, new: Sequence[int | None], *, evenly: bool) -> tuple[float, float] | None:
    """The share of a topic's rate for each new record, and the one for each partition."""
    known = [count for count in new if count is not None]
    total = sum(known)
    if len(known) < len(new) or not (math.isfinite(rate) and rate >= 0):
        return None
    if total == 0:
        return (0.0, rate / len(new)) if rate == 0 or evenly else None
    return rate / total, 0.0


def _coarse(value: float) -> float:
    """The value to about a tenth of a percent."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * _STEPS) / _STEPS, exponent)
