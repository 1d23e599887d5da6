"""Broker ids and addresses of a cluster, without partitions, for the reachability probe.

In: DescribeCluster (KIP-700; with fenced brokers where the cluster lists them, KIP-1073). Out: addresses by broker
id, those of the listener that was asked. Called by ``bellwether probe reachability``.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka.protocol.admin.cluster import DescribeClusterRequest, DescribeClusterResponse

from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.connection.response_decoding import MOST_BROKERS
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.adapters.process_limits import ProcessSum
from bellwether.core.model.cluster import Broker
from bellwether.kafka_connection import Connection

_MOST_BROKERS_OF_PROCESS = 10 * MOST_BROKERS
"""Of all directories of a process; a prober has two of a cluster, one for each listener."""
_brokers_held = ProcessSum("brokers")


class BrokerDirectory:
    """The brokers of one cluster, seen from one listener."""

    def __init__(self, connection: Connection) -> None:
        self._nodes = BrokerPool(connection)

    def brokers(self) -> Mapping[int, Broker]:
        """Every broker that the cluster names, by id. Raises Transient or Terminal."""
        found = self._nodes.read(_describe)
        _brokers_held.hold(self, len(found), _MOST_BROKERS_OF_PROCESS)
        self._nodes.learn(found.values())
        return found


def _describe(dialogue: BrokerConnection, deadline: Deadline) -> dict[int, Broker]:
    version = dialogue.require(DescribeClusterRequest, 2)
    request = (
        DescribeClusterRequest(version=2, endpoint_type=1, include_fenced_brokers=True)
        if version == 2
        else DescribeClusterRequest(version=version)
    )
    answer = dialogue.ask(request, DescribeClusterResponse, deadline)
    dialogue.check(answer)
    dialogue.check_brokers(len(answer.brokers))
    return {
        b.broker_id: Broker(b.broker_id, b.rack, b.host, b.port, fenced=bool(version >= 2 and b.is_fenced))
        for b in sorted(answer.brokers, key=lambda broker: broker.broker_id)
    }
