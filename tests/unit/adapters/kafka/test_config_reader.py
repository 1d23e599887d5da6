"""What is asked of brokers for their settings, and what constructed answers are read as."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from kafka.protocol.admin.configs import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.metadata import ApiVersionsRequest

from bellwether.adapters.kafka import config_reader as reading
from bellwether.adapters.kafka.config_reader import KafkaConfigs
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.core.model.cluster import Broker
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal, Transient, Unauthorized
from testkit.kafka.scripted_broker import ScriptedBroker, versions
from testkit.values.security_settings import PLAINTEXT

PATIENT = Limits(opening_seconds=300, finding_seconds=300, request_seconds=300, read_seconds=900)
MIN_ISR = "min.insync.replicas"
Errors = Mapping[str, int]


def noted(values: Mapping[str, Mapping[str, str | None]], errors: Errors | None = None) -> Callable[[Any], Any]:
    """Answers every resource with its settings, or with an error."""
    kind = DescribeConfigsResponse.DescribeConfigsResult

    def answer(request: Any) -> Any:
        return DescribeConfigsResponse(
            throttle_time_ms=0,
            results=[
                kind(
                    error_code=(errors or {}).get(asked.resource_name, 0),
                    error_message=None,
                    resource_type=asked.resource_type,
                    resource_name=asked.resource_name,
                    configs=[
                        kind.DescribeConfigsResourceResult(
                            name=name,
                            value=value,
                            read_only=False,
                            config_source=5,
                            is_sensitive=value is None,
                            synonyms=[],
                            config_type=0,
                            documentation=None,
                        )
                        for name, value in values.get(asked.resource_name, {}).items()
                        if name in asked.configuration_keys
                    ],
                )
                for asked in request.resources
            ],
        )

    return answer


@contextlib.contextmanager
def asking(answer: Callable[[Any], Any], **scripted: Any) -> Iterator[tuple[ScriptedBroker, KafkaConfigs, BrokerPool]]:
    answers = {DescribeConfigsRequest: answer, ApiVersionsRequest: scripted.get("versions", versions())}
    with ScriptedBroker(answers) as broker:
        nodes = BrokerPool(Connection((broker.address,), PLAINTEXT), PATIENT)
        yield broker, KafkaConfigs(nodes), nodes


def test_only_what_was_asked_for_is_asked_of_the_broker():
    with asking(noted({"orders": {MIN_ISR: "2", "retention.ms": "1"}})) as (broker, configs, _):
        assert configs.topic_configs(["orders"], [MIN_ISR]) == {"orders": {MIN_ISR: "2"}}
    (request,) = broker.asked(DescribeConfigsRequest)
    assert [(r.resource_type, r.resource_name, r.configuration_keys) for r in request.resources] == [
        (2, "orders", [MIN_ISR])
    ]
    assert not request.include_documentation


def test_many_topics_are_asked_for_in_requests_of_bounded_size(monkeypatch):
    monkeypatch.setattr(reading, "MOST_TOPICS", 2)
    topics = {f"t{n}": {MIN_ISR: str(n)} for n in range(5)}
    with asking(noted(topics)) as (broker, configs, _):
        assert configs.topic_configs(topics, [MIN_ISR]) == topics
    assert [len(r.resources) for r in broker.asked(DescribeConfigsRequest)] == [2, 2, 1]


def test_a_secret_value_is_absent():
    with asking(noted({"orders": {MIN_ISR: "2", "password": None}})) as (_, configs, _nodes):
        assert configs.topic_configs(["orders"], [MIN_ISR, "password"]) == {"orders": {MIN_ISR: "2"}}


def test_a_missing_acl_is_named():
    with (
        asking(noted({}, {"orders": 29})) as (_, configs, _nodes),
        pytest.raises(Unauthorized, match="settings of topic orders: grant the ACL DescribeConfigs on Topic"),
    ):
        configs.topic_configs(["orders"], [MIN_ISR])


def test_a_topic_that_is_gone_is_left_out():
    with asking(noted({"orders": {MIN_ISR: "2"}}, {"gone": 3})) as (_, configs, _nodes):
        assert configs.topic_configs(["gone", "orders"], [MIN_ISR]) == {"orders": {MIN_ISR: "2"}}


@pytest.mark.parametrize(("code", "kind"), [(7, Transient), (-1, Transient), (42, Terminal)])
def test_any_other_error_is_raised_by_what_to_do_next(code: int, kind: type[Exception]):
    with asking(noted({}, {"orders": code})) as (_, configs, _nodes), pytest.raises(kind, match="DescribeConfigs"):
        configs.topic_configs(["orders"], [MIN_ISR])


def test_answer_that_leaves_topic_out_is_not_taken_for_whole():
    def short(request: Any) -> Any:
        answer = noted({"a": {MIN_ISR: "1"}})(request)
        answer.results = answer.results[:1]
        return answer

    with asking(short) as (_, configs, _nodes), pytest.raises(Transient, match="1 of 2"):
        configs.topic_configs(["a", "b"], [MIN_ISR])


def test_broker_that_does_not_know_request_is_too_old():
    old = versions({DescribeConfigsRequest: (0, 0)})
    with (
        asking(noted({}), versions=old) as (_, configs, _nodes),
        pytest.raises(Terminal, match="as in Kafka"),
    ):
        configs.topic_configs(["orders"], [MIN_ISR])


def test_a_broker_is_asked_at_its_own_address_for_itself():
    with asking(noted({"7": {MIN_ISR: "2"}})) as (broker, configs, nodes):
        nodes.learn([Broker(7, host="127.0.0.1", port=broker.port)])
        assert configs.broker_configs([7], [MIN_ISR]) == {7: {MIN_ISR: "2"}}
    (request,) = broker.asked(DescribeConfigsRequest)
    assert [(r.resource_type, r.resource_name) for r in request.resources] == [(4, "7")]


def test_unknown_and_silent_brokers_are_absent_and_hide_no_other():
    with asking(noted({"7": {MIN_ISR: "2"}})) as (broker, configs, nodes):
        nodes.learn([Broker(3, host="127.0.0.1", port=1), Broker(7, host="127.0.0.1", port=broker.port)])
        assert configs.broker_configs([3, 5, 7], [MIN_ISR]) == {7: {MIN_ISR: "2"}}


def test_a_refused_read_of_a_broker_names_the_acl():
    with asking(noted({}, {"7": 31})) as (broker, configs, nodes):
        nodes.learn([Broker(7, host="127.0.0.1", port=broker.port)])
        with pytest.raises(Unauthorized, match="grant the ACL DescribeConfigs on Cluster"):
            configs.broker_configs([7], [MIN_ISR])


def test_nothing_is_asked_where_nothing_is_wanted():
    with asking(noted({})) as (broker, configs, _):
        assert configs.topic_configs([], [MIN_ISR]) == configs.topic_configs(["orders"], []) == {}
        assert configs.broker_configs([], [MIN_ISR]) == configs.broker_configs([1], []) == {}
    assert broker.seen == []
