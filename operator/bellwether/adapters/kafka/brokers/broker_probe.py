"""Probe one broker at one address: does it serve clients there. Used by the reachability probe.

In: an address as the load balancer offers it, and the id of the broker that should answer. Out: how far the question
came, in how many seconds. The answer must come from that very broker: a describe of its own configuration is refused by
every other one ("Unexpected broker id").
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import Any

from kafka.protocol.admin.configs import DescribeConfigsRequest, DescribeConfigsResponse

from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection, PreparedRequest
from bellwether.adapters.kafka.connection.connection_errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    NONE,
    BrokerConnectionError,
    Stage,
    error_name,
)
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.core.model.broker_identity import ADVERTISED_LISTENERS, LISTENERS, advertised_listeners
from bellwether.core.signals import UnreachableCause
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Transient, Unauthenticated
from bellwether.ports.kafka import ProbeAnswer

_BROKER_RESOURCE = 4
_EXPECTED = re.compile(r"expected ([0-9]{1,10})\b")
_MOST_BROKERS = 4096


class BrokerProbe:
    """Asks brokers, each time on a fresh connection to exactly the address given. Safe to share between threads.

    That a broker does not believe who we are counts against it only while others do: they have taken the same
    credentials within ``credit_seconds``. Else it is most likely the credentials that are at fault, as while they are
    renewed; that shall not outlast the time in which Kafka fences a dead broker.
    """

    def __init__(self, connection: Connection, credit_seconds: float = 5.0) -> None:
        self._connection = connection
        self._credit = credit_seconds
        self._taken_at = float("-inf")

    def ask(self, address: str, broker_id: int, timeout_seconds: float, padding: int = 0) -> ProbeAnswer:
        """One request, ``padding`` bytes larger than needed, finished within ``timeout_seconds`` in every case.

        Raises Terminal or Transient only for failures that are no evidence about the broker: invalid credentials, files
        of certificates that cannot be used, no free file descriptor, a name service that fails. ValueError for an
        address that is not host:port.
        """
        started = time.monotonic()
        deadline = Deadline(timeout_seconds)
        try:
            with BrokerConnection.open(address, self._connection, deadline) as dialogue:
                self._taken_at = time.monotonic()
                result = _describe(dialogue, broker_id, deadline, padding)
                started += min(dialogue.throttled_seconds, time.monotonic() - started)  # our quota
        except BrokerConnectionError as broken:
            if broken.refused and time.monotonic() - self._taken_at > self._credit:
                raise Unauthenticated(str(broken)) from broken
            if broken.no_evidence:
                raise Transient(str(broken)) from broken
            seconds = time.monotonic() - started
            return ProbeAnswer(False, seconds, broken.stage, str(broken), cause=broken.cause, counted=broken.outcome)
        seconds = time.monotonic() - started
        if result is None or result.error_code == CLUSTER_AUTHORIZATION_FAILED:
            message = f"{address}: a broker answered, which one is not known: grant the ACL DescribeConfigs on Cluster"
            return ProbeAnswer(True, seconds, Stage.REQUEST, message, weaker=True)
        if result.error_code == INVALID_REQUEST:
            found = _EXPECTED.search(result.error_message or "")
            message = f"{address}: another broker than {broker_id} answered{f': broker {found[1]}' if found else ''}"
            return ProbeAnswer(False, seconds, Stage.WRONG_BROKER, message, cause=UnreachableCause.WRONG_BROKER)
        if result.error_code != NONE:
            message = f"{address}: answered DescribeConfigs with {error_name(result.error_code)}"
            return ProbeAnswer(False, seconds, Stage.REQUEST, message)
        return ProbeAnswer(
            True, seconds, Stage.REQUEST, advertised=advertised_listeners({c.name: c.value for c in result.configs})
        )


def _describe(dialogue: BrokerConnection, broker_id: int, deadline: Deadline, padding: int) -> Any | None:
    """The broker's answer about its own configuration; ``None`` where it does not know the request."""
    version = dialogue.version(DescribeConfigsRequest, 4)
    if version is None or version < 1:
        return None
    answer = dialogue.ask_again(_which_addresses(version, broker_id, dialogue.client_id, padding), deadline)
    if len(answer.results) != 1:
        raise BrokerConnectionError(Stage.REQUEST, dialogue.address, "its answer to DescribeConfigs names no broker")
    return answer.results[0]


@lru_cache(_MOST_BROKERS)
def _which_addresses(version: int, broker_id: int, client_id: str, padding: int = 0) -> PreparedRequest:
    # A broker leaves out keys that it does not know.
    filler = ["x" * padding] if padding else []
    request = DescribeConfigsRequest(
        version=version,
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=_BROKER_RESOURCE,
                resource_name=str(broker_id),
                configuration_keys=[ADVERTISED_LISTENERS, LISTENERS, *filler],
            )
        ],
    )
    return PreparedRequest(request, DescribeConfigsResponse, client_id, answers=2)
