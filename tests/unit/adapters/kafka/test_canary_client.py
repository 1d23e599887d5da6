"""Why the canary topic cannot be used: what lasts is distinguished from what passes, with the remedy."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, ThrottleEvent

from bellwether.adapters.kafka.canary_client import ConfluentCanary, topic_error
from bellwether.kafka_connection import Connection
from bellwether.ports.canary import FETCH, PRODUCE
from bellwether.ports.errors import Terminal, Transient
from testkit.messages import assert_wording


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "topic .. does not exist: create it as"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "not authorized to describe topic ..: grant Read and Write on it"),
        (KafkaError.TOPIC_EXCEPTION, "not a valid name of a topic: correct spec.detection.canary.topic"),
    ],
)
def test_a_topic_that_cannot_be_used_is_reported_with_its_remedy(code: int, remedy: str):
    found = topic_error("..", KafkaError(code))
    assert isinstance(found, Terminal)
    assert remedy in str(found)


def test_another_error_of_the_topic_passes():
    assert isinstance(topic_error("canary", KafkaError(KafkaError.LEADER_NOT_AVAILABLE)), Transient)


def test_requests_over_a_quota_of_ours_measure_nothing():
    canary = ConfluentCanary(Connection(("127.0.0.1:1",)), "canary", 1.0)
    try:
        canary._partitions = {3: 7}
        canary._throttled(PRODUCE, ThrottleEvent("b", 3, 60.0))
        canary._throttled(FETCH, ThrottleEvent("b", 4, 60.0))  # has no partition of ours
        canary.produce(7)
        found = canary.results(1.0)
    finally:
        canary.close()
    assert [(r.partition, r.kind, r.own_trouble) for r in found] == [(7, PRODUCE, True)] * 2
    assert_wording(found[0].problem)
