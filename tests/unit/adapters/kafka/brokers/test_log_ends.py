"""Where a broker's copies of logs end: what is asked for, what is believed, and how long silence takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsRequest

from bellwether.adapters.kafka.brokers import log_ends
from bellwether.adapters.kafka.brokers.log_ends import MOST_PARTITIONS, LogEnds
from bellwether.core.model.cluster import TopicPartition
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Connection, Security
from bellwether.ports.errors import Terminal
from bellwether.ports.kafka import BrokerLogEnds
from testkit.kafka.scripted_broker import ScriptedBroker, dripping, hanging_up, silent, versions, web_server
from testkit.values.security_settings import PLAINTEXT

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ASKER = LogEnds(Connection(("unknown.invalid:9092",), PLAINTEXT))


def ends(
    known: Mapping[TopicPartition, int], errors: Mapping[TopicPartition, int] | None = None
) -> Callable[[Any], Any]:
    """A broker that holds these; what it does not know it does not hold."""
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    partition = topic.ListOffsetsPartitionResponse

    def answer(request: Any) -> Any:
        return ListOffsetsResponse(
            throttle_time_ms=0,
            topics=[
                topic(
                    name=asked.name,
                    partitions=[
                        partition(
                            partition_index=p.partition_index,
                            error_code=(errors or {}).get(name, 0 if name in known else 3),
                            timestamp=-1,
                            offset=known.get(name, -1),
                            leader_epoch=1,
                        )
                        for p in asked.partitions
                        for name in [TopicPartition(asked.name, p.partition_index)]
                    ],
                )
                for asked in request.topics
            ],
        )

    return answer


def ask(
    address: str, replicas: Mapping[TopicPartition, int], timeout: float = 300.0, longest: float = 900.0
) -> BrokerLogEnds:
    return ASKER.ask(address, replicas, timeout, longest)


def test_replicas_are_asked_as_debugging_consumer_and_leaders_for_epochs() -> None:
    with ScriptedBroker({ListOffsetsRequest: ends({T0: 5, T1: 7})}) as broker:
        before = time.monotonic()
        answer = ask(broker.address, {T1: -1, T0: 9})
        assert before <= answer.sent <= answer.received <= time.monotonic()
    assert (answer.ends, answer.moved, answer.problem) == ({T0: 5, T1: 7}, 0, "")
    (request,) = broker.asked(ListOffsetsRequest)
    assert (request.replica_id, request.isolation_level) == (-2, 0)
    (topic,) = request.topics
    asked = [(p.partition_index, p.current_leader_epoch, p.timestamp) for p in topic.partitions]
    assert (topic.name, asked) == ("t", [(0, 9, -1), (1, -1, -1)])


def test_many_partitions_are_asked_in_bounded_requests_on_one_connection() -> None:
    known = {TopicPartition(f"topic-{n % 7}", n): n for n in range(2 * MOST_PARTITIONS + 1)}
    with ScriptedBroker({ListOffsetsRequest: ends(known)}) as broker:
        assert ask(broker.address, dict.fromkeys(known, -1)).ends == known
    sizes = [sum(len(t.partitions) for t in r.topics) for r in broker.asked(ListOffsetsRequest)]
    assert sizes == [MOST_PARTITIONS, MOST_PARTITIONS, 1]
    assert len(broker.asked(ApiVersionsRequest)) == 1


def test_repeated_question_is_sent_same_and_changed_one_is_not() -> None:
    asker, first = LogEnds(Connection(("unknown.invalid:9092",), PLAINTEXT)), {T0: 3}
    with ScriptedBroker({ListOffsetsRequest: ends({T0: 5, T1: 7})}) as broker:
        for questions in (first, first, {T0: 4}, {T0: 4, T1: -1}):
            assert set(asker.ask(broker.address, questions, 2, 5).ends) == set(questions)
    asked = [
        [(p.partition_index, p.current_leader_epoch) for t in r.topics for p in t.partitions]
        for r in broker.asked(ListOffsetsRequest)
    ]
    assert asked == [[(0, 3)], [(0, 3)], [(0, 4)], [(0, 4), (1, -1)]]


@pytest.mark.parametrize("code", [3, 6, 74, 75])
def test_partition_that_has_moved_is_counted_and_is_no_trouble(code: int) -> None:
    with ScriptedBroker({ListOffsetsRequest: ends({T0: 5}, {T1: code})}) as broker:
        answer = ask(broker.address, {T0: 1, T1: 1})
    assert (answer.ends, answer.moved, answer.problem) == ({T0: 5}, 1, "")


def test_a_missing_permission_is_named_with_its_remedy() -> None:
    with ScriptedBroker({ListOffsetsRequest: ends({}, {T0: 29, T1: 29})}) as broker:
        answer = ask(broker.address, {T0: 1, T1: 1})
    assert answer.ends == {}
    assert "the log ends of 2 partitions: grant the ACL Describe on Topic *" in answer.problem


def test_an_offline_log_directory_is_reported_and_others_count() -> None:
    with ScriptedBroker({ListOffsetsRequest: ends({T0: 5}, {T1: 56})}) as broker:
        answer = ask(broker.address, {T0: 1, T1: 1})
    assert answer.ends == {T0: 5}
    assert answer.problem.endswith("answered ListOffsets for 1 partitions with KAFKA_STORAGE_ERROR")


def test_an_end_below_zero_is_not_believed() -> None:
    with ScriptedBroker({ListOffsetsRequest: ends({T0: -1})}) as broker:
        assert ask(broker.address, {T0: 1}).ends == {}


@pytest.mark.parametrize("peer", [silent, dripping, hanging_up, web_server])
def test_a_peer_in_trouble_is_left_and_says_why(peer: Any) -> None:
    with ScriptedBroker(raw=peer) as broker:
        answer = ask(broker.address, {T0: 1}, timeout=0.1)
    assert answer.ends == {}
    assert broker.address in answer.problem


def test_a_broker_silent_half_way_still_gives_its_first_answers(leap: Callable[[float], None]) -> None:
    known = {TopicPartition("t", n): n for n in range(MOST_PARTITIONS + 1)}
    answers = [leap, lambda _: None]

    def once(request: Any) -> Any:
        answers.pop()(1000)
        return ends(known)(request)

    with ScriptedBroker({ListOffsetsRequest: once}) as broker:
        answer = ask(broker.address, dict.fromkeys(known, -1), timeout=200, longest=2000)
    assert len(answer.ends) == MOST_PARTITIONS
    assert "no answer in time" in answer.problem


def test_broker_that_always_answers_late_costs_longest_time_at_most(leap: Callable[[float], None]) -> None:
    known = {TopicPartition("t", n): n for n in range(8 * MOST_PARTITIONS)}
    noted, asked = ends({}), []

    def late(request: Any) -> Any:
        asked.append(request)
        leap(1000)
        return noted(request)

    with ScriptedBroker({ListOffsetsRequest: late}) as broker:
        answer = ask(broker.address, dict.fromkeys(known, -1), timeout=2000, longest=2500)
    assert len(asked) == 3, "of eight that would all be late"
    assert "no answer in time" in answer.problem


def test_our_own_work_on_questions_is_not_brokers_silence(
    monkeypatch: pytest.MonkeyPatch, leap: Callable[[float], None]
) -> None:
    encoded = log_ends._encoded

    def slowly(*arguments: Any) -> list[Any]:
        leap(1000)
        return list(encoded(*arguments))

    monkeypatch.setattr(log_ends, "_encoded", slowly)
    with ScriptedBroker({ListOffsetsRequest: ends({T0: 5})}) as broker:
        answer = ask(broker.address, {T0: 1}, timeout=200, longest=200)
    assert (answer.ends, answer.problem) == ({T0: 5}, "")


def test_a_broker_that_knows_no_leader_epochs_is_named() -> None:
    with ScriptedBroker({ApiVersionsRequest: versions({ListOffsetsRequest: (0, 3)})}) as broker:
        assert "offers ListOffsets 0 to 3, needed is 4 to 7" in ask(broker.address, {T0: 1}).problem


def test_an_unusable_certificate_file_says_nothing_of_the_broker() -> None:
    secure = Security(destinations=ANYWHERE, protocol="SSL", ca_file="absent.pem")  # type: ignore[arg-type]
    with ScriptedBroker() as broker, pytest.raises(Terminal, match=r"ca_file absent\.pem"):
        LogEnds(Connection((broker.address,), secure)).ask(broker.address, {T0: 1}, 1, 1)


def test_a_broker_that_lacks_the_request_answers_all_the_same() -> None:
    with ScriptedBroker({ApiVersionsRequest: versions({ListOffsetsRequest: (0, 3)})}) as broker:
        assert ask(broker.address, {}).problem == ""
