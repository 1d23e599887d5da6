"""The operator with SignalSources: it judges by those that exist, and a condition names those that do not."""

from __future__ import annotations

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES, SIGNAL_SOURCES
from bellwether.controllers.policy_controller import PolicyController
from bellwether.core.signals import Reading
from bellwether.ports.errors import Transient
from testkit.kubernetes import api_objects
from testkit.messages import assert_wording
from testkit.simulation.operator_fixture import MemoryOperator

NAMED = {"signalSources": [{"name": "prom"}]}


def test_missing_source_is_named_in_a_condition_until_it_exists(operator: MemoryOperator) -> None:
    operator.api.put(SIGNAL_SOURCES, api_objects.source("proms", **api_objects.prometheus(query="up")["spec"]))
    loop = operator.begin(2, detection=NAMED)
    status, reason, message = operator.condition("SourcesUsable")
    assert (status, reason) == ("False", "NoEvidence")
    assert_wording(message)
    operator.api.put(SIGNAL_SOURCES, api_objects.prometheus(query="up"))
    operator.step(loop, 1)
    assert "SourcesUsable" not in {c["type"] for c in operator.body()["status"]["conditions"]}


def test_changed_source_ends_the_wait_of_policies_naming_it(operator: MemoryOperator) -> None:
    loop, other = operator.make(detection=NAMED), operator.make("other")
    for one in (loop, other):
        operator.step(one)
    for one, name, ends in ((loop, "prom", True), (loop, "another", False), (other, "prom", False)):
        one.source_changed(name)
        assert one._wakeups._wanted.is_set() is ends
        one._wakeups._wanted.clear()


def test_rule_of_a_source_makes_a_broker_sick(operator: MemoryOperator) -> None:
    operator.api.put(SIGNAL_SOURCES, api_objects.prometheus(query="up"))
    loop = operator.make(detection=NAMED)
    operator.site.signals.say(2, Reading.FAILING, type="Prometheus", sources=["flush"])
    operator.step(loop, 2)
    verdict = operator.api.get(BROKER_HEALTHS, "default", "main-2")["status"]["verdict"]
    assert (verdict["state"], verdict["reason"]) == ("Sick", "SignalFailing")


def demoting_by_a_source(operator: MemoryOperator) -> PolicyController:
    operator.api.put(SIGNAL_SOURCES, api_objects.prometheus(query="up"))
    loop = operator.make(detection=NAMED)
    operator.site.signals.say(2, Reading.FAILING, type="Prometheus", sources=["flush"])
    operator.step(loop, 4)
    assert demoted(loop) == [2]
    operator.api.refuse("list", SIGNAL_SOURCES, Transient("the API server is overloaded"))
    return loop


def demoted(loop: PolicyController) -> list[int]:
    assert loop.record is not None
    return list(loop.record.demoted)


def test_sources_that_were_read_last_judge_while_none_can_be_read(operator: MemoryOperator) -> None:
    loop = demoting_by_a_source(operator)
    operator.step(loop, 5, seconds=100)
    assert demoted(loop) == [2]
    assert operator.condition("SourcesUsable")[:2] == ("False", "NoEvidence")
    assert_wording(operator.condition("SourcesUsable")[2])
    operator.site.signals.say(2, Reading.PASSING, type="Prometheus", sources=["flush"])
    operator.step(loop, 2)
    operator.step(loop, 70)
    assert demoted(loop) == []


def test_without_its_sources_a_new_process_moves_nothing(operator: MemoryOperator) -> None:
    demoting_by_a_source(operator).release()
    away = operator.site.cluster.snapshot().leaders()
    loop = operator.loop()
    operator.step(loop, 5, seconds=100)
    assert operator.condition()[:2] == ("False", "NoAnswer")
    assert operator.site.cluster.snapshot().leaders() == away
    operator.api.delete(POLICIES, "default", "main")
    operator.step(loop, 2)
    assert operator.api.find(POLICIES, "default", "main") is None
    assert operator.site.cluster.snapshot().leaders() == away
