"""Topics and liveness through the admin client. In: bootstrap servers. Out: topics made or deleted, live brokers.

Called by the Kafka starter (is a broker in?) and by demo, tests and benchmarks (a thousand partitions, quickly).
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Collection, Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from waiting import limit, until

# librdkafka would print each refused connection while a broker starts; what matters is in the broker's own log.
_SILENT = logging.getLogger("realparts.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False

REQUEST_SECONDS = 15.0
UNANSWERED = frozenset({KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.REQUEST_TIMED_OUT})


def admin(bootstrap: str, settings: Mapping[str, str] | None = None) -> AdminClient:
    """An admin client that gives up on a silent broker soon, and logs nothing."""
    return AdminClient(
        {"bootstrap.servers": bootstrap, "socket.timeout.ms": 10_000, **(settings or {})}, logger=_SILENT
    )


def live_brokers(bootstrap: str, timeout_seconds: float = 2.0) -> frozenset[int]:
    """The unfenced brokers that the answering broker knows of; empty when none answers in time."""
    try:
        return frozenset(admin(bootstrap).list_topics(timeout=timeout_seconds).brokers)
    except KafkaException:
        return frozenset()


def create_topics(
    bootstrap: str,
    partitions: Mapping[str, int],
    *,
    replication_factor: int = 3,
    configs: Mapping[str, str] | None = None,
    assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
    timeout_seconds: float = 60,
) -> None:
    """Create topics (name to number of partitions) and wait until each partition has a leader and a full ISR, as far as
    every broker that answers has heard: who asks next may ask any of them.

    ``assignments`` gives the replica lists of some topics, partition by partition, in place of Kafka's own placement.
    Raises KafkaException when one cannot be created, TooLate when some are not led in time.
    """
    chosen = assignments or {}
    topics = []
    for name, number in partitions.items():
        if name in chosen:
            placed = [list(replicas) for replicas in chosen[name]]
            topics.append(NewTopic(name, replica_assignment=placed, num_partitions=number, config=dict(configs or {})))
        else:
            topics.append(NewTopic(name, number, replication_factor, config=dict(configs or {})))
    _create(bootstrap, topics, timeout_seconds)
    client = admin(bootstrap)
    until(
        lambda: _not_yet_led(client, partitions)[:5],
        timeout_seconds,
        "every partition has a leader and a full ISR",
        so=lambda missing: not missing,
        every=0.2,
    )
    for broker in client.list_topics(timeout=limit(10)).brokers.values():
        address = f"{broker.host}:{broker.port}"
        until(functools.partial(_knows, address, partitions), timeout_seconds, f"broker {broker.id} knows the topics")


def delete_topics(bootstrap: str, topics: Collection[str], *, timeout_seconds: float = 60) -> None:
    """Delete topics; one that is gone already is no trouble. Raises KafkaException when one cannot be deleted."""
    wanted = set(topics)

    def deleted() -> bool:
        client = admin(bootstrap)
        for name, future in client.delete_topics(sorted(wanted), request_timeout=limit(REQUEST_SECONDS)).items():
            try:
                future.result()
                wanted.discard(name)
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    wanted.discard(name)
                elif code not in UNANSWERED:
                    raise
        return not wanted

    until(lambda: not wanted or deleted(), timeout_seconds, seen=lambda: f"still there: {sorted(wanted)[:5]}")


def delete_all_topics(bootstrap: str) -> None:
    """Delete every topic, Kafka's internal ones too: clients that need those make them again."""
    delete_topics(bootstrap, admin(bootstrap).list_topics(timeout=limit(REQUEST_SECONDS)).topics)


def configure_broker(bootstrap: str, broker: int, settings: Mapping[str, str]) -> None:
    """Change a broker's settings while it runs. Raises KafkaException when it refuses them."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
    ]
    wanted = ConfigResource(ConfigResource.Type.BROKER, str(broker), incremental_configs=entries)
    client = admin(bootstrap)
    for answer in client.incremental_alter_configs([wanted], request_timeout=limit(REQUEST_SECONDS)).values():
        answer.result()


def _create(bootstrap: str, topics: list[NewTopic], timeout_seconds: float) -> None:
    """Create them; asked again while the client takes for the controller a broker that died and is not fenced yet."""
    wanted = {topic.topic: topic for topic in topics}
    asked_before = False

    def created() -> bool:
        nonlocal asked_before
        client = admin(bootstrap)  # kept until its answers are in: they die with it
        for name, future in client.create_topics(list(wanted.values()), request_timeout=limit(REQUEST_SECONDS)).items():
            try:
                future.result()
                del wanted[name]
            except KafkaException as error:
                code = error.args[0].code()
                if asked_before and code == KafkaError.TOPIC_ALREADY_EXISTS:
                    del wanted[name]
                elif code not in UNANSWERED:
                    raise
        asked_before = True
        return not wanted

    until(lambda: not wanted or created(), timeout_seconds, seen=lambda: f"not created: {sorted(wanted)[:5]}")


def _knows(address: str, partitions: Mapping[str, int]) -> bool:
    """Whether the broker there knows them, by a client that asks no other one; true where it does not answer."""
    try:
        return not _not_yet_led(admin(address), partitions, 3)
    except KafkaException:
        return True  # frozen or dead, and not fenced yet


def _not_yet_led(client: AdminClient, partitions: Mapping[str, int], timeout_seconds: float = 10) -> list[str]:
    known = client.list_topics(timeout=timeout_seconds).topics
    missing = []
    for name, number in partitions.items():
        found = known[name].partitions if name in known else {}
        missing += [
            f"{name}-{index}"
            for index in range(number)
            if index not in found or found[index].leader < 0 or len(found[index].isrs) < len(found[index].replicas)
        ]
    return missing
