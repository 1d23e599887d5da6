"""What is sent to move leaders, and what Kafka's answers, late ones and none at all are taken for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kafka.protocol.admin.topics import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafka.protocol.metadata import ApiVersionsRequest

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.leader_mover import MOST_PARTITIONS, KafkaMover
from bellwether.adapters.kafka.unclean_elections import KafkaUnclean
from bellwether.core.model.cluster import Broker, TopicPartition
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import NotSent, Terminal, Transient
from bellwether.ports.kafka import Outcome, Reorder
from testkit.kafka.scripted_broker import ScriptedBroker, hanging_up, silent, versions
from testkit.values.security_settings import PLAINTEXT

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
PATIENT = Limits(opening_seconds=2, finding_seconds=20, request_seconds=20)
"""Who answers may take its time, as the machine is not ours alone."""


def mover(*addresses: str, limits: Limits = PATIENT) -> KafkaMover:
    return KafkaMover(BrokerPool(Connection(addresses, PLAINTEXT), limits))


def altered(results: dict[TopicPartition, tuple[int, str | None]], error: int = 0) -> Callable[[Any], Any]:
    topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
    return lambda _: AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        allow_replication_factor_change=False,
        error_code=error,
        error_message="top",
        responses=[
            topic(
                name=name.topic,
                partitions=[
                    topic.ReassignablePartitionResponse(
                        partition_index=name.partition, error_code=code, error_message=message
                    )
                ],
            )
            for name, (code, message) in results.items()
        ],
    )


def elected(results: dict[TopicPartition, tuple[int, str | None]], error: int = 0) -> Callable[[Any], Any]:
    topic = ElectLeadersResponse.ReplicaElectionResult
    return lambda _: ElectLeadersResponse(
        throttle_time_ms=0,
        error_code=error,
        replica_election_results=[
            topic(
                topic=name.topic,
                partition_result=[
                    topic.PartitionResult(partition_id=name.partition, error_code=code, error_message=message)
                ],
            )
            for name, (code, message) in results.items()
        ],
    )


def test_reorder_forbids_changed_replication_factor_and_carries_its_time_limit() -> None:
    answer = altered({A0: (0, None), A1: (39, "no"), B0: (3, None)})
    with ScriptedBroker({AlterPartitionReassignmentsRequest: answer}) as broker:
        outcomes = mover(broker.address).reorder([Reorder(A0, (2, 1)), Reorder(B0, (3, 1)), Reorder(A1, (1, 2))])
        (sent,) = broker.asked(AlterPartitionReassignmentsRequest)
    assert sent.allow_replication_factor_change is False
    assert 0 < sent.timeout_ms <= 20_000
    assert {(t.name, p.partition_index): tuple(p.replicas) for t in sent.topics for p in t.partitions} == {
        A0: (2, 1),
        A1: (1, 2),
        B0: (3, 1),
    }
    assert [t.name for t in sent.topics] == ["a", "b"]
    assert outcomes == {
        A0: Outcome(),
        A1: Outcome("INVALID_REPLICA_ASSIGNMENT"),
        B0: Outcome("UNKNOWN_TOPIC_OR_PARTITION"),
    }


def test_cluster_without_guard_is_asked_in_version_that_it_knows() -> None:
    old = versions({AlterPartitionReassignmentsRequest: (0, 0)})
    answers = {ApiVersionsRequest: old, AlterPartitionReassignmentsRequest: altered({A0: (0, None)})}
    with ScriptedBroker(answers) as broker:
        assert mover(broker.address).reorder([Reorder(A0, (2, 1))])[A0].ok
        assert broker.asked(AlterPartitionReassignmentsRequest)[0].version == 0


def test_a_cancel_sends_null_replicas() -> None:
    with ScriptedBroker({AlterPartitionReassignmentsRequest: altered({A0: (85, None)})}) as broker:
        outcomes = mover(broker.address).cancel([A0])
        (sent,) = broker.asked(AlterPartitionReassignmentsRequest)
    assert sent.topics[0].partitions[0].replicas is None
    assert outcomes[A0].error == "NO_REASSIGNMENT_IN_PROGRESS"


def test_an_election_is_preferred_and_names_its_partitions() -> None:
    answer = elected({A0: (0, None), A1: (84, "not needed"), B0: (80, "not in ISR")})
    with ScriptedBroker({ElectLeadersRequest: answer}) as broker:
        outcomes = mover(broker.address).elect([A0, A1, B0])
        (sent,) = broker.asked(ElectLeadersRequest)
    assert sent.election_type == 0
    assert {t.topic: list(t.partitions) for t in sent.topic_partitions} == {"a": [0, 1], "b": [0]}
    assert [outcomes[name].ok for name in (A0, A1, B0)] == [True, True, False]
    assert outcomes[B0].error == "PREFERRED_LEADER_NOT_AVAILABLE"


def test_an_unclean_election_names_its_partition_alone() -> None:
    with ScriptedBroker({ElectLeadersRequest: elected({A0: (83, "why")})}) as broker:
        outcome = KafkaUnclean(BrokerPool(Connection((broker.address,), PLAINTEXT), PATIENT)).elect(A0)
        (sent,) = broker.asked(ElectLeadersRequest)
    assert outcome == Outcome("ELIGIBLE_LEADERS_NOT_AVAILABLE")
    assert sent.election_type == 1
    assert [(t.topic, t.partitions) for t in sent.topic_partitions] == [("a", [0])]


def test_a_broker_that_knows_only_preferred_elections_is_too_old() -> None:
    old = {ApiVersionsRequest: versions({ElectLeadersRequest: (0, 0)})}
    with (
        ScriptedBroker(old) as broker,
        pytest.raises(Terminal, match="offers ElectLeaders 0 to 0, needed is 1 to 2"),
    ):
        mover(broker.address).elect([A0])


def test_empty_plan_sends_nothing_as_empty_election_means_all() -> None:
    with ScriptedBroker() as broker:
        nothing = mover(broker.address)
        assert nothing.elect([]) == nothing.reorder([]) == nothing.cancel([]) == {}
        assert broker.seen == []


def test_more_than_controller_takes_is_refused_before_sending() -> None:
    many = [TopicPartition("a", index) for index in range(MOST_PARTITIONS + 1)]
    with pytest.raises(ValueError, match="at most 9000"):
        mover("127.0.0.1:1").elect(many)


def test_a_partition_named_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="named twice"):
        mover("127.0.0.1:1").reorder([Reorder(A0, (1, 2)), Reorder(A0, (2, 1))])


def test_silence_about_one_partition_is_an_error_of_that_partition() -> None:
    with ScriptedBroker({ElectLeadersRequest: elected({A0: (0, None)})}) as broker:
        outcomes = mover(broker.address).elect([A0, B0])
    assert outcomes[A0].ok
    assert outcomes[B0].error == "UNKNOWN_SERVER_ERROR"
    assert "does not mention" in outcomes[B0].message


def test_late_answer_is_neither_success_nor_sent_again(leap: Callable[[float], None]) -> None:
    def late(request: Any) -> Any:
        leap(1000)
        return altered({A0: (0, None)})(request)

    with ScriptedBroker({AlterPartitionReassignmentsRequest: late}) as first, ScriptedBroker() as second:
        one = mover(first.address, second.address)
        with pytest.raises(Transient, match="may have been carried out"):
            one.reorder([Reorder(A0, (2, 1))])
        assert len(first.asked(AlterPartitionReassignmentsRequest)) == 1
        assert second.seen == []


class TestTheAskedBroker:
    @staticmethod
    def knowing(*brokers: ScriptedBroker, bootstrap: str = "127.0.0.1:1") -> KafkaMover:
        pool = BrokerPool(Connection((bootstrap,), PLAINTEXT), PATIENT)
        hosts = [broker.address.rsplit(":", 1) for broker in brokers]
        pool.learn([Broker(number, None, host, int(port)) for number, (host, port) in enumerate(hosts, 1)])
        return KafkaMover(pool)

    def test_a_reorder_goes_to_that_broker_alone(self) -> None:
        answers = {AlterPartitionReassignmentsRequest: altered({A0: (0, None)})}
        with ScriptedBroker(answers) as one, ScriptedBroker(answers) as other:
            assert self.knowing(one, other).reorder([Reorder(A0, (2, 1))], 2)[A0].ok
            assert one.seen == []

    def test_undeliverable_request_counts_as_unsent_and_is_not_rerouted(self) -> None:
        with ScriptedBroker(raw=silent) as one, ScriptedBroker() as other:
            with pytest.raises(NotSent):
                self.knowing(one, other).reorder([Reorder(A0, (2, 1))], 1)
            assert other.seen == []

    def test_request_is_not_sent_later_than_its_started_deadline(self, leap: Callable[[float], None]) -> None:
        answers = {AlterPartitionReassignmentsRequest: altered({A0: (0, None)})}
        with ScriptedBroker(answers) as one:
            mover = self.knowing(one)
            mover.start_deadline()
            leap(mover.request_timeout_seconds)
            with pytest.raises(NotSent):
                mover.reorder([Reorder(A0, (2, 1))], 1)
            assert mover.reorder([Reorder(A0, (2, 1))], 1)[A0].ok
            assert len(one.asked(AlterPartitionReassignmentsRequest)) == 1

    def test_pause_after_connecting_keeps_request_from_being_sent(self, leap: Callable[[float], None]) -> None:
        with ScriptedBroker() as one:
            pool = BrokerPool(Connection((one.address,), PLAINTEXT), PATIENT, lambda *_: leap(60))
            with pytest.raises(NotSent):
                KafkaMover(pool).cancel([A0])
            assert one.asked(AlterPartitionReassignmentsRequest) == []

    def test_what_it_did_not_answer_may_have_been_sent(self) -> None:
        with ScriptedBroker() as one, pytest.raises(Transient, match="may have been carried out") as caught:
            self.knowing(one).reorder([Reorder(A0, (2, 1))], 1)
        assert not isinstance(caught.value, NotSent)

    def test_first_choice_exists_only_with_known_address(self) -> None:
        with ScriptedBroker() as one, ScriptedBroker() as other:
            assert self.knowing(one, other).choose() == 1
        with pytest.raises(NotSent, match="no broker's address is known"):
            mover("127.0.0.1:1").choose()

    @pytest.mark.parametrize(("error", "forwards"), [(0, True), (7, False), (41, False)])
    def test_it_forwards_when_the_controllers_answer_comes_back(self, error: int, forwards: bool) -> None:
        answer = ListPartitionReassignmentsResponse(throttle_time_ms=0, error_code=error, error_message=None, topics=[])
        with ScriptedBroker({ListPartitionReassignmentsRequest: lambda _: answer}) as one:
            assert self.knowing(one).forwards(1) is forwards
            (sent,) = one.asked(ListPartitionReassignmentsRequest)
            assert sent.topics == []

    def test_one_that_does_not_answer_forwards_nothing(self) -> None:
        with ScriptedBroker(raw=hanging_up) as one:
            assert not self.knowing(one).forwards(1)
            assert not self.knowing(one).forwards(9)


def test_connection_lost_after_sending_is_transient_and_not_sent_again() -> None:
    with ScriptedBroker() as first, ScriptedBroker() as second:
        with pytest.raises(Transient, match="may have been carried out"):
            mover(first.address, second.address).elect([A0])
        assert second.seen == []


@pytest.mark.parametrize("peer", [silent, hanging_up])
def test_an_unreachable_broker_is_skipped_before_anything_is_sent(peer: Any) -> None:
    with (
        ScriptedBroker(raw=peer) as first,
        ScriptedBroker({ElectLeadersRequest: elected({A0: (0, None)})}) as second,
    ):
        assert mover(first.address, second.address).elect([A0])[A0].ok


def test_a_missing_permission_is_terminal_and_names_the_acl() -> None:
    for answer in (elected({A0: (31, None), B0: (31, None)}), elected({}, error=31)):
        with ScriptedBroker({ElectLeadersRequest: answer}) as broker:
            with pytest.raises(Terminal, match="Alter on Cluster") as caught:
                mover(broker.address).elect([A0, B0])
            assert broker.address in str(caught.value)


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        (7, Transient, "REQUEST_TIMED_OUT.*may have been carried out"),
        (41, Transient, "NOT_CONTROLLER"),
        (-1, Transient, "UNKNOWN_SERVER_ERROR"),
        (42, Terminal, "INVALID_REQUEST"),
    ],
)
def test_error_of_whole_request_is_raised_by_next_action(code: int, kind: type[Exception], message: str) -> None:
    with (
        ScriptedBroker({AlterPartitionReassignmentsRequest: altered({}, error=code)}) as broker,
        pytest.raises(kind, match=message),
    ):
        mover(broker.address).reorder([Reorder(A0, (2, 1))])


def test_the_promised_limit_covers_finding_a_broker_and_the_request() -> None:
    limits = Limits()
    assert mover("127.0.0.1:1", limits=limits).request_timeout_seconds == limits.mutation_seconds == 4.0
