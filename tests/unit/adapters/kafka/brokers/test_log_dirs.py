"""How large a broker's copies are: what is asked for, what is believed, and how long silence takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from kafka.protocol.admin.cluster import DescribeLogDirsRequest, DescribeLogDirsResponse
from kafka.protocol.metadata import ApiVersionsRequest

from bellwether.adapters.kafka.brokers.log_dirs import MOST_PARTITIONS, LogDirs
from bellwether.core.model.cluster import TopicPartition
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Connection, Security
from bellwether.ports.errors import Terminal
from bellwether.ports.kafka import Sizes
from testkit.kafka.scripted_broker import ScriptedBroker, dripping, hanging_up, silent, versions, web_server
from testkit.values.security_settings import PLAINTEXT

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
ASKER = LogDirs(Connection(("unknown.invalid:9092",), PLAINTEXT))
OFFLINE = 56


def sizes(
    known: Mapping[TopicPartition, int],
    *,
    error: int = 0,
    offline: bool = False,
    future: Mapping[TopicPartition, int] | None = None,
) -> Callable[[Any], Any]:
    """A broker with these copies in one directory, as well as ``future`` ones on their way to a second one."""
    result = DescribeLogDirsResponse.DescribeLogDirsResult
    topic = result.DescribeLogDirsTopic
    partition = topic.DescribeLogDirsPartition

    def directory(name: str, copies: Mapping[TopicPartition, int], request: Any, coming: bool = False) -> Any:
        wanted = {TopicPartition(t.topic, p) for t in request.topics for p in t.partitions} & set(copies)
        return result(
            error_code=0,
            log_dir=name,
            total_bytes=-1,
            usable_bytes=-1,
            topics=[
                topic(
                    name=one.topic,
                    partitions=[
                        partition(
                            partition_index=one.partition,
                            partition_size=copies[one],
                            offset_lag=0,
                            is_future_key=coming,
                        )
                    ],
                )
                for one in sorted(wanted)
            ],
        )

    def answer(request: Any) -> Any:
        found = [directory("/data/1", known, request)]
        if future is not None:
            found.append(directory("/data/2", future, request, coming=True))
        if offline:
            found.append(result(error_code=OFFLINE, log_dir="/data/3", topics=[], total_bytes=-1, usable_bytes=-1))
        return DescribeLogDirsResponse(throttle_time_ms=0, error_code=error, results=[] if error else found)

    return answer


def ask(address: str, *partitions: TopicPartition, timeout: float = 300.0, longest: float = 900.0) -> Sizes:
    return ASKER.ask(address, partitions, timeout, longest)


def test_partitions_that_are_asked_for_are_asked_for_by_topic() -> None:
    with ScriptedBroker({DescribeLogDirsRequest: sizes({T0: 5, T1: 7, U0: 0})}) as broker:
        answer = ask(broker.address, U0, T1, T0)
    assert (answer.sizes, answer.problem) == ({T0: 5, T1: 7, U0: 0}, "")
    (request,) = broker.asked(DescribeLogDirsRequest)
    assert [(t.topic, list(t.partitions)) for t in request.topics] == [("t", [0, 1]), ("u", [0])]


def test_a_partition_that_the_broker_does_not_hold_is_absent() -> None:
    with ScriptedBroker({DescribeLogDirsRequest: sizes({T0: 5})}) as broker:
        assert ask(broker.address, T0, T1) == Sizes({T0: 5})


def test_many_partitions_are_asked_in_bounded_requests_on_one_connection() -> None:
    known = {TopicPartition(f"topic-{n % 3}", n): n for n in range(MOST_PARTITIONS + 1)}
    with ScriptedBroker({DescribeLogDirsRequest: sizes(known)}) as broker:
        assert ask(broker.address, *known).sizes == known
    counts = [sum(len(t.partitions) for t in r.topics) for r in broker.asked(DescribeLogDirsRequest)]
    assert counts == [MOST_PARTITIONS, 1]
    assert len(broker.asked(ApiVersionsRequest)) == 1


def test_copy_on_its_way_to_another_directory_is_not_counted() -> None:
    with ScriptedBroker({DescribeLogDirsRequest: sizes({T0: 5}, future={T0: 3, T1: 9})}) as broker:
        assert ask(broker.address, T0, T1).sizes == {T0: 5}


def test_an_offline_directory_is_named_and_the_others_count() -> None:
    with ScriptedBroker({DescribeLogDirsRequest: sizes({T0: 5}, offline=True)}) as broker:
        answer = ask(broker.address, T0, T1)
    assert answer.sizes == {T0: 5}
    assert answer.problem.endswith("sizes in /data/3 are not available: KAFKA_STORAGE_ERROR")


def test_a_size_below_zero_is_not_believed() -> None:
    with ScriptedBroker({DescribeLogDirsRequest: sizes({T0: -1})}) as broker:
        assert ask(broker.address, T0).sizes == {}


@pytest.mark.parametrize("known", [4, 2])
def test_missing_permission_is_named_with_remedy_however_broker_reports_it(known: int) -> None:
    def refusing(request: Any) -> Any:
        return DescribeLogDirsResponse(throttle_time_ms=0, error_code=31 if known >= 3 else 0, results=[])

    limits = {ApiVersionsRequest: versions({DescribeLogDirsRequest: (1, known)})}
    with ScriptedBroker({**limits, DescribeLogDirsRequest: refusing}) as broker:
        answer = ask(broker.address, T0)
    assert answer.sizes == {}
    assert "grant the ACL Describe on Cluster" in answer.problem


def test_any_other_refusal_is_reported_by_its_name() -> None:
    with ScriptedBroker({DescribeLogDirsRequest: sizes({}, error=42)}) as broker:
        assert ask(broker.address, T0).problem.endswith("answered DescribeLogDirs with INVALID_REQUEST")


def test_a_broker_that_does_not_know_the_question_is_named() -> None:
    with ScriptedBroker({ApiVersionsRequest: versions({DescribeLogDirsRequest: (7, 9)})}) as broker:
        assert "offers DescribeLogDirs 7 to 9, needed is 0 to 4" in ask(broker.address, T0).problem


@pytest.mark.parametrize("peer", [silent, dripping, hanging_up, web_server])
def test_a_peer_in_trouble_is_left_and_says_why(peer: Any) -> None:
    with ScriptedBroker(raw=peer) as broker:
        answer = ask(broker.address, T0, timeout=0.1)
    assert answer.sizes == {}
    assert broker.address in answer.problem


def test_a_broker_silent_half_way_still_gives_its_first_answers(leap: Callable[[float], None]) -> None:
    known = {TopicPartition("t", n): n for n in range(MOST_PARTITIONS + 1)}
    answers = [leap, lambda _: None]

    def once(request: Any) -> Any:
        answers.pop()(1000)
        return sizes(known)(request)

    with ScriptedBroker({DescribeLogDirsRequest: once}) as broker:
        answer = ask(broker.address, *known, timeout=200)
    assert len(answer.sizes) == MOST_PARTITIONS
    assert "no answer in time" in answer.problem


def test_nothing_is_asked_where_nothing_is_wanted() -> None:
    with ScriptedBroker({DescribeLogDirsRequest: sizes({})}) as broker:
        assert ask(broker.address) == Sizes()
        assert broker.asked(DescribeLogDirsRequest) == []


def test_an_unusable_certificate_file_says_nothing_of_the_broker() -> None:
    secure = Security(destinations=ANYWHERE, protocol="SSL", ca_file="absent.pem")  # type: ignore[arg-type]
    with ScriptedBroker() as broker, pytest.raises(Terminal, match=r"ca_file absent\.pem"):
        LogDirs(Connection((broker.address,), secure)).ask(broker.address, [T0], 1, 1)
