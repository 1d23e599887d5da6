"""Leases that order holds: their form, whose they are, and what becomes of writes that fail, cross or get lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES
from bellwether.adapters.kubernetes.api_errors import Conflict
from bellwether.adapters.kubernetes.objects.quarantine_orders import (
    EPOCH,
    NUMBER,
    UNTIL,
    BrokerOrders,
    LeaseOrders,
    hold_order,
    order_of,
)
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.quarantine.agent import HoldOrder, OrderRead
from bellwether.core.signals import QUARANTINE_AGENT
from bellwether.ports.errors import Terminal, Transient
from bellwether.simulation.memory_world import START
from testkit.kubernetes.api_objects import entry, health
from testkit.kubernetes.memory_api import MemoryApi
from testkit.values.builders import after
from testkit.values.quarantine_inputs import ordered

ORDER = ordered(1, renewed_at=after(3))
NAME = "bellwether-quarantine-kafka.main-1"


def orders(api: MemoryApi, policy: str = "kafka/main", holder: str = "operator-a") -> LeaseOrders:
    return LeaseOrders(api, "ops", policy, holder)


def lease(api: MemoryApi) -> dict[str, Any]:
    return api.get(LEASES, "ops", NAME)


def test_lease_names_held_broker_limit_reason_and_holder(api: MemoryApi) -> None:
    orders(api).keep({1: ORDER})
    found = lease(api)
    assert found["metadata"]["labels"] == {
        "app.kubernetes.io/name": "bellwether",
        "app.kubernetes.io/component": "quarantine-order",
        "bellwether.dev/policy": "main",
        "bellwether.dev/broker-id": "1",
    }
    assert found["metadata"]["annotations"] == {
        "bellwether.dev/policy": "kafka/main",
        "bellwether.dev/epoch": "1",
        "bellwether.dev/order": "1",
        "bellwether.dev/hold-until": "2026-01-01T00:10:00.000000Z",
        "bellwether.dev/reason": "QuarantinePending",
        "bellwether.dev/message": "so it was",
    }
    assert found["spec"] == {
        "holderIdentity": "operator-a",
        "leaseDurationSeconds": 12,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:03.000000Z",
    }


def test_an_order_that_has_ended_has_no_holder(api: MemoryApi) -> None:
    orders(api).keep({1: replace(ORDER, ended_at=after(9))})
    assert lease(api)["spec"]["holderIdentity"] == ""


def test_orders_of_same_policy_name_in_other_namespace_stay(api: MemoryApi) -> None:
    orders(api, "a/main").keep({1: ORDER})
    theirs = orders(api, "b/main")
    assert theirs.take_over() == {}
    theirs.keep({})
    theirs.remove()
    assert orders(api, "a/main").take_over() == {1: ORDER}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b-c", 1), ("a-b", "c", 1)),
        (("a", "b", 11), ("a", "b-1", 1)),
        (("a", "b.c", 1), ("a", "b-c", 1)),
    ],
)
def test_no_two_brokers_share_a_name(one: tuple[str, str, int], other: tuple[str, str, int]) -> None:
    assert object_names.quarantine_order(*one) != object_names.quarantine_order(*other)


def test_the_longest_names_make_a_name_that_the_api_takes() -> None:
    assert len(object_names.quarantine_order("n" * 63, "p" * 253, 2**31 - 1)) <= 253


def test_what_cannot_be_understood_is_no_order_and_is_removed(api: MemoryApi) -> None:
    orders(api).keep({1: ORDER})
    api.merge(LEASES, "ops", NAME, {"metadata": {"annotations": {EPOCH: "x"}}})
    later = orders(api)
    assert later.take_over() == {}
    later.keep({})
    assert api.all(LEASES) == []


@pytest.mark.parametrize(
    "broken",
    [
        {"metadata": {"annotations": {EPOCH: None}}},
        {"metadata": {"annotations": {NUMBER: "one"}}},
        {"metadata": {"annotations": {UNTIL: "soon"}}},
        {"metadata": {"annotations": {UNTIL: "2026-01-01T00:00:00"}}},
        {"spec": {"renewTime": None}},
        {"spec": {"acquireTime": 5}},
    ],
)
def test_lease_that_is_no_order_is_named_and_never_obeyed(api: MemoryApi, broken: dict[str, Any]) -> None:
    orders(api).keep({1: ORDER})
    api.merge(LEASES, "ops", NAME, broken)
    with pytest.raises(Terminal, match=rf"Lease ops/{NAME} is no quarantine order .*: delete it"):
        order_of(lease(api), 1)
    with pytest.raises(Terminal, match="is no quarantine order"):
        hold_order(lease(api), 1)


def test_lease_without_duration_is_never_obeyed_for_any_time(api: MemoryApi) -> None:
    orders(api).keep({1: ORDER})
    api.merge(LEASES, "ops", NAME, {"spec": {"leaseDurationSeconds": None}})
    found = hold_order(lease(api), 1)
    assert found is not None
    assert found.expires_seconds == 0


def test_api_that_is_away_delays_write_and_fails_nothing(api: MemoryApi) -> None:
    kept = orders(api)
    api.away = True
    kept.keep({1: ORDER})
    api.away = False
    kept.keep({1: ORDER})
    assert orders(api).take_over() == {1: ORDER}
    api.away = True
    with pytest.raises(Transient):
        orders(api).take_over()


class Lossy(MemoryApi):
    """Writes are carried out; their answers are lost while ``lost`` is set."""

    lost = True

    def _keep(self, *arguments: Any) -> Any:
        written = super()._keep(*arguments)
        if self.lost:
            self.lost = False
            raise Transient("no answer")
        return written


@pytest.mark.parametrize("change", ["create", "renew", "remove"])
def test_lost_answer_to_write_is_repaired_by_later_reconcile(change: str) -> None:
    api = Lossy()
    api.lost = change == "create"
    kept, renewed = orders(api), replace(ORDER, renewed_at=after(6))
    if change != "create":
        kept.keep({1: ORDER})
        api.lost = True
    wanted = {} if change == "remove" else {1: renewed}
    for _ in range(3):
        kept.keep(wanted)
    assert orders(api).take_over() == wanted


def test_that_the_broker_froze_is_read_back(api: MemoryApi) -> None:
    kept = orders(api)
    kept.keep({1: replace(ORDER, freezes=True)})
    assert order_of(lease(api), 1).freezes
    kept.keep({1: ORDER})
    assert not order_of(lease(api), 1).freezes


def test_write_that_crosses_another_process_does_not_go_over_it(api: MemoryApi) -> None:
    older, newer = orders(api), orders(api, holder="operator-b")
    older.keep({1: ORDER})
    newer.take_over()
    ended = replace(ORDER, ended_at=after(9))
    newer.keep({1: ended})
    older.keep({1: replace(ORDER, renewed_at=after(10))})
    assert newer.take_over() == {1: ended}
    older.take_over()
    newer.keep({})
    older.keep({})  # what is gone already is no error
    assert api.all(LEASES) == []


def test_a_process_that_leads_no_more_writes_nothing(api: MemoryApi) -> None:
    left = [5.0]
    kept = LeaseOrders(api, "ops", "kafka/main", "operator-a", lambda: left[0])
    kept.keep({1: ORDER})
    left[0] = 0.0
    for orders_ in ({1: replace(ORDER, renewed_at=after(6))}, {}):
        kept.keep(orders_)
        assert orders(api).take_over() == {1: ORDER}


def test_order_whose_namespace_or_permission_is_missing_is_tried_again(api: MemoryApi) -> None:
    kept = orders(api)
    api.refuse("create", LEASES, Terminal("may not"))
    kept.keep({1: ORDER})
    api.refuse("create", LEASES, None)
    kept.keep({1: ORDER})
    assert orders(api).take_over() == {1: ORDER}


def test_removal_of_all_meets_no_version_but_its_own(api: MemoryApi) -> None:
    orders(api).keep({1: ORDER, 2: ordered(2)})
    api.refuse("delete", LEASES, Conflict("another resourceVersion"))
    with pytest.raises(Transient):
        orders(api).remove()
    api.refuse("delete", LEASES, None)
    orders(api).remove()
    assert api.all(LEASES) == []


FIRST = ordered(since=START, until=after(600), renewed_at=after(9))


def keep(api: MemoryApi, *orders: QuarantineOrder, policy: str = "default/main") -> None:
    LeaseOrders(api, "ops", policy, "operator-a").keep({order.broker: order for order in orders})


def put(api: MemoryApi, broker: int, **status: Any) -> None:
    body = health(broker)
    body["metadata"]["labels"] = {object_names.POLICY_LABEL: "main"}
    body["status"] = {**(body.get("status") or {}), **status}
    api.put(BROKER_HEALTHS, body)


def read_by(api: MemoryApi) -> BrokerOrders:
    return BrokerOrders(api, "ops", "default", "main", 1)


def test_an_order_is_read_as_it_was_written(api: MemoryApi) -> None:
    keep(api, FIRST)
    assert read_by(api).read() == OrderRead(HoldOrder(1, 1, after(9), 600.0, 12.0))


def test_no_lease_or_released_lease_means_no_order(api: MemoryApi) -> None:
    assert read_by(api).read() == OrderRead()
    keep(api, replace(FIRST, ended_at=after(10)))
    assert read_by(api).read() == OrderRead()


def test_orders_of_other_brokers_and_policies_are_not_its_own(api: MemoryApi) -> None:
    keep(api, ordered(2), ordered(11))
    keep(api, FIRST, policy="other/main")
    keep(api, FIRST, policy="default/other")
    assert read_by(api).read() == OrderRead()


def test_a_status_orders_nothing(api: MemoryApi) -> None:
    former = {"epoch": 1, "number": 1, "since": "2026-01-01T00:00:00Z", "until": "2026-01-01T01:00:00Z"}
    put(api, 1, quarantine={**former, "renewedAt": "2026-01-01T00:00:03Z", "reason": "QuarantinePending"})
    assert read_by(api).read() == OrderRead()


def test_another_broker_that_is_held_is_named(api: MemoryApi) -> None:
    keep(api, FIRST)
    put(api, 2, signals=[entry(type=QUARANTINE_AGENT, source="broker-2", reading="Failing")])
    assert read_by(api).read().others == 2
    put(api, 2, signals=[entry(type=QUARANTINE_AGENT, source="broker-2", reading="Passing")])
    assert read_by(api).read().others is None


def test_its_own_signal_is_not_taken_for_anothers(api: MemoryApi) -> None:
    keep(api, FIRST)
    put(api, 1, signals=[entry(type=QUARANTINE_AGENT, source="broker-1", reading="Failing")])
    assert read_by(api).read().others is None


def test_api_that_is_away_is_not_order_that_has_ended(api: MemoryApi) -> None:
    keep(api, FIRST)
    api.away = True
    with pytest.raises(Transient):
        read_by(api).read()
