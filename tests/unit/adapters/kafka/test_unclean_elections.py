"""What an unclean election asks of the controller, and what its answers are read as."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kafka.protocol.admin.topics import ElectLeadersRequest, ElectLeadersResponse
from kafka.protocol.metadata import ApiVersionsRequest

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.unclean_elections import KafkaUnclean
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal, Transient, Unauthorized
from bellwether.ports.kafka import Outcome
from testkit.kafka.scripted_broker import ScriptedBroker, versions
from testkit.values.builders import name

PATIENT = Limits(opening_seconds=300, finding_seconds=300, request_seconds=300, read_seconds=900)
UNCLEAN = 1


def told(code: int = 0, message: str | None = None, *, whole: int = 0, partition: int = 0) -> Callable[[Any], Any]:
    kind = ElectLeadersResponse.ReplicaElectionResult
    return lambda _: ElectLeadersResponse(
        throttle_time_ms=0,
        error_code=whole,
        replica_election_results=[
            kind(
                topic="orders",
                partition_result=[kind.PartitionResult(partition_id=partition, error_code=code, error_message=message)],
            )
        ],
    )


def elect(answer: Callable[[Any], Any], known: Any = None, limits: Limits = PATIENT) -> tuple[Outcome, list[Any]]:
    with ScriptedBroker({ElectLeadersRequest: answer, ApiVersionsRequest: known or versions()}) as broker:
        outcome = KafkaUnclean(BrokerPool(Connection((broker.address,)), limits)).elect(name())
        return outcome, broker.asked(ElectLeadersRequest)


def test_exactly_the_named_partition_is_asked_for_once():
    outcome, (asked,) = elect(told())
    assert outcome == Outcome()
    assert asked.election_type == UNCLEAN
    assert [(t.topic, t.partitions) for t in asked.topic_partitions] == [("orders", [0])]
    assert asked.timeout_ms > 0


@pytest.mark.parametrize(("code", "error"), [(84, "ELECTION_NOT_NEEDED"), (83, "ELIGIBLE_LEADERS_NOT_AVAILABLE")])
def test_kafkas_word_on_the_partition_is_returned(code: int, error: str):
    assert elect(told(code, "why"))[0] == Outcome(error, "why")


@pytest.mark.parametrize("answer", [told(31), told(whole=31)], ids=["of the partition", "of the whole"])
def test_a_missing_acl_is_named(answer: Callable[[Any], Any]):
    with pytest.raises(Unauthorized, match="Alter on Cluster"):
        elect(answer)


def test_silence_about_the_partition_is_no_success():
    assert elect(told(partition=7))[0].error == "UNKNOWN_SERVER_ERROR"


def test_an_answer_that_does_not_come_may_have_been_carried_out(leap: Callable[[float], None]):
    def late(request: Any) -> Any:
        leap(1000)
        return told()(request)

    with pytest.raises(Transient, match="may have been carried out"):
        elect(late)


def test_a_broker_that_knows_only_preferred_elections_is_too_old():
    with pytest.raises(Terminal, match="offers ElectLeaders 0 to 0, needed is 1 to 2"):
        elect(told(), versions({ElectLeadersRequest: (0, 0)}))
