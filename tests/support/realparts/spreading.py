"""Waits until every broker knows of a change: the controller says yes before the brokers do.

In: brokers' addresses in the clear, whose client is the administrator. Out: nothing; or TooLate. Called by
``secured`` for permissions and passwords, which a client may meet at any broker a moment later.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection

from kafka.protocol.admin.acl import DescribeAclsRequest, DescribeAclsResponse
from kafka.protocol.admin.users import DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse

from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection
from bellwether.adapters.kafka.connection.connection_errors import BrokerConnectionError
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.kafka_connection import Connection
from testkit.values.security_settings import PLAINTEXT
from waiting import until

Permission = tuple[int, str, int]
"""Kafka's numbers: the resource's type, its name, the operation."""

_ANY, _MECHANISMS = 1, {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_SECONDS = 60.0


def permissions(address: str, user: str) -> set[Permission]:
    """What the broker at that address has heard that a user may. Raises Broken."""
    deadline = Deadline(10)
    with BrokerConnection.open(address, Connection((address,), PLAINTEXT), deadline) as dialogue:
        request = DescribeAclsRequest(
            version=dialogue.version(DescribeAclsRequest, 3),
            resource_type_filter=_ANY,
            resource_name_filter=None,
            pattern_type_filter=_ANY,
            principal_filter=f"User:{user}",
            host_filter=None,
            operation=_ANY,
            permission_type=_ANY,
        )
        answer = dialogue.ask(request, DescribeAclsResponse, deadline)
    return {(one.resource_type, one.resource_name, acl.operation) for one in answer.resources for acl in one.acls}


def iterations(address: str, user: str, mechanism: str) -> int | None:
    """How often the broker at that address hashes a user's password, as far as it has heard. Raises Broken."""
    deadline = Deadline(10)
    with BrokerConnection.open(address, Connection((address,), PLAINTEXT), deadline) as dialogue:
        name = DescribeUserScramCredentialsRequest.UserName(name=user)
        request = DescribeUserScramCredentialsRequest(version=0, users=[name])
        answer = dialogue.ask(request, DescribeUserScramCredentialsResponse, deadline)
    found = (info for one in answer.results for info in one.credential_infos or ())
    return next((info.iterations for info in found if info.mechanism == _MECHANISMS[mechanism]), None)


def everywhere(addresses: Collection[str], heard: Callable[[str], bool], what: str) -> None:
    """Wait until it is true of each of these brokers."""
    for address in addresses:
        until(
            functools.partial(heard, address), _SECONDS, f"{address} hears of {what}", ignoring=(BrokerConnectionError,)
        )
