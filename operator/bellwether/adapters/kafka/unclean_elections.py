"""Unclean leader election of one partition, by a person's explicit command (``ports.kafka.UncleanElections``).

In: the name of a partition whose loss a person has accepted. Out: Kafka's result. The controller elects the first live
replica of the order, and only while there is no leader. Separate from the mover, which every reconcile has, so that
only this command can use it.
"""

from __future__ import annotations

from kafka.protocol.admin.topics import ElectionType, ElectLeadersRequest, ElectLeadersResponse

from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.connection.connection_errors import CLUSTER_AUTHORIZATION_FAILED, error_name, from_code
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.adapters.kafka.leader_mover import required
from bellwether.core.model.cluster import TopicPartition
from bellwether.ports.kafka import Outcome

_ACL = "Alter on Cluster"


class KafkaUnclean:
    """Sends one request, once, within the limits of its ``BrokerPool``."""

    def __init__(self, nodes: BrokerPool) -> None:
        self._nodes = nodes

    def elect(self, name: TopicPartition) -> Outcome:
        """ElectLeaders, unclean, of exactly this partition. Raises Transient, or Terminal when a person must act."""

        def ask(dialogue: BrokerConnection, deadline: Deadline) -> Outcome:
            version = required(dialogue, ElectLeadersRequest, 2, 1)
            request = ElectLeadersRequest(
                version=version,
                election_type=int(ElectionType.UNCLEAN),
                topic_partitions=[
                    ElectLeadersRequest.TopicPartitions(topic=name.topic, partitions=[name.partition]),
                ],
                timeout_ms=max(1, int(deadline.left * 1000)),
            )
            answer = dialogue.ask(request, ElectLeadersResponse, deadline)
            said = {
                TopicPartition(result.topic, p.partition_id): (p.error_code, p.error_message)
                for result in answer.replica_election_results
                for p in result.partition_result
            }
            silence = (-1, f"{dialogue.address}'s answer does not mention this partition")
            code, message = (answer.error_code, None) if answer.error_code else said.get(name, silence)
            if answer.error_code or code == CLUSTER_AUTHORIZATION_FAILED:
                raise from_code(code, message, dialogue.address, "ElectLeaders", _ACL)
            return Outcome(error_name(code), message or "")

        return self._nodes.send_once(ask)
