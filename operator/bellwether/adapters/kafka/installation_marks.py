"""Find out which installations of Bellwether manage a Kafka cluster, by marks that all of them see in Kafka.

In: the name of this installation, unique over all Kubernetes clusters. Out: a ``Standing``. A mark is a client quota
(KIP-546) of a client id that no client has: Kafka keeps quotas in its metadata, every broker returns all of them, and
they limit no other client. Its value is a place in line; the lowest manages the cluster. Why quotas: decision 0116.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from kafka.protocol.admin.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.connection.connection_errors import NONE, from_code
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient

LOOK_SECONDS = 30.0
"""Interval of reads: two installations that mark one cluster in the same moment find each other after this time."""

ENTITY, KEY = "client-id", "controller_mutation_rate"
_MARK = re.compile(r"bellwether\.[a-z0-9-]{1,63}\.[0-9a-f-]{36}")
_SPECIFIED = 2  # any name of that type


def mark(namespace: str, uid: str) -> str:
    """The mark of the installation whose operator is in that namespace of that uid."""
    return f"bellwether.{namespace}.{uid}"


@dataclass(frozen=True, slots=True)
class Standing:
    """Marks of other installations, and whether ``first``, this one, manages the cluster. ``problem``: unknown."""

    first: bool = True
    others: tuple[str, ...] = ()
    problem: str = ""


class InstallationMarks:
    """The marks of one Kafka cluster. ``nodes`` may be replaced. ``name`` may raise Transient or Terminal."""

    def __init__(self, nodes: BrokerPool, name: Callable[[], str], clock: Clock) -> None:
        self.nodes = nodes
        self._name = name
        self._clock = clock
        self._look_at = float("-inf")
        self._seen: tuple[bool, Standing] | None = None

    def standing(self, *, claims: bool) -> Standing:
        """This installation's standing; it has a mark where it ``claims`` the cluster, and else none.

        While Kafka does not answer, or refuses, what was seen last is right. Raises Transient where nothing was, or
        where the cluster was not claimed then.
        """
        seen, now = self._seen, self._clock.monotonic()
        if seen is not None and seen[0] is claims and now < self._look_at:
            return seen[1]
        try:
            found = self._look(claims)
        except Transient:
            if seen is None or (claims and not seen[0]):
                raise
            return seen[1]
        except Terminal as error:
            claimed, known = seen or (claims, Standing())
            first = known.first if claimed is claims else not (claims and known.others)
            found = replace(known, first=first, problem=str(error))
        self._seen, self._look_at = (claims, found), now + LOOK_SECONDS
        return found

    def withdraw(self) -> None:
        """Remove the mark: this installation does not manage the cluster any more. Raises Transient or Terminal."""
        name = self._name()
        if name in self.places():
            self.write(name, None)

    def _look(self, claims: bool) -> Standing:
        name, places = self._name(), self.places()
        if claims and name not in places:
            last = max(places.values(), default=0) + 1
            try:
                self.write(name, last)
            except Terminal as error:
                if not places:
                    raise
                return Standing(False, tuple(sorted(places)), str(error))
            places = {name: last, **self.places()}
        elif not claims and name in places:
            self.write(name, None)
        others = tuple(sorted(places.keys() - {name}, key=lambda one: (places[one], one)))
        return Standing(not (claims and others) or (places[name], name) < (places[others[0]], others[0]), others)

    def places(self) -> Mapping[str, int]:
        """The place of each mark. Raises Transient or Terminal."""

        def ask(dialogue: BrokerConnection, deadline: Deadline) -> Mapping[str, int]:
            version = dialogue.version(DescribeClientQuotasRequest, 1)
            if version is None:  # no failure of this broker, which is asked for other things
                raise Terminal(f"{dialogue.address} does not offer DescribeClientQuotas")
            any_client = DescribeClientQuotasRequest.ComponentData(
                entity_type=ENTITY, match_type=_SPECIFIED, match=None
            )
            request = DescribeClientQuotasRequest(version=version, components=[any_client], strict=True)
            answer = dialogue.ask(request, DescribeClientQuotasResponse, deadline)
            dialogue.check(answer, "DescribeConfigs on Cluster")
            return {
                name: int(value.value)
                for entry in answer.entries or ()
                for name in [str(entry.entity[0].entity_name) if len(entry.entity) == 1 else ""]
                for value in entry.values
                if _MARK.fullmatch(name) and value.key == KEY
            }

        return self.nodes.read(ask)

    def write(self, name: str, place: int | None) -> None:
        """Set a mark; None removes it. Raises Transient or Terminal."""
        data = AlterClientQuotasRequest.EntryData
        entry = data(
            entity=[data.EntityData(entity_type=ENTITY, entity_name=name)],
            ops=[data.OpData(key=KEY, value=float(place or 0), remove=place is None)],
        )

        def ask(dialogue: BrokerConnection, deadline: Deadline) -> None:
            version = dialogue.require(AlterClientQuotasRequest, 1)
            request = AlterClientQuotasRequest(version=version, entries=[entry], validate_only=False)
            for said in dialogue.ask(request, AlterClientQuotasResponse, deadline).entries:
                if said.error_code != NONE:
                    what, acl = "AlterClientQuotas", "AlterConfigs on Cluster"
                    raise from_code(said.error_code, dialogue.address, what, acl)

        self.nodes.send_once(ask)
