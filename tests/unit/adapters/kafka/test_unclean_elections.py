"""An unclean election asks for one partition; the rest is as in preferred ones (``test_leader_mover``)."""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin.topics import ElectLeadersRequest, ElectLeadersResponse

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.unclean_elections import KafkaUnclean
from bellwether.kafka_connection import Connection
from bellwether.ports.kafka import Outcome
from testkit.kafka.scripted_broker import ScriptedBroker
from testkit.values.builders import name

PATIENT = Limits(opening_seconds=20, finding_seconds=20, request_seconds=20)


def told(_: Any) -> ElectLeadersResponse:
    kind = ElectLeadersResponse.ReplicaElectionResult
    result = kind.PartitionResult(partition_id=0, error_code=83, error_message="why")
    results = [kind(topic="orders", partition_result=[result])]
    return ElectLeadersResponse(throttle_time_ms=0, error_code=0, replica_election_results=results)


def test_exactly_the_named_partition_is_asked_for_once() -> None:
    with ScriptedBroker({ElectLeadersRequest: told}) as broker:
        outcome = KafkaUnclean(BrokerPool(Connection((broker.address,)), PATIENT)).elect(name())
        (asked,) = broker.asked(ElectLeadersRequest)
    assert outcome == Outcome("ELIGIBLE_LEADERS_NOT_AVAILABLE", "why")
    assert asked.election_type == 1
    assert [(t.topic, t.partitions) for t in asked.topic_partitions] == [("orders", [0])]
    assert asked.timeout_ms > 0
