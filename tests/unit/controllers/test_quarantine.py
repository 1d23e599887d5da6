"""Quarantine around the reconcile: its Lease, condition and events, how soon the next one comes, who takes over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, POLICIES
from bellwether.adapters.kubernetes.objects.quarantine_orders import COMPONENT, NUMBER
from bellwether.api.v1alpha1.base_model import InvalidObject
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers.policy_controller import PolicyController
from bellwether.controllers.reporting.events import news
from bellwether.core.model.quarantine_order import RENEW_SECONDS, QuarantineOrder
from bellwether.core.model.refusals import BrokerHold
from bellwether.core.quarantine.hold_decision import QuarantineDecisions
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.reporting.requeue import Requeue
from bellwether.core.settings.detection import Detection
from bellwether.core.settings.policy import Mode, Policy, QuarantineMode
from bellwether.core.signals import QUARANTINE_AGENT, Reading, SignalType
from bellwether.ports.errors import Terminal
from bellwether.simulation.memory_kafka import MemoryFaultTolerance
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording
from testkit.simulation.operator_fixture import LEASES_IN, MemoryOperator
from testkit.values.builders import after, demoted, record, said
from testkit.values.quarantine_inputs import agent, opted_in, ordered

ENFORCE = Policy(name="main", mode=Mode.ENFORCE)
UNDO = record(None, demoted())


def report(*orders: QuarantineOrder, not_held: Mapping[int, BrokerHold] | None = None) -> Report:
    return said(policy=ENFORCE, quarantines=QuarantineDecisions({c.broker: c for c in orders}, not_held or {}))


def condition(found: Report) -> tuple[bool | None, str] | None:
    noted = [c for c in found.brokers[0].conditions if c.type == "Quarantined"]
    return (noted[0].status, str(noted[0].reason)) if noted else None


HELD = ordered(held_at=after(9), reason=Reason.BROKER_HELD)
ENDED = replace(HELD, ended_at=after(90), reason=Reason.QUARANTINE_ENDED)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(report(), None, id="nothing to say"),
        pytest.param(report(ordered()), (False, "QuarantinePending"), id="ordered"),
        pytest.param(report(HELD), (True, "BrokerHeld"), id="held"),
        pytest.param(report(ENDED), (False, "QuarantineEnded"), id="ended lately"),
        pytest.param(
            report(not_held={1: BrokerHold(1, Reason.AGENT_UNAVAILABLE, "no agent")}),
            (False, "AgentUnavailable"),
            id="refused",
        ),
        pytest.param(
            report(ENDED, not_held={1: BrokerHold(1, Reason.QUARANTINE_PENDING, "peace")}),
            (False, "QuarantinePending"),
            id="refused after an end",
        ),
    ],
)  # fmt: skip
def test_the_condition_gives_the_state_of_quarantine(found: Report, expected: object):
    assert condition(found) == expected


def noted(before: Report | None, now: Report) -> list[tuple[str, bool]]:
    return [(str(n.reason), n.warning) for n in news(before, now)]


def test_an_order_its_obedience_and_its_end_are_events_and_renewals_are_none():
    assert noted(report(), report(ordered())) == [("QuarantinePending", True)]
    assert noted(report(ordered()), report(HELD)) == [("BrokerHeld", True)]
    assert noted(report(HELD), report(replace(HELD, renewed_at=after(400)))) == []
    assert noted(report(HELD), report(ENDED)) == [("QuarantineEnded", False)]
    lost = replace(ENDED, reason=Reason.ANOTHER_BROKER_UNHEALTHY)
    assert noted(report(HELD), report(lost)) == [("AnotherBrokerUnhealthy", True)]
    assert noted(None, report(ENDED)) == [], "after a start what is over is no news"
    assert noted(None, report(HELD)) == [("BrokerHeld", True)]
    assert noted(report(ENDED), report()) == [], "that it is forgotten is none either"


@pytest.mark.parametrize(
    ("order", "took", "seconds"),
    [
        pytest.param(HELD, 0.05, 1.0, id="every second"),
        pytest.param(HELD, 60.0, RENEW_SECONDS, id="on a large cluster soon enough to renew the order"),
        pytest.param(ENDED, 0.05, 5.0, id="no sooner than ever once it is over"),
    ],
)
def test_while_a_broker_is_held_the_next_reconcile_comes_soon(order: QuarantineOrder, took: float, seconds: float):
    assert Requeue().after(report(order), ENFORCE, UNDO, took) == seconds


def test_a_agents_word_wakes_the_loop():
    assert Detection().stale_after(QUARANTINE_AGENT, "broker-1") is not None


@pytest.fixture
def operator() -> Iterator[MemoryOperator]:
    """Broker 1's disk is slow; a prober and a quarantine agent report next to every broker."""
    made = MemoryOperator.well()
    made.margins = MemoryFaultTolerance(made.site.cluster)
    made.margins.trailing.add(1)
    for broker in made.site.cluster.brokers:
        reading = Reading.FAILING if broker == 1 else Reading.PASSING
        made.site.signals.say(broker, reading, type=SignalType.STORAGE_LATENCY, sources=[f"broker-{broker}"])
        made.site.signals.put(agent(broker))
    yield made
    made.close()


