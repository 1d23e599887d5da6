"""Broker addresses to probe, from the metadata of the internal and of the external listener.

In: two ways of listing the brokers, either of which may be missing. Out: a ``BrokerAddress`` for each broker. Called by
``reachability_probe``, whose ``Roster`` this is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog

from bellwether.core.model.cluster import Broker
from bellwether.kafka_connection import join_address
from bellwether.ports.errors import BellwetherError, Terminal, Transient
from bellwether.probes.reachability.broker_watch import BrokerAddress

Listing = Callable[[], Mapping[int, Broker]]


class TwoSides:
    """Lists the brokers through the internal listener, the external one, or both: a vantage may lack either path."""

    def __init__(self, internal: Listing | None, external: Listing | None) -> None:
        self._sides = {"internal": internal, "external": external}
        self._failing: set[str] = set()
        self._log = structlog.get_logger(__name__)

    def targets(self) -> Mapping[int, BrokerAddress]:
        """Every broker that either side lists. Raises the last side's error if none could be listed."""
        found: dict[str, Mapping[int, Broker]] = {}
        trouble: BellwetherError | None = None
        for side, listing in self._sides.items():
            if listing is None:
                continue
            try:
                found[side] = listing()
            except (Transient, Terminal) as error:
                trouble = error
                if side not in self._failing:
                    self._log.warning("broker_list_failed", side=side, error=str(error))
                self._failing.add(side)
            else:
                self._failing.discard(side)
        if not found:
            raise trouble or Terminal("no bootstrap address to list the brokers by: set kafka.bootstrapServers")
        inside, outside = found.get("internal", {}), found.get("external", {})
        return {b: _seen_by(inside.get(b), outside.get(b)) for b in sorted({*inside, *outside})}


def _seen_by(inside: Broker | None, outside: Broker | None) -> BrokerAddress:
    fenced = any(broker.fenced for broker in (inside, outside) if broker is not None)
    return BrokerAddress(_address(inside), _address(outside), fenced)


def _address(broker: Broker | None) -> str:
    return join_address(broker.host, broker.port) if broker is not None and broker.host and broker.port > 0 else ""
