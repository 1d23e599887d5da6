"""A quarantine agent's orders stand in its broker's BrokerHealth; what cannot be read is no order, and is told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS
from bellwether.api.v1alpha1.spec.quarantine_spec import QuarantineStatus
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.quarantine.agent import OrderRead, PauseOrder
from bellwether.core.settings.detection import QUARANTINE_AGENT
from bellwether.ports.errors import Terminal, Transient
from bellwether.quarantine.order_reader import BrokerOrders
from bellwether.testing.memory_world import START
from testkit.kubernetes.api_objects import entry, health
from testkit.kubernetes.memory_api import MemoryApi
from testkit.values.builders import after
from testkit.values.quarantine_inputs import ordered

ORDER = ordered(since=START, until=after(600), renewed_at=after(9))


def put(api: MemoryApi, broker: int, order: QuarantineOrder | None = None, **status: Any) -> None:
    body = health(broker)
    body["metadata"]["labels"] = {object_names.POLICY_LABEL: "main"}
    if order is not None:
        status["quarantine"] = QuarantineStatus.of(order).body()
    body["status"] = {**(body.get("status") or {}), **status}
    api.put(BROKER_HEALTHS, body)


def orders(api: MemoryApi) -> BrokerOrders:
    return BrokerOrders(api, "default", "main", 1)


@pytest.fixture
def api() -> MemoryApi:
    return MemoryApi()


def test_an_order_is_read_as_it_was_written(api: MemoryApi) -> None:
    put(api, 1, ORDER)
    assert orders(api).read() == OrderRead(PauseOrder(1, 1, after(9), 600.0))
    found = api.get(BROKER_HEALTHS, "default", "main-1")["status"]["quarantine"]
    assert QuarantineStatus.model_validate(found).to_core(1) == ORDER


def test_none_stands_where_it_has_ended_where_none_was_given_and_where_the_object_is_gone(api: MemoryApi) -> None:
    assert orders(api).read() == OrderRead()
    put(api, 1)
    assert orders(api).read() == OrderRead()
    put(api, 1, ordered(ended_at=after(10)))
    assert orders(api).read() == OrderRead()


def test_another_broker_that_is_paused_is_named(api: MemoryApi) -> None:
    put(api, 1, ORDER)
    put(api, 2, signals=[entry(type=QUARANTINE_AGENT, source="broker-2", reading="Failing")])
    assert orders(api).read().others == 2
    put(api, 2, signals=[entry(type=QUARANTINE_AGENT, source="broker-2", reading="Passing")])
    assert orders(api).read().others is None


def test_its_own_word_is_not_taken_for_anothers(api: MemoryApi) -> None:
    put(api, 1, ORDER, signals=[entry(type=QUARANTINE_AGENT, source="broker-1", reading="Failing")])
    assert orders(api).read().others is None


def test_what_cannot_be_understood_is_told(api: MemoryApi) -> None:
    put(api, 1, quarantine={"epoch": "x"})
    with pytest.raises(Terminal, match=r"status\.quarantine cannot be understood: .*epoch"):
        orders(api).read()


def test_an_api_that_is_away_is_not_an_order_that_has_ended(api: MemoryApi) -> None:
    put(api, 1, ORDER)
    api.away = True
    with pytest.raises(Transient):
        orders(api).read()


def test_fractions_of_a_second_are_not_kept() -> None:
    late = ordered(since=START + timedelta(microseconds=5))
    assert QuarantineStatus.of(late).to_core(1).since == START
