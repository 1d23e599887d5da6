"""Read topic and broker settings by DescribeConfigs, KIP-133 (``ports.kafka.ConfigReader``).

In: names of topics, ids of brokers, names of settings. Out: the effective values from any source (KIP-226). Any broker
returns the settings of topics; only a broker itself returns its own. Used for risks, elections and quarantine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from kafka.protocol.admin.configs import DescribeConfigsRequest, DescribeConfigsResponse

from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.connection.connection_errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_TOPIC_EXCEPTION,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    from_code,
)
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.ports.errors import Transient, Unauthorized

# A request and its answer stay well below a megabyte, and no broker works long at one of them.
MOST_TOPICS = 2000
_GONE = {UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION}

_TOPIC, _BROKER = 2, 4


class KafkaConfigs:
    """Settings of one cluster. Brokers are found by the addresses that the reader of the same ``Nodes`` has learnt."""

    def __init__(self, nodes: BrokerPool) -> None:
        self._nodes = nodes

    def topic_configs(self, topics: Collection[str], names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Some settings of some topics, from one broker. Raises Transient, or Terminal when a person must act."""
        wanted = sorted(set(topics))
        if not wanted or not names:
            return {}

        def ask(dialogue: BrokerConnection, deadline: Deadline) -> Mapping[str, Mapping[str, str]]:
            found: dict[str, Mapping[str, str]] = {}
            for start in range(0, len(wanted), MOST_TOPICS):
                for result in _describe(dialogue, deadline, _TOPIC, wanted[start : start + MOST_TOPICS], names):
                    if result.error_code == TOPIC_AUTHORIZATION_FAILED:
                        raise Unauthorized(
                            f"{dialogue.address} denies this user the settings of topic {result.resource_name}:"
                            " grant the ACL DescribeConfigs on Topic *"
                        )
                    if result.error_code in _GONE:
                        continue
                    _insist(result, dialogue)
                    found[result.resource_name] = _values(result)
            return found

        return self._nodes.read(ask)

    def broker_configs(self, brokers: Collection[int], names: Collection[str]) -> Mapping[int, Mapping[str, str]]:
        """Some settings of each of these brokers; absent is one whose address is unknown, or that does not answer.

        All of them together take no longer than one read may.
        """
        found: dict[int, Mapping[str, str]] = {}
        if not names:
            return found
        deadline = Deadline(self._nodes.limits.read_seconds, grows=True)
        for broker in sorted(set(brokers)):

            def ask(dialogue: BrokerConnection, limit: Deadline, broker: int = broker) -> Mapping[str, str]:
                (result, *_) = [*_describe(dialogue, limit, _BROKER, [str(broker)], names)]
                _insist(result, dialogue)
                return _values(result)

            try:
                found[broker] = self._nodes.read_from(broker, ask, deadline)
            except Transient:
                continue
        return found


def _describe(
    dialogue: BrokerConnection, deadline: Deadline, kind: int, resources: Collection[str], names: Collection[str]
) -> Iterator[Any]:
    version = dialogue.require(DescribeConfigsRequest, 4, 1)
    request = DescribeConfigsRequest(
        version=version,
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind, resource_name=resource, configuration_keys=sorted(names)
            )
            for resource in resources
        ],
        include_synonyms=False,
        include_documentation=False,
    )
    answer = dialogue.ask(request, DescribeConfigsResponse, deadline, large=True)
    if len(answer.results) != len(resources):
        raise Transient(f"{dialogue.address} answered DescribeConfigs for {len(answer.results)} of {len(resources)}")
    yield from answer.results


def _insist(result: Any, dialogue: BrokerConnection) -> None:
    if result.error_code == CLUSTER_AUTHORIZATION_FAILED:
        raise Unauthorized(
            f"{dialogue.address} denies this user a broker's settings: grant the ACL DescribeConfigs on Cluster"
        )
    if result.error_code != NONE:
        raise from_code(result.error_code, dialogue.address, "DescribeConfigs", "DescribeConfigs")


def _values(result: Any) -> Mapping[str, str]:
    return {config.name: config.value for config in result.configs if config.value is not None}
