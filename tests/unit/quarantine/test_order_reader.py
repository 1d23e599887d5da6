"""A quarantine agent's order is the Lease of its broker; what cannot be read is no order, and is reported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES
from bellwether.adapters.kubernetes.objects.quarantine_orders import EPOCH, LeaseOrders
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.quarantine.agent import HoldOrder, OrderRead
from bellwether.core.settings.detection import QUARANTINE_AGENT
from bellwether.ports.errors import Terminal, Transient
from bellwether.quarantine.order_reader import BrokerOrders
from bellwether.simulation.memory_world import START
from testkit.kubernetes.api_objects import entry, health
from testkit.kubernetes.memory_api import MemoryApi
from testkit.values.builders import after
from testkit.values.quarantine_inputs import ordered

ORDER = ordered(since=START, until=after(600), renewed_at=after(9))


def keep(api: MemoryApi, *orders: QuarantineOrder, policy: str = "default/main") -> None:
    LeaseOrders(api, "ops", policy, "operator-a").keep({order.broker: order for order in orders})


def put(api: MemoryApi, broker: int, **status: Any) -> None:
    body = health(broker)
    body["metadata"]["labels"] = {object_names.POLICY_LABEL: "main"}
    body["status"] = {**(body.get("status") or {}), **status}
    api.put(BROKER_HEALTHS, body)


def orders(api: MemoryApi) -> BrokerOrders:
    return BrokerOrders(api, "ops", "default", "main", 1)


def test_an_order_is_read_as_it_was_written(api: MemoryApi) -> None:
    keep(api, ORDER)
    assert orders(api).read() == OrderRead(HoldOrder(1, 1, after(9), 600.0, 12.0))


def test_there_is_none_without_a_lease_and_by_one_that_was_released(api: MemoryApi) -> None:
    assert orders(api).read() == OrderRead()
    keep(api, replace(ORDER, ended_at=after(10)))
    assert orders(api).read() == OrderRead()


def test_the_orders_of_other_brokers_and_other_policies_are_not_its_own(api: MemoryApi) -> None:
    keep(api, ordered(2), ordered(11))
    keep(api, ORDER, policy="other/main")
    keep(api, ORDER, policy="default/other")
    assert orders(api).read() == OrderRead()


def test_a_status_orders_nothing(api: MemoryApi) -> None:
    former = {"epoch": 1, "number": 1, "since": "2026-01-01T00:00:00Z", "until": "2026-01-01T01:00:00Z"}
    put(api, 1, quarantine={**former, "renewedAt": "2026-01-01T00:00:03Z", "reason": "QuarantinePending"})
    assert orders(api).read() == OrderRead()


def test_another_broker_that_is_held_is_named(api: MemoryApi) -> None:
    keep(api, ORDER)
    put(api, 2, signals=[entry(type=QUARANTINE_AGENT, source="broker-2", reading="Failing")])
    assert orders(api).read().others == 2
    put(api, 2, signals=[entry(type=QUARANTINE_AGENT, source="broker-2", reading="Passing")])
    assert orders(api).read().others is None


def test_its_own_signal_is_not_taken_for_anothers(api: MemoryApi) -> None:
    keep(api, ORDER)
    put(api, 1, signals=[entry(type=QUARANTINE_AGENT, source="broker-1", reading="Failing")])
    assert orders(api).read().others is None


def test_a_lease_that_cannot_be_understood_is_reported(api: MemoryApi) -> None:
    keep(api, ORDER)
    name = object_names.quarantine_order("default", "main", 1)
    api.merge(LEASES, "ops", name, {"metadata": {"annotations": {EPOCH: "x"}}})
    with pytest.raises(Terminal, match=rf"Lease ops/{name} is no quarantine order"):
        orders(api).read()


def test_an_api_that_is_away_is_not_an_order_that_has_ended(api: MemoryApi) -> None:
    keep(api, ORDER)
    api.away = True
    with pytest.raises(Transient):
        orders(api).read()
