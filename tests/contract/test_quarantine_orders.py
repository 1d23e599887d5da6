"""The contract of quarantine orders: what an operator keeps is what agents read and what the next operator takes over.

One suite for the orders in memory, for Leases in an API in memory, and for Leases in a real API server.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pytest

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import LEASES, KubernetesClient, connect
from bellwether.adapters.kubernetes.objects.quarantine_orders import LeaseOrders, hold_order
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.quarantine.agent import HoldOrder
from bellwether.core.reasons import Reason
from bellwether.ports.kubernetes import QuarantineOrders
from testkit.kubernetes.memory_api import MemoryApi
from testkit.simulation.memory_site import MemoryOrderReader, MemoryOrderStore
from testkit.values.builders import after
from testkit.values.quarantine_inputs import ordered

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer

POLICY = "kafka/main"
ORDER = ordered(1, renewed_at=after(3))
RENEWED = replace(ORDER, renewed_at=after(6))
HELD = replace(RENEWED, held_at=after(7), reason=Reason.BROKER_HELD, message="held")
ENDED = replace(HELD, ended_at=after(60), reason=Reason.QUARANTINE_ENDED, message="its disk is fast again")


class Subject(Protocol):
    """Where orders are kept."""

    def operator(self) -> QuarantineOrders: ...

    def read(self, broker: int) -> HoldOrder | None: ...

    def delete(self, broker: int) -> None: ...

    def versions(self) -> dict[int, str]: ...


class InMemory:
    def __init__(self) -> None:
        self.store = MemoryOrderStore()

    def operator(self) -> QuarantineOrders:
        return self.store.operator()

    def read(self, broker: int) -> HoldOrder | None:
        return MemoryOrderReader(self.store, broker).read().command

    def delete(self, broker: int) -> None:
        self.store.delete(broker)

    def versions(self) -> dict[int, str]:
        return {broker: str(self.store.writes) for broker in self.store.orders}


class AsLeases:
    def __init__(self, api: KubernetesClient, namespace: str) -> None:
        self.api, self.namespace = api, namespace

    def operator(self) -> QuarantineOrders:
        return LeaseOrders(self.api, self.namespace, POLICY, str(uuid.uuid4()))

    def read(self, broker: int) -> HoldOrder | None:
        found = self.api.find(LEASES, self.namespace, object_names.quarantine_order("kafka", "main", broker))
        return hold_order(found, broker) if found is not None else None

    def delete(self, broker: int) -> None:
        self.api.delete(LEASES, self.namespace, object_names.quarantine_order("kafka", "main", broker))

    def versions(self) -> dict[int, str]:
        found = self.api.list(LEASES, self.namespace)
        return {
            int(one["metadata"]["labels"][object_names.BROKER_LABEL]): one["metadata"]["resourceVersion"]
            for one in found
        }


@pytest.fixture(
    params=["memory", "Leases in memory", pytest.param("Leases in a real API", marks=pytest.mark.apiserver)]
)
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    if request.param == "memory":
        yield InMemory()
    elif request.param == "Leases in memory":
        yield AsLeases(MemoryApi(), "ops")
    else:
        server: ApiServer = request.getfixturevalue("apiserver")
        yield AsLeases(connect(server.kubeconfig), server.create_namespace(f"orders-{uuid.uuid4().hex[:8]}"))


def test_where_no_broker_is_to_be_held_there_is_no_order_and_no_write(subject: Subject) -> None:
    operator = subject.operator()
    assert operator.take_over() == {}
    operator.keep({})
    assert subject.versions() == {}
    assert subject.read(1) is None


def test_agent_reads_what_operator_keeps_and_every_renewal_of_it(subject: Subject) -> None:
    operator = subject.operator()
    operator.keep({1: ORDER})
    assert subject.read(1) == HoldOrder(1, 1, after(3), 600.0, 12.0)
    assert subject.read(2) is None
    operator.keep({1: RENEWED})
    assert subject.read(1) == HoldOrder(1, 1, after(6), 600.0, 12.0)


def test_an_order_that_has_not_changed_is_not_written_again(subject: Subject) -> None:
    operator = subject.operator()
    for order in (ORDER, ENDED):
        operator.keep({1: order})
        before = subject.versions()
        operator.keep({1: order})
        operator.keep({1: replace(order)})
        assert subject.versions() == before


def test_an_order_that_has_ended_is_obeyed_no_more_and_is_remembered_until_it_is_dropped(subject: Subject) -> None:
    operator = subject.operator()
    operator.keep({1: HELD})
    operator.keep({1: ENDED})
    assert subject.read(1) is None
    assert subject.operator().take_over() == {1: ENDED}
    operator.keep({})
    assert subject.versions() == {}


@pytest.mark.parametrize("order", [ORDER, HELD, ENDED], ids=["ordered", "held", "ended"])
def test_the_next_operator_takes_over_every_order_as_it_was(subject: Subject, order: QuarantineOrder) -> None:
    subject.operator().keep({1: order, 12: ordered(12, 7)})
    taken = subject.operator().take_over()
    assert taken == {1: order, 12: ordered(12, 7)}


def test_the_next_operator_renews_and_drops_what_it_took_over(subject: Subject) -> None:
    subject.operator().keep({1: ORDER, 2: ENDED_TWO})
    later = subject.operator()
    later.take_over()
    later.keep({1: RENEWED})
    assert set(subject.versions()) == {1}
    assert subject.read(1) == HoldOrder(1, 1, after(6), 600.0, 12.0)


ENDED_TWO = replace(ENDED, broker=2)


def test_order_after_one_that_person_deleted_is_given_at_once(subject: Subject) -> None:
    operator = subject.operator()
    operator.keep({1: ORDER})
    subject.delete(1)
    another = ordered(1, 2)
    operator.keep({1: another})
    assert subject.read(1) == HoldOrder(1, 2, another.renewed_at, 600.0, 12.0)


def test_an_order_that_a_person_deletes_is_not_given_again_and_another_one_is(subject: Subject) -> None:
    operator = subject.operator()
    operator.keep({1: ORDER})
    subject.delete(1)
    for order in (RENEWED, HELD, ENDED):
        operator.keep({1: order})
        assert subject.read(1) is None
    another = ordered(1, 2)
    operator.keep({1: another})
    assert subject.read(1) == HoldOrder(1, 2, another.renewed_at, 600.0, 12.0)
