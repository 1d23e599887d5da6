"""Produce and fetch single small records by confluent-kafka: ``ports.canary.CanaryClient``.

In: a ``Connection`` to the listener to measure and the name of the canary topic. Out: the partition of each broker, and
a result for each request. librdkafka has a thread for each broker, so no broker delays another. The topic is never
created: both clients ask for metadata without automatic creation.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from confluent_kafka import (
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    ThrottleEvent,
    TopicPartition,
)

from bellwether import documentation
from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.connect_guard import ConnectGuard
from bellwether.adapters.kafka.tokens.token_source import TokenSource, source_of
from bellwether.adapters.process_limits import ProcessSum
from bellwether.destinations import ANYWHERE, DestinationRefused, Destinations
from bellwether.kafka_connection import Connection, split_address
from bellwether.ports.canary import FETCH, PRODUCE, CanaryResult
from bellwether.ports.errors import Terminal, Transient

TOKEN_SECONDS = 10.0
"""How long a client waits for its first token."""

# librdkafka writes each failed connection to standard error. What matters to a caller comes as an error of its request.
_log = logging.getLogger("bellwether.librdkafka")
_log.disabled = True

MOST_BROKERS = 1000
"""Of the clusters of all policies: librdkafka has two threads for each broker, 100 KB each."""
BROKERS_HELD = ProcessSum("brokers of canaries")

RECORD = b"bellwether"
_METADATA_SECONDS = 5.0
_POLL_SECONDS = 0.05
_IDLE_SECONDS = 0.1
_NO_SUCH_TOPIC = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
_REFUSED = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}


def topic_error(topic: str, error: KafkaError) -> Transient | Terminal:
    """Why a topic cannot be used: Terminal, with the remedy, where only a person can change that."""
    if error.code() in _NO_SUCH_TOPIC:
        return Terminal(f"topic {topic} does not exist: create it as {documentation.page('signals/canary.md')} says")
    if error.code() in _REFUSED:
        return Terminal(f"not authorized to describe topic {topic}: grant Read and Write on it")
    if error.code() == KafkaError.TOPIC_EXCEPTION:
        return Terminal(f"{topic} is not a valid name of a topic: correct spec.detection.canary.topic")
    return Transient(f"metadata of topic {topic}: {error.str()}")


def _over_quota(partition: int, kind: str, seconds: float) -> CanaryResult:
    text = f"Kafka delays requests of this user by {seconds:.3g} s, as it is over a quota: raise the quota of this user"
    return CanaryResult(partition, kind, 0.0, text, own_trouble=True)


def _check(destinations: Destinations, addresses: Iterable[tuple[str, int]]) -> None:
    """Raise Terminal if a connection there is not allowed: before one is made, which ``ConnectGuard`` would refuse."""
    for host, port in addresses if destinations != ANYWHERE else ():
        try:
            for *_, target in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                destinations.check((host,), target)
        except DestinationRefused as error:
            raise Terminal(str(error.strerror)) from None
        except (OSError, UnicodeError):
            continue  # it cannot be connected to now, which a request shows


class ConfluentCanary:
    """Requests of one vantage to one topic. One thread produces and takes results; two others wait for them."""

    def __init__(self, connection: Connection, topic: str, timeout_seconds: float) -> None:
        """Raises Terminal when librdkafka refuses the settings, or an address is not allowed."""
        destinations = connection.security.destinations
        self._check = partial(_check, destinations)
        self._check(map(split_address, connection.bootstrap))
        milliseconds = round(timeout_seconds * 1000)
        common: dict[str, Any] = for_confluent(connection) | {
            "allow.auto.create.topics": False,
            "socket.timeout.ms": milliseconds,
            "socket.connection.setup.timeout.ms": max(1000, milliseconds),
            "socket.keepalive.enable": True,
            # A broker that is reachable again is measured again soon.
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.interval.ms": 10_000,
        }
        self._guard = ConnectGuard(destinations) if destinations != ANYWHERE else None
        if self._guard is not None:
            del common["bootstrap.servers"]
        try:
            self._producer = Producer(
                common
                | {
                    "acks": "all",
                    "linger.ms": 0,
                    "enable.idempotence": False,
                    "message.timeout.ms": milliseconds,
                    "request.timeout.ms": milliseconds,
                    "throttle_cb": partial(self._throttled, PRODUCE),
                }
            )
            self._consumer = Consumer(
                common
                | {
                    "group.id": connection.client_id,  # required, and never joined
                    "enable.auto.commit": False,
                    "auto.offset.reset": "latest",
                    # A fetch waits at the broker for the next record, as a client's does.
                    "fetch.wait.max.ms": 500,
                    "fetch.error.backoff.ms": 100,
                    "throttle_cb": partial(self._throttled, FETCH),
                }
            )
        except KafkaException as error:
            raise Terminal(f"cannot use the settings of the connection: {error.args[0].str()}") from error
        if self._guard is not None:
            self._guard.begin(self._producer, connection.bootstrap)
            self._guard.begin(self._consumer, connection.bootstrap)
        self.brokers = 0
        """Brokers in the last metadata; each has a thread in both clients."""
        self._topic = topic
        self._timeout = timeout_seconds
        self._partitions: Mapping[int, int] = {}
        self._throttled_until: dict[tuple[str, int], float] = {}
        self._results: SimpleQueue[CanaryResult] = SimpleQueue()
        self._wanted: SimpleQueue[frozenset[int]] = SimpleQueue()
        self._stop = threading.Event()
        for name, run in (("canary-produce", self._poll_producer), ("canary-fetch", self._run_consumer)):
            threading.Thread(target=run, name=name, daemon=True).start()

    def partitions(self) -> Mapping[int, int]:
        """The partition of each broker: one with that broker as its only replica. Raises Transient or Terminal."""
        try:
            listed = self._producer.list_topics(self._topic, timeout=_METADATA_SECONDS)
        except KafkaException as error:
            if self._guard is not None:
                self._guard.check(connected=False)
            raise Transient(f"metadata of topic {self._topic} could not be read: {error.args[0].str()}") from error
        if self._guard is not None:
            self._guard.check(connected=True)
        self.brokers = len(listed.brokers)
        self._check((broker.host, broker.port) for broker in listed.brokers.values())
        found = listed.topics[self._topic]
        if found.error is not None:
            raise topic_error(self._topic, found.error)
        single = {p.replicas[0]: index for index, p in sorted(found.partitions.items()) if len(p.replicas) == 1}
        self._partitions = dict(sorted(single.items()))
        return self._partitions

    def produce(self, partition: int) -> None:
        """Start to produce a record, unless Kafka delays requests of this user now."""
        began = time.monotonic()
        if (delayed := self._throttled_until.get((PRODUCE, partition), 0.0) - began) > 0:
            self._results.put(_over_quota(partition, PRODUCE, delayed))
            return

        def ended(error: KafkaError | None, message: Message) -> None:
            # librdkafka's own figure does not contain the time until this thread runs.
            seconds = time.monotonic() - began
            if error is None:
                latency = message.latency()
                seconds = min(seconds, latency) if latency is not None else seconds
                self._results.put(CanaryResult(partition, PRODUCE, seconds, offset=message.offset()))
            else:
                self._results.put(self._failed(partition, PRODUCE, seconds, error))

        try:
            self._producer.produce(self._topic, RECORD, partition=partition, on_delivery=ended)
        except (KafkaException, BufferError) as error:
            reason = error.args[0].str() if isinstance(error, KafkaException) else str(error)
            self._results.put(CanaryResult(partition, PRODUCE, 0.0, reason, own_trouble=True))

    def consume(self, partitions: Collection[int]) -> None:
        """Fetch the records of these partitions from now on, and of no others."""
        self._wanted.put(frozenset(partitions))

    def results(self, timeout_seconds: float) -> list[CanaryResult]:
        """What has ended; waits so long for the first."""
        found: list[CanaryResult] = []
        try:
            found.append(self._results.get(timeout=timeout_seconds))
            while True:
                found.append(self._results.get_nowait())
        except Empty:
            return found

    def close(self) -> None:
        """Stop both clients; requests under way are abandoned."""
        self._stop.set()
        self._producer.purge()  # the threads are not waited for: closing waits for brokers, perhaps for sick ones

    def _poll_producer(self) -> None:
        while not self._stop.is_set():
            self._producer.poll(_POLL_SECONDS)

    def _run_consumer(self) -> None:
        """All calls of the consumer are made here: some of them block while another thread consumes."""
        assigned: frozenset[int] = frozenset()
        while not self._stop.is_set():
            while not self._wanted.empty():
                assigned = self._wanted.get()
                self._consumer.assign([TopicPartition(self._topic, one, OFFSET_END) for one in sorted(assigned)])
            if not assigned:
                self._stop.wait(_IDLE_SECONDS)
                continue
            # ``consume`` would wait for a whole batch, or for its timeout.
            message = self._consumer.poll(_POLL_SECONDS)
            if message is not None:
                self._fetched(message)
        self._consumer.close()

    def _fetched(self, message: Message) -> None:
        partition, error = message.partition(), message.error()
        if message.topic() != self._topic or partition is None:
            return  # an error of the client as a whole, which shows in the requests
        if error is None:
            self._results.put(CanaryResult(partition, FETCH, 0.0, offset=message.offset()))
        else:
            self._results.put(self._failed(partition, FETCH, 0.0, error))

    def _throttled(self, kind: str, event: ThrottleEvent) -> None:
        """A quota of this user delays its next requests to a broker (KIP-219): what is under way measures nothing."""
        partition = self._partitions.get(event.broker_id)
        if partition is not None and event.throttle_time > 0:
            self._throttled_until[kind, partition] = time.monotonic() + event.throttle_time
            self._results.put(_over_quota(partition, kind, event.throttle_time))

    def _failed(self, partition: int, kind: str, seconds: float, error: KafkaError) -> CanaryResult:
        code = error.code()
        if code in _REFUSED:
            right = "Write" if kind == PRODUCE else "Read"
            return CanaryResult(
                partition, kind, seconds, f"not authorized: grant {right} on topic {self._topic}", own_trouble=True
            )
        if code in _NO_SUCH_TOPIC:
            return CanaryResult(partition, kind, seconds, error.str(), own_trouble=True)
        if code in (KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT):
            return CanaryResult(partition, kind, seconds, f"no answer within {self._timeout:g} s")
        return CanaryResult(partition, kind, seconds, error.str())


def for_confluent(connection: Connection) -> dict[str, object]:
    """The configuration of a confluent-kafka client (librdkafka's names). Raises Terminal for limited hosts."""
    security = connection.security
    config: dict[str, object] = {
        "bootstrap.servers": ",".join(connection.bootstrap),
        "client.id": connection.client_id,
        "security.protocol": str(security.protocol),
        "logger": _log,
    }
    if security.protocol.tls:
        config["ssl.endpoint.identification.algorithm"] = "https" if security.verify_hostname else "none"
        files = {
            "ssl.ca.location": security.ca_file,
            "ssl.certificate.location": security.cert_file,
            "ssl.key.location": security.key_file or security.cert_file,
        }
        config.update({name: path for name, path in files.items() if path})
    if security.protocol.sasl:
        config["sasl.mechanism"] = str(security.mechanism)
        if security.oauth is None:
            config["sasl.username"] = security.username
            config["sasl.password"] = security.password
        elif "*" not in security.oauth.hosts:
            raise Terminal(
                f"{security.oauth.called('hosts')} limits the hosts that may get a token, and librdkafka connects to"
                " whatever addresses brokers advertise: it can only be used with hosts: ['*']"
            )
        else:
            config["oauth_cb"] = _Callback(source_of(security.oauth), security.oauth.principal)
    return config


class _Callback:
    """librdkafka asks again by itself before the token ends."""

    def __init__(self, source: TokenSource, principal: str) -> None:
        self._source = source
        self._principal = principal

    def __call__(self, _configuration: str) -> tuple[str, float, str, dict[str, str]]:
        """The token and the moment when it ends, in seconds since the epoch."""
        token = self._source.token(TOKEN_SECONDS)
        ends = SystemClock().now().timestamp() + self._source.seconds_left(token)
        return str(token.text), ends, self._principal, {}
