"""What constructed answers are read as: the quorum and who keeps up, min.insync.replicas, and who does not answer."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Collection, Iterator
from typing import Any

import pytest
from kafka.protocol.admin.cluster import DescribeQuorumRequest, DescribeQuorumResponse
from kafka.protocol.admin.configs import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsRequest

from bellwether.adapters.kafka import fault_tolerance_reader as reading
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.fault_tolerance_reader import KafkaFaultTolerance
from bellwether.core.model.cluster import Broker, TopicPartition
from bellwether.core.model.fault_tolerance import Quorum
from bellwether.kafka_connection import Connection
from testkit.kafka.scripted_broker import ScriptedBroker, versions
from testkit.values.security_settings import PLAINTEXT

PATIENT = Limits(opening_seconds=300, finding_seconds=300, request_seconds=300, read_seconds=900)
TOPIC = DescribeQuorumResponse.TopicData
NOW = 1_700_000_000_000


def voters(*caught_up: tuple[int, int], leader: int = 1, error: int = 0) -> Any:
    """An answer: voters, and how many milliseconds ago each was caught up (-1: never)."""
    states = [
        TOPIC.PartitionData.ReplicaState(
            replica_id=voter, log_end_offset=5, last_fetch_timestamp=NOW, last_caught_up_timestamp=NOW - ago
        )
        if ago >= 0
        else TOPIC.PartitionData.ReplicaState(
            replica_id=voter, log_end_offset=0, last_fetch_timestamp=-1, last_caught_up_timestamp=-1
        )
        for voter, ago in caught_up
    ]
    partition = TOPIC.PartitionData(
        partition_index=0,
        error_code=error,
        leader_id=leader,
        leader_epoch=1,
        high_watermark=5,
        current_voters=states,
        observers=[],
    )
    return DescribeQuorumResponse(error_code=0, topics=[TOPIC(topic_name="__cluster_metadata", partitions=[partition])])


def settings(request: Any) -> Any:
    kind = DescribeConfigsResponse.DescribeConfigsResult
    value = kind.DescribeConfigsResourceResult(
        name="min.insync.replicas",
        value="2",
        read_only=False,
        config_source=5,
        is_sensitive=False,
        synonyms=[],
        config_type=0,
        documentation=None,
    )
    results = [
        kind(
            error_code=0,
            error_message=None,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
            configs=[value],
        )
        for asked in request.resources
    ]
    return DescribeConfigsResponse(throttle_time_ms=0, results=results)


@contextlib.contextmanager
def asking(answer: Any, **scripted: Any) -> Iterator[tuple[ScriptedBroker, KafkaFaultTolerance]]:
    answers = {
        DescribeQuorumRequest: lambda _: copy.deepcopy(answer),
        DescribeConfigsRequest: settings,
        ApiVersionsRequest: scripted.get("versions", versions()),
    }
    with ScriptedBroker(answers) as broker:
        nodes = BrokerPool(Connection((broker.address,), PLAINTEXT), PATIENT)
        nodes.learn([Broker(2, host="127.0.0.1", port=broker.port), Broker(3, host="127.0.0.1", port=1)])
        yield broker, KafkaFaultTolerance(nodes)


def noted(voters: Collection[int], current: Collection[int], active: int | None = None) -> Quorum:
    return Quorum(frozenset(voters), frozenset(current), active)


@pytest.mark.parametrize(
    ("answer", "quorum"),
    [
        pytest.param(voters((1, 0), (2, 300), (3, 5000)), noted({1, 2, 3}, {1, 2, 3}, 1), id="all"),
        pytest.param(voters((1, 0), (2, 300), (3, 5001)), noted({1, 2, 3}, {1, 2}, 1), id="late"),
        pytest.param(voters((1, 0), (2, -1)), noted({1, 2}, {1}, 1), id="never caught up"),
        pytest.param(voters((1, -1), (2, 0)), noted({1, 2}, {1, 2}, 1), id="the leader is"),
        pytest.param(voters((1, 0), (2, 0), leader=-1), noted({1, 2}, set()), id="no leader"),
    ],
)
def test_voters_keep_up_while_they_were_caught_up_lately(answer: Any, quorum: Quorum):
    with asking(answer) as (_, margins):
        assert margins.margins([], [], {}).quorum == quorum


def test_min_isr_is_read_for_each_topic_and_cached_briefly(monkeypatch: pytest.MonkeyPatch):
    with asking(voters((1, 0))) as (broker, margins):
        for _ in range(3):
            assert margins.margins(["orders", "users"], [], {}).minimum_isr == {"orders": 2, "users": 2}
        assert len(broker.asked(DescribeConfigsRequest)) == 1
        assert len(broker.asked(DescribeQuorumRequest)) == 3, "a voter may be lost at any moment"
        monkeypatch.setattr(reading, "REMEMBERED_SECONDS", 0.0)
        margins.margins(["orders"], [], {})
        assert len(broker.asked(DescribeConfigsRequest)) == 2


def test_peers_without_answer_or_address_are_silent():
    with asking(voters((1, 0))) as (_, margins):
        assert margins.margins([], [2, 3, 4], {}).silent == {3, 4}


@pytest.mark.parametrize(
    ("answer", "problem", "lasting"),
    [
        pytest.param(DescribeQuorumResponse(error_code=31, topics=[]), "Describe on Cluster", True, id="no right"),
        pytest.param(voters((1, 0), error=7), "DescribeQuorum", False, id="an error of the partition"),
        pytest.param(DescribeQuorumResponse(error_code=0, topics=[]), "without a quorum", False, id="no topics"),
    ],
)
def test_what_cannot_be_read_is_said_and_not_assumed_known(answer: Any, problem: str, lasting: bool):
    with asking(answer) as (_, margins):
        found = margins.margins(["orders"], [2], {})
    assert problem in found.problem
    assert (found.quorum, found.lasting) == (None, lasting)


def test_cluster_that_cannot_describe_its_quorum_is_called_too_old():
    old = versions({DescribeQuorumRequest: (0, 0)})
    with asking(voters((1, 0)), versions=old) as (_, margins):
        found = margins.margins([], [], {})
    assert ("Kafka 3.3" in found.problem, found.lasting) == (True, True)


def ends(*offsets: int) -> Any:
    """Answers ListOffsets with one end after the other, for every partition that is asked for."""
    noted = iter(offsets)
    topic = ListOffsetsResponse.ListOffsetsTopicResponse

    def answer(request: Any) -> Any:
        offset = next(noted)
        return ListOffsetsResponse(
            throttle_time_ms=0,
            topics=[
                topic(
                    name=asked.name,
                    partitions=[
                        topic.ListOffsetsPartitionResponse(
                            partition_index=p.partition_index, error_code=0, timestamp=-1, offset=offset, leader_epoch=1
                        )
                        for p in asked.partitions
                    ],
                )
                for asked in request.topics
            ],
        )

    return answer


@pytest.mark.parametrize(
    ("follower", "trails"),
    [
        pytest.param((9, 9, 9, 9), True, id="it does not come"),
        pytest.param((10, 10), False, id="it is there"),
        pytest.param((12, 11), False, id="asked later, it is further"),
        pytest.param((8, 9, 10, 9, 10), False, id="it comes in time"),
    ],
)
def test_follower_late_to_former_position_of_leader_trails(
    follower: tuple[int, ...], trails: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(reading, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(reading, "TRAILING_SECONDS", 0.0 if trails else 60.0)
    monkeypatch.setattr(reading, "ROUNDS", 2)
    with (
        asking(voters((1, 0))) as (broker, margins),
        ScriptedBroker({ListOffsetsRequest: ends(*follower), ApiVersionsRequest: versions()}) as slow,
    ):
        broker._answers[ListOffsetsRequest] = ends(10, 10)
        nodes = margins._nodes
        nodes.learn([Broker(1, host="127.0.0.1", port=slow.port), Broker(2, host="127.0.0.1", port=broker.port)])
        found = margins.margins([], [], {1: {TopicPartition("orders", 0): 2}})
    assert (found.trailing, found.keeping_up) == (({1}, set()) if trails else (set(), {1}))


def test_follower_that_trailed_lately_is_not_said_to_keep_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(reading, "TRAILING_SECONDS", 0.0)
    monkeypatch.setattr(reading, "ROUNDS", 1)
    followed = {1: {TopicPartition("orders", 0): 2}}
    with (
        asking(voters((1, 0))) as (broker, margins),
        ScriptedBroker({ListOffsetsRequest: ends(9, 10, 10), ApiVersionsRequest: versions()}) as slow,
    ):
        broker._answers[ListOffsetsRequest] = ends(10, 10, 10)
        margins._nodes.learn(
            [Broker(1, host="127.0.0.1", port=slow.port), Broker(2, host="127.0.0.1", port=broker.port)]
        )
        assert margins.margins([], [], followed).trailing == {1}
        assert margins.margins([], [], followed).trailing == {1}, "it has come, and had not a moment ago"
        monkeypatch.setattr(reading, "TRAILED_SECONDS", 0.0)
        assert margins.margins([], [], followed).keeping_up == {1}


def test_follower_is_not_said_to_keep_up_behind_silent_leader(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "LOOK_SECONDS", 0.0)
    with (
        asking(voters((1, 0))) as (broker, margins),
        ScriptedBroker({ListOffsetsRequest: ends(10), ApiVersionsRequest: versions()}) as slow,
    ):
        broker._answers[ListOffsetsRequest] = ends(10)
        nodes = margins._nodes
        nodes.learn([Broker(1, host="127.0.0.1", port=slow.port), Broker(2, host="127.0.0.1", port=broker.port)])
        found = margins.margins([], [], {1: {TopicPartition("orders", 0): 2, TopicPartition("orders", 1): 3}})
    assert (found.trailing, found.keeping_up) == (set(), set())


def test_follower_that_does_not_tell_is_not_said_to_trail(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "LOOK_SECONDS", 0.0)
    with asking(voters((1, 0))) as (broker, margins):
        broker._answers[ListOffsetsRequest] = ends(10, 20, 30)
        assert not margins.margins([], [], {3: {TopicPartition("orders", 0): 2}}).trailing
