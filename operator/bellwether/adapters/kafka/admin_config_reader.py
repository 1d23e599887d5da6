"""Read topic settings by confluent-kafka's AdminClient for ``bellwether doctor``: ``ports.kafka.TopicConfigReader``.

In: names of topics and of settings. Out: what is in force. For a command that runs once: librdkafka starts a thread for
each broker and reads all settings of a topic to give one, so the operator reads through ``config_reader`` (decision
0031).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

from bellwether.adapters.kafka.config_reader import GONE, KafkaConfigs, topic_refused
from bellwether.adapters.kafka.confluent_config import for_confluent
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.connection.connection_errors import TOPIC_AUTHORIZATION_FAILED, from_code
from bellwether.ports.errors import Transient

READ_SECONDS = 10.0
MOST_TOPICS = 2000
"""librdkafka needs 0.7 s of a processor for so many; more are read on a connection of our own, at a twentieth."""


class AdminConfigs:
    """Settings of one cluster, asked of the broker that the reader of the same ``BrokerPool`` would ask first."""

    def __init__(self, nodes: BrokerPool) -> None:
        self._nodes = nodes
        self._own = KafkaConfigs(nodes)

    def topic_configs(self, topics: Collection[str], names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Some settings of some topics. Raises Transient, or Terminal when a person must act.

        librdkafka connects to the addresses in metadata alone: where they lead nowhere, as behind a port-forward, the
        address that has answered metadata is asked on a connection of our own.
        """
        chosen = self._nodes.first_choice()
        if chosen is not None and topics and names and len(topics) <= MOST_TOPICS:
            with suppress(Transient):
                return self._asked(*chosen, topics, names)
        return self._own.topic_configs(topics, names)

    def _asked(
        self, broker: int, address: str, topics: Collection[str], names: Collection[str]
    ) -> Mapping[str, Mapping[str, str]]:
        client = AdminClient(for_confluent(self._nodes.connection) | {"bootstrap.servers": address})
        # A request that names a broker goes to it; all others go to "the controller", in KRaft a broker by chance.
        resources = [ConfigResource("broker", str(broker)), *(ConfigResource("topic", topic) for topic in set(topics))]
        _, *answers = client.describe_configs(resources, request_timeout=READ_SECONDS).items()
        found: dict[str, Mapping[str, str]] = {}
        for resource, answer in answers:
            try:
                settings = answer.result()
            except KafkaException as error:
                _insist(error.args[0], resource.name, address)
            else:
                described = {name: settings[name].value for name in names if name in settings}
                found[resource.name] = {name: value for name, value in described.items() if value is not None}
        return found


def _insist(error: KafkaError, topic: str, address: str) -> None:
    """Raise what an error means; nothing for a topic that is gone."""
    if error.code() == TOPIC_AUTHORIZATION_FAILED:
        raise topic_refused(address, topic)
    if error.code() < KafkaError.UNKNOWN:  # librdkafka's own, as a timeout
        raise Transient(f"{address} did not answer DescribeConfigs: {error.str()}")
    if error.code() not in GONE:
        raise from_code(error.code(), error.str(), address, "DescribeConfigs", "DescribeConfigs")
