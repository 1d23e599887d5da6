"""Why the canary topic cannot be used: what lasts is told apart from what passes, with the remedy."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from bellwether.adapters.kafka.canary_client import topic_error
from bellwether.ports.errors import Terminal, Transient


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
