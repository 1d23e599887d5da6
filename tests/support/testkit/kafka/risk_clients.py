"""What clients really see of partitions: records written with each acks, and what a consumer gets to read.

In: a cluster's bootstrap servers. Out: errors by topic, and values by topic. Each round has clients of its own, so that
no cached metadata answers for the brokers.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from realparts.kafka_topics import _SILENT

TAKEN, TOO_FEW, NO_BROKER = "taken", "NOT_ENOUGH_REPLICAS", "no leader"
"""What becomes of a record."""

_GIVE_UP_MS = 1500
_UNANSWERED = {KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError.LEADER_NOT_AVAILABLE}
_FEW = {KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND}


def produce(bootstrap: str, topics: Collection[str], acks: str, value: str, patience: int = 1) -> dict[str, str]:
    """Write one record to partition 0 of each topic, without any retry; what became of it, by topic.

    ``patience`` is how many times the usual time the leader has for it.
    """
    give_up_ms = _GIVE_UP_MS * patience
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "message.send.max.retries": 0,
            "message.timeout.ms": give_up_ms,
            "linger.ms": 0,
        },
        logger=_SILENT,
    )
    seen: dict[str, str] = {}

    def noted(error: KafkaError | None, message: Any) -> None:
        code = error.code() if error is not None else None
        seen[message.topic()] = (
            TAKEN
            if code is None
            else TOO_FEW
            if code in _FEW
            else NO_BROKER
            if code in _UNANSWERED
            else str(error.name() if error is not None else "")
        )

    for topic in topics:
        producer.produce(topic, value=value.encode(), partition=0, on_delivery=noted)
    producer.flush(give_up_ms / 1000 * 4)
    return seen


def consume(
    bootstrap: str, topics: Collection[str], led: Collection[str], patience_seconds: float = 9.0
) -> dict[str, list[str]]:
    """All values that a consumer is shown of partition 0 of each topic; a topic that is not served is absent.

    It is read until those that are ``led`` are at their end; the others get a little time as well.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"looking-{uuid.uuid4().hex[:8]}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 300,
        },
        logger=_SILENT,
    )
    found: dict[str, list[str]] = {topic: [] for topic in topics}
    ended: set[str] = set()
    began = time.monotonic()
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in topics])
        while True:
            passed = time.monotonic() - began
            patient = passed < patience_seconds and not ended.issuperset(led)
            if not patient and (passed > 1.0 or ended.issuperset(topics)):
                break
            message = consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found[message.topic()].append(message.value().decode())
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.topic())
    finally:
        consumer.close()
    return {topic: values for topic, values in found.items() if topic in ended}