QUARANTINE = {"mode": "Enabled"}


def orders_of(operator: MemoryOperator) -> dict[str, str]:
    """Holder of every Lease that orders a hold, by name."""
    labels = {object_names.COMPONENT_LABEL: COMPONENT}
    found = operator.api.list(LEASES, LEASES_IN, labels)
    return {one["metadata"]["name"]: one["spec"]["holderIdentity"] for one in found}


def ordered_by(operator: MemoryOperator) -> PolicyController:
    """Its loop, up to the order; the agent confirms it."""
    loop = operator.begin(8, quarantine=QUARANTINE)
    assert orders_of(operator) == {ORDER: "operator-a"}
    operator.site.signals.put(agent(1, Reading.FAILING, 1))
    operator.step(loop, 2)
    return loop


ORDER = "bellwether-quarantine-default.main-1"


def forget_quarantines(operator: MemoryOperator) -> None:
    """Status shows no quarantine any more."""
    for found in operator.api.list(BROKER_HEALTHS, "default"):
        left = [c for c in found["status"]["conditions"] if c["type"] != "Quarantined"]
        operator.api.merge(
            BROKER_HEALTHS, "default", found["metadata"]["name"], {"status": {"conditions": left}}, sub="status"
        )


def quarantined(operator: MemoryOperator) -> tuple[str, str]:
    found = operator.api.get(BROKER_HEALTHS, "default", "main-1")["status"]["conditions"]
    return next((c["status"], c["reason"]) for c in found if c["type"] == "Quarantined")


def test_an_order_is_a_lease_that_is_renewed_while_the_broker_is_to_stay_held(operator: MemoryOperator):
    loop = ordered_by(operator)
    assert quarantined(operator) == ("True", "BrokerHeld")
    before = operator.api.get(LEASES, LEASES_IN, ORDER)["spec"]["renewTime"]
    writes = len(operator.api.writes)
    operator.step(loop, 12)
    assert operator.api.get(LEASES, LEASES_IN, ORDER)["spec"]["renewTime"] > before
    # The operator's own Lease is renewed by a thread, by the true time that this takes.
    own = f"replace leases {object_names.cluster_lease(operator.site.cluster_id)}"
    renewals = [write for write in operator.api.writes[writes:] if write != own]
    assert set(renewals) == {f"replace leases {ORDER}"}, "nothing else is written while nothing changes"
    assert len(renewals) == 12 / RENEW_SECONDS


def test_the_status_holds_no_order(operator: MemoryOperator):
    ordered_by(operator)
    assert "quarantine" not in operator.api.get(BROKER_HEALTHS, "default", "main-1")["status"]


def test_a_new_operator_continues_the_order_that_it_finds(operator: MemoryOperator):
    ordered_by(operator).release()
    next_one = MemoryOperator(operator.site, operator.api, "operator-b", margins=operator.margins)
    loop = next_one.loop()
    next_one.step(loop, 5)
    assert orders_of(operator) == {ORDER: "operator-b"}
    assert operator.api.get(LEASES, LEASES_IN, ORDER)["metadata"]["annotations"][NUMBER] == "1"
    assert quarantined(operator) == ("True", "BrokerHeld")
    next_one.close()


@pytest.mark.parametrize("change", [{"mode": "Observe"}, {"suspend": True}, {"quarantine": {"mode": "Off"}}])
def test_a_policy_that_no_longer_acts_releases_the_lease_and_later_removes_it(
    operator: MemoryOperator, change: dict[str, Any]
):
    loop = ordered_by(operator)
    operator.change(**change)
    operator.step(loop)
    assert orders_of(operator) == {ORDER: ""}
    assert quarantined(operator) == ("False", "QuarantineEnded")
    operator.site.signals.put(agent(1, Reading.PASSING, 1))
    operator.step(loop, 3, seconds=300)
    assert orders_of(operator) == {}


