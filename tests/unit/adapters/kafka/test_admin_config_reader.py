"""Settings through librdkafka: when it is used, and what errors mean, with a broker that says what the test wants."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from kafka.protocol.admin.configs import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from bellwether.adapters.kafka import admin_config_reader
from bellwether.adapters.kafka.admin_config_reader import AdminConfigs
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.core.model.cluster import Broker
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal, Transient, Unauthorized
from testkit.kafka.scripted_broker import ScriptedBroker

PATIENT = Limits(opening_seconds=20, finding_seconds=20, request_seconds=20, read_seconds=60)
MIN_ISR = "min.insync.replicas"


@contextlib.contextmanager
def asking(errors: Mapping[str, int] | None = None) -> Iterator[tuple[ScriptedBroker, AdminConfigs]]:
    """Broker 7, for which each topic has two settings, a secret, or an error."""
    result = DescribeConfigsResponse.DescribeConfigsResult

    def settings(request: Any) -> Any:
        return DescribeConfigsResponse(
            throttle_time_ms=0,
            results=[
                result(
                    error_code=(errors or {}).get(asked.resource_name, 0),
                    error_message=None,
                    resource_type=asked.resource_type,
                    resource_name=asked.resource_name,
                    configs=[
                        result.DescribeConfigsResourceResult(
                            name=name, value=value, read_only=False, config_source=5, is_sensitive=value is None
                        )
                        for name, value in ((MIN_ISR, "2"), ("retention.ms", "1"), ("secret", None))
                    ],
                )
                for asked in request.resources
            ],
        )

    def metadata(_: Any) -> Any:
        here = MetadataResponse.MetadataResponseBroker(node_id=7, host="127.0.0.1", port=broker.port, rack=None)
        return MetadataResponse(throttle_time_ms=0, brokers=[here], cluster_id="c", controller_id=7, topics=[])

    with ScriptedBroker({DescribeConfigsRequest: settings, MetadataRequest: metadata}) as broker:
        nodes = BrokerPool(Connection((broker.address,)), PATIENT)
        nodes.learn([Broker(7, host="127.0.0.1", port=broker.port)])
        yield broker, AdminConfigs(nodes)


def by_librdkafka(broker: ScriptedBroker) -> list[bool]:
    """Of each request for settings, whether it asked for all of them: our own ask by name."""
    return [request.resources[0].configuration_keys is None for request in broker.asked(DescribeConfigsRequest)]


def test_requested_settings_are_returned_without_secrets() -> None:
    with asking() as (broker, configs):
        assert configs.topic_configs(["a", "b"], [MIN_ISR, "secret", "no.such"]) == {n: {MIN_ISR: "2"} for n in "ab"}
        assert by_librdkafka(broker) == [True]


def test_a_topic_that_is_gone_is_absent_and_hides_no_other() -> None:
    with asking({"gone": 3}) as (_, configs):
        assert configs.topic_configs(["gone", "a"], [MIN_ISR]) == {"a": {MIN_ISR: "2"}}


def test_a_missing_acl_is_named() -> None:
    with (
        asking({"a": 29}) as (_, configs),
        pytest.raises(Unauthorized, match="settings of topic a: grant the ACL DescribeConfigs on Topic"),
    ):
        configs.topic_configs(["a"], [MIN_ISR])


def test_the_broker_s_own_settings_need_not_be_allowed() -> None:
    with asking({"7": 31}) as (_, configs):
        assert configs.topic_configs(["a"], [MIN_ISR]) == {"a": {MIN_ISR: "2"}}


@pytest.mark.parametrize(("code", "kind"), [(-1, Transient), (42, Terminal)])
def test_any_other_error_is_raised_by_what_to_do_next(code: int, kind: type[Exception]) -> None:
    with asking({"a": code}) as (_, configs), pytest.raises(kind, match="DescribeConfigs"):
        configs.topic_configs(["a"], [MIN_ISR])


def test_many_topics_are_read_on_a_connection_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_config_reader, "MOST_TOPICS", 2)
    with asking() as (broker, configs):
        assert len(configs.topic_configs(["a", "b", "c"], [MIN_ISR])) == 3
        assert by_librdkafka(broker) == [False]


def test_nothing_is_asked_where_nothing_is_wanted() -> None:
    with asking() as (broker, configs):
        assert configs.topic_configs([], [MIN_ISR]) == configs.topic_configs(["a"], []) == {}
        assert broker.seen == []
