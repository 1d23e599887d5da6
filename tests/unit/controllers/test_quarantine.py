"""Quarantine around the turn: what stands in status, what is an event, how soon the next turn comes, who takes over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS
from bellwether.api.v1alpha1.base_model import InvalidObject
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers.reporting import status
from bellwether.controllers.reporting.events import news
from bellwether.controllers.reporting.status_reporter import StatusReporter
from bellwether.controllers.requeue import Requeue
from bellwether.core.model.quarantine_order import RENEW_SECONDS, QuarantineOrder
from bellwether.core.model.refusals import BrokerHold
from bellwether.core.quarantine.pause_decision import QuarantineDecisions
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.settings.detection import QUARANTINE_AGENT, Detection
from bellwether.core.settings.policy import Mode, Policy, QuarantineMode
from bellwether.gather import Memory
from bellwether.quarantine.order_reader import command_of
from bellwether.telemetry.metrics.operator_metrics import OperatorMetrics
from bellwether.testing.memory_world import ManualClock
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.values.builders import after, demoted, record, said
from testkit.values.quarantine_inputs import opted_in, ordered

ENFORCE = Policy(name="main", mode=Mode.ENFORCE)
UNDO = record(None, demoted())


def report(*orders: QuarantineOrder, held: Mapping[int, BrokerHold] | None = None) -> Report:
    return said(policy=ENFORCE, quarantines=QuarantineDecisions({c.broker: c for c in orders}, held or {}))


def condition(found: Report) -> tuple[bool | None, str] | None:
    told = [c for c in found.brokers[0].conditions if c.type == "Quarantined"]
    return (told[0].status, str(told[0].reason)) if told else None


PAUSED = ordered(paused_at=after(9), reason=Reason.PROCESS_PAUSED)
ENDED = replace(PAUSED, ended_at=after(90), reason=Reason.DISK_RECOVERED)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(report(), None, id="nothing to say"),
        pytest.param(report(ordered()), (False, "QuarantineOrdered"), id="ordered"),
        pytest.param(report(PAUSED), (True, "ProcessPaused"), id="paused"),
        pytest.param(report(ENDED), (False, "DiskRecovered"), id="ended lately"),
        pytest.param(
            report(held={1: BrokerHold(1, Reason.AGENT_MISSING, "nobody")}), (False, "AgentMissing"), id="refused"
        ),
        pytest.param(
            report(ENDED, held={1: BrokerHold(1, Reason.QUARANTINE_DELAYED, "peace")}),
            (False, "QuarantineDelayed"),
            id="refused after an end",
        ),
    ],
)  # fmt: skip
def test_the_condition_tells_how_it_stands(found: Report, expected: object):
    assert condition(found) == expected


def body(found: Report) -> dict[str, Any]:
    return status.broker_status(found.brokers[0], 1, {}, after(0))


def test_status_holds_the_order_as_the_agent_reads_it_and_nothing_where_there_is_none():
    assert "quarantine" not in body(report())
    command = command_of({"status": body(report(PAUSED))})
    assert command is not None
    assert (command.name, command.renewal, command.limit_seconds) == ((1, 1), after(300), 600.0)
    assert command_of({"status": body(report(ENDED))}) is None


def told(before: Report | None, now: Report) -> list[tuple[str, bool]]:
    return [(str(n.reason), n.warning) for n in news(before, now)]


def test_an_order_its_obedience_and_its_end_are_events_and_renewals_are_none():
    assert told(report(), report(ordered())) == [("QuarantineOrdered", True)]
    assert told(report(ordered()), report(PAUSED)) == [("ProcessPaused", True)]
    assert told(report(PAUSED), report(replace(PAUSED, renewed_at=after(400)))) == []
    assert told(report(PAUSED), report(ENDED)) == [("DiskRecovered", False)]
    lost = replace(ENDED, reason=Reason.ANOTHER_BROKER_UNHEALTHY)
    assert told(report(PAUSED), report(lost)) == [("AnotherBrokerUnhealthy", True)]
    assert told(None, report(ENDED)) == [], "after a start what is over is no news"
    assert told(None, report(PAUSED)) == [("ProcessPaused", True)]
    assert told(report(ENDED), report()) == [], "that it is forgotten is none either"


@pytest.mark.parametrize(
    ("order", "took", "seconds"),
    [
        pytest.param(PAUSED, 0.05, 1.0, id="every second"),
        pytest.param(PAUSED, 60.0, RENEW_SECONDS, id="on a large cluster soon enough to renew the order"),
        pytest.param(ENDED, 0.05, 5.0, id="no sooner than ever once it is over"),
    ],
)
def test_while_a_broker_is_paused_the_next_reconcile_comes_soon(order: QuarantineOrder, took: float, seconds: float):
    assert Requeue().after(report(order), ENFORCE, UNDO, took) == seconds


def test_a_agents_word_wakes_the_loop():
    assert Detection().stale_after(QUARANTINE_AGENT, "broker-1") is not None


def test_a_new_operator_knows_the_orders_that_stand_in_status():
    api, clock = MemoryApi(), ManualClock()
    reporter = StatusReporter(api, clock, "pod-1", OperatorMetrics())
    policy = LeadershipPolicy.read(api_objects.policy())
    reporter.publish(policy, report(PAUSED), Memory(record()), 0.1)
    known = reporter.orders([*api.all(BROKER_HEALTHS), {"kind": "BrokerHealth", "metadata": {"name": "broken"}}])
    assert known == {1: PAUSED}


def test_an_order_is_written_once_a_renewal_and_not_in_between():
    api, clock = MemoryApi(), ManualClock()
    reporter = StatusReporter(api, clock, "pod-1", OperatorMetrics())
    policy = LeadershipPolicy.read(api_objects.policy())
    for found in (report(PAUSED), report(PAUSED), report(PAUSED), report(replace(PAUSED, renewed_at=after(303)))):
        before = len(api.writes)
        reporter.publish(policy, found, Memory(record()), 0.1)
        written = [w for w in api.writes[before:] if "brokerhealths" in w]
        assert bool(written) == (before == 0 or found.brokers[0].quarantine_order != PAUSED), written


@pytest.mark.parametrize(
    ("field", "value"),
    [("mode", "On"), ("limitSeconds", 29), ("afterSeconds", -1), ("spareIsrMembers", 11), ("spareIsrMembers", "1")],
)
def test_bad_input_names_the_field(field: str, value: object):
    with pytest.raises(InvalidObject, match=rf"spec\.quarantine\.{field}"):
        LeadershipPolicy.read(api_objects.policy(quarantine={field: value}))


def test_what_is_asked_for_reaches_the_core_and_nothing_is_off():
    asked = {"mode": "Enabled", "afterSeconds": 30, "limitSeconds": 600, "spareIsrMembers": 1}
    assert LeadershipPolicy.read(api_objects.policy(quarantine=asked)).policy().quarantine == opted_in().quarantine
    assert LeadershipPolicy.read(api_objects.policy()).policy().quarantine.mode is QuarantineMode.OFF