@pytest.mark.parametrize("spec", [{}, {"suspend": True}], ids=["in force", "suspended"])
def test_with_its_policy_an_order_is_gone(operator: MemoryOperator, spec: dict[str, Any]):
    loop = ordered_by(operator)
    operator.change(**spec, deletionTimeoutSeconds=0)
    operator.api.delete(POLICIES, "default", "main")
    operator.step(loop, 8, seconds=30)
    assert operator.api.find(POLICIES, "default", "main") is None
    assert orders_of(operator) == {}


def test_an_operator_that_cannot_read_orders_says_so_and_moves_nothing_meanwhile(operator: MemoryOperator):
    loop = operator.make(quarantine=QUARANTINE)
    operator.api.refuse("list", LEASES, Terminal("lacks the verb 'list' on leases"))
    operator.step(loop, 3)
    assert operator.condition()[0] == "False"
    assert_wording(operator.condition()[2])
    operator.api.refuse("list", LEASES, None)
    operator.step(loop, 8)
    assert orders_of(operator) == {ORDER: "operator-a"}


@pytest.mark.parametrize(("spec", "namespaces"), [({}, set()), ({"quarantine": QUARANTINE}, {LEASES_IN})])
def test_orders_are_listed_only_where_quarantine_is_enabled(
    operator: MemoryOperator, monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any], namespaces: set[str]
):
    real, listed = MemoryApi.list, set()

    def noted(self: MemoryApi, resource: Any, namespace: str, labels: Any = None) -> Any:
        if resource is LEASES and (labels or {}).get(object_names.COMPONENT_LABEL) == COMPONENT:
            listed.add(namespace)
        return real(self, resource, namespace, labels)

    monkeypatch.setattr(MemoryApi, "list", noted)
    operator.step(operator.make(**spec), 3)
    assert listed == namespaces


def test_orders_are_listed_when_quarantine_is_enabled_later(operator: MemoryOperator):
    ordered_by(operator).release()
    operator.change(quarantine={"mode": "Off"})
    forget_quarantines(operator)
    next_one = MemoryOperator(operator.site, operator.api, "operator-b", margins=operator.margins)
    loop = next_one.loop()
    next_one.step(loop, 2)
    assert orders_of(operator) == {ORDER: "operator-a"}
    operator.change(quarantine=QUARANTINE)
    next_one.step(loop, 2)
    assert orders_of(operator) == {ORDER: "operator-b"}
    assert operator.api.get(LEASES, LEASES_IN, ORDER)["metadata"]["annotations"][NUMBER] == "1"
    next_one.close()


def test_an_order_that_status_shows_is_released_by_the_next_operator_though_quarantine_is_off(
    operator: MemoryOperator,
):
    ordered_by(operator).release()
    operator.change(quarantine={"mode": "Off"})
    next_one = MemoryOperator(operator.site, operator.api, "operator-b", margins=operator.margins)
    next_one.step(next_one.loop())
    assert orders_of(operator) == {ORDER: ""}
    next_one.close()


def test_without_quarantine_there_is_no_lease_and_no_write(operator: MemoryOperator):
    loop = operator.begin(10)
    writes = len(operator.api.writes)
    operator.step(loop, 10)
    assert operator.api.writes[writes:] == []
    assert orders_of(operator) == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [("mode", "On"), ("limitSeconds", 29), ("spareIsrMembers", 11), ("spareIsrMembers", "1")],
)
def test_bad_input_names_the_field(field: str, value: object):
    with pytest.raises(InvalidObject, match=rf"spec\.quarantine\.{field}"):
        LeadershipPolicy.read(api_objects.policy(quarantine={field: value}))


def test_what_is_asked_for_reaches_the_core_and_nothing_is_off():
    asked = {"mode": "Enabled", "limitSeconds": 600, "spareIsrMembers": 0}
    assert LeadershipPolicy.read(api_objects.policy(quarantine=asked)).policy().quarantine == opted_in().quarantine
    assert LeadershipPolicy.read(api_objects.policy()).policy().quarantine.mode is QuarantineMode.OFF
