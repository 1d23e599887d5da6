"""The end of a policy, in every order in which it may come: nothing is lost, and it does end."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, POLICIES
from bellwether.controllers.cluster_connection import PolicyRefused
from bellwether.controllers.policy_controller import PolicyController
from bellwether.controllers.policy_deletion import (
    DONE,
    RETRY_SECONDS,
    STAYS_AWAY,
    UNINSTALL,
    UninstallRequest,
    requested_uninstall,
)
from bellwether.controllers.policy_finalizer import ABANDON, FINALIZER
from bellwether.core.reasons import Reason
from bellwether.core.reporting.requeue import Requeue
from bellwether.core.signals import Reading
from bellwether.ports.errors import Terminal, Transient
from testkit.simulation.operator_fixture import MemoryOperator

HOME = [(1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2), (2, 1, 3), (3, 2, 1)]


def demoting(operator: MemoryOperator, **spec: Any) -> PolicyController:
    """A policy under which broker 1 is demoted."""
    loop = operator.begin(**spec)
    operator.site.signals.say(1, Reading.FAILING)
    operator.step(loop, 2)
    assert operator.site.cluster.snapshot().leaders()[1] == 0
    return loop


def heal(operator: MemoryOperator) -> None:
    operator.site.signals.say(1, Reading.PASSING)


def delete(operator: MemoryOperator, at: str = "2026-01-01T00:00:10Z") -> None:
    operator.api.delete(POLICIES, "default", "main")
    operator.api.objects["leadershippolicies", "default", "main"]["metadata"]["deletionTimestamp"] = at


def end(operator: MemoryOperator, loop: PolicyController, most: int = 60) -> None:
    """Steps until the loop says that it is done. Raises AssertionError when it never does."""
    for _ in range(most):
        if operator.step(loop) == DONE:
            return
    raise AssertionError(f"not done after {most} steps: {operator.body()}")


def gone(operator: MemoryOperator) -> bool:
    return operator.api.find(POLICIES, "default", "main") is None


def orders(operator: MemoryOperator) -> list[tuple[int, ...]]:
    return [p.replicas for p in operator.site.cluster.partitions()]


def exports(operator: MemoryOperator) -> list[dict[str, Any]]:
    return [json.loads(c["data"]["record.json"]) for c in operator.api.all(CONFIG_MAPS) if "-export-" in name_of(c)]


def name_of(found: dict[str, Any]) -> str:
    return str(found["metadata"]["name"])


def records(operator: MemoryOperator) -> list[str]:
    names = [name_of(c) for c in operator.api.all(CONFIG_MAPS)]
    return [name for name in names if name.startswith("bellwether-undo-")]


def test_a_policy_that_displaced_nothing_goes_at_once(operator: MemoryOperator):
    loop = operator.begin()
    delete(operator)
    end(operator, loop, most=1)
    assert (gone(operator), records(operator), exports(operator)) == (True, [], [])


def test_a_well_brokers_leaders_are_given_back_before_the_policy_goes(operator: MemoryOperator):
    loop = demoting(operator)
    heal(operator)
    delete(operator)
    end(operator, loop)
    assert orders(operator) == HOME
    assert operator.site.cluster.snapshot().leaders()[1] == 2
    assert (gone(operator), records(operator), exports(operator)) == (True, [], [])


def test_restoring_does_not_wait_for_the_stabilization(operator: MemoryOperator):
    loop = demoting(operator, promotion={"stabilizationSeconds": 86400})
    heal(operator)
    delete(operator)
    end(operator, loop)
    assert orders(operator) == HOME


def test_a_sick_broker_is_left_demoted_and_its_baselines_are_exported(operator: MemoryOperator):
    loop = demoting(operator)
    away = orders(operator)
    delete(operator)
    end(operator, loop)
    assert (orders(operator), gone(operator), records(operator)) == (away, True, [])
    (export,) = exports(operator)
    assert "[1, 2, 3]" in json.dumps(export)
    assert "demoted" in json.dumps(export)


@pytest.mark.parametrize(
    "leave",
    [
        pytest.param(lambda o: o.change(deletionPolicy="Abandon"), id="deletionPolicy is Abandon"),
        pytest.param(lambda o: o.change(mode="Observe"), id="mode is Observe"),
        pytest.param(lambda o: o.change(suspend=True), id="suspended"),
        pytest.param(
            lambda o: o.api.merge(POLICIES, "default", "main", {"metadata": {"annotations": {ABANDON: "true"}}}),
            id="the annotation asks for it",
        ),
        pytest.param(lambda o: o.change(demotion={"maxBrokers": 0}), id="it cannot be understood any more"),
    ],
)
def test_what_is_to_be_left_is_left_at_once_and_exported(
    operator: MemoryOperator, leave: Callable[[MemoryOperator], object]
):
    loop = demoting(operator)
    heal(operator)
    away, before = orders(operator), operator.site.cluster.mutations
    leave(operator)
    delete(operator)
    end(operator, loop, most=1)
    assert (orders(operator), operator.site.cluster.mutations) == (away, before)
    assert (gone(operator), records(operator), len(exports(operator))) == (True, [], 1)


def test_an_annotation_of_another_word_asks_for_nothing(operator: MemoryOperator):
    loop = demoting(operator)
    heal(operator)
    operator.api.merge(POLICIES, "default", "main", {"metadata": {"annotations": {ABANDON: "false"}}})
    delete(operator)
    end(operator, loop)
    assert orders(operator) == HOME


@pytest.mark.parametrize("trouble", [Transient("no answer"), Terminal("wrong credentials")], ids=["away", "refused"])
def test_with_kafka_gone_the_deletion_waits_its_time_and_then_ends_with_an_export(
    operator: MemoryOperator, trouble: Exception
):
    loop = demoting(operator, deletionTimeoutSeconds=30)
    loop.release()
    operator.connector.trouble = trouble  # type: ignore[assignment]
    delete(operator, at=operator.site.clock.now().isoformat())
    assert operator.step(loop, 30) == RETRY_SECONDS
    assert not gone(operator)
    assert operator.step(loop, 2) == DONE
    assert (gone(operator), records(operator), len(exports(operator))) == (True, [], 1)


def test_a_broker_that_stays_sick_delays_deletion_until_the_timeout(operator: MemoryOperator):
    loop = demoting(operator, deletionTimeoutSeconds=30)
    heal(operator)
    # No broker can lead in its place, nor it: the election back is never possible.
    for p in operator.site.cluster.partitions():
        if p.leader != 1:
            operator.site.cluster.shrink_isr(p.name, 1)
    delete(operator, at=operator.site.clock.now().isoformat())
    end(operator, loop, most=40)
    assert gone(operator)


@pytest.mark.parametrize(
    ("reason", "ends"),
    [
        pytest.param(Reason.NOT_LEADER, False, id="another process holds the Lease: it does it"),
        pytest.param(Reason.CLUSTER_CLAIMED, True, id="another policy has the cluster"),
        pytest.param(Reason.CLUSTER_CHANGED, True, id="the bootstrap leads to another cluster"),
    ],
)
def test_who_may_not_act_leaves_it_or_ends_it(operator: MemoryOperator, reason: Reason, ends: bool):
    loop = demoting(operator)
    loop.release()
    operator.connector.trouble = PolicyRefused(reason, "so it is")
    delete(operator)
    assert operator.step(loop) == (DONE if ends else RETRY_SECONDS)
    assert gone(operator) is ends
    assert len(exports(operator)) == ends


def test_a_policy_whose_finalizer_is_gone_is_none_of_ours_any_more(operator: MemoryOperator):
    loop = operator.make()
    delete_at = {"deletionTimestamp": "2026-01-01T00:00:10Z", "finalizers": ["another.example/finalizer"]}
    operator.api.objects["leadershippolicies", "default", "main"]["metadata"].update(delete_at)
    operator.api.writes.clear()
    assert operator.step(loop) == DONE
    assert operator.api.writes == []


def test_another_finalizer_is_left_to_its_owner(operator: MemoryOperator):
    loop = operator.begin()
    operator.api.objects["leadershippolicies", "default", "main"]["metadata"]["finalizers"].append("another.example/f")
    delete(operator)
    end(operator, loop)
    assert operator.body()["metadata"]["finalizers"] == ["another.example/f"]


@pytest.mark.parametrize("verb", ["create", "merge", "delete"])
def test_an_api_outage_at_the_end_keeps_the_record(operator: MemoryOperator, verb: str):
    loop = demoting(operator)
    delete(operator)
    operator.api.refuse(verb, CONFIG_MAPS, Transient("away"))
    assert operator.step(loop, 3) == RETRY_SECONDS
    assert FINALIZER in operator.body()["metadata"]["finalizers"]
    assert records(operator)
    operator.api.refuse(verb, CONFIG_MAPS, None)
    end(operator, loop)
    assert (gone(operator), records(operator), len(exports(operator))) == (True, [], 1)


def test_a_new_process_finishes_what_a_killed_one_had_begun(operator: MemoryOperator):
    loop = demoting(operator)
    heal(operator)
    delete(operator)
    operator.step(loop)
    loop.release()
    successor = MemoryOperator(operator.site, operator.api, holder="operator-b")
    try:
        end(successor, successor.loop(), most=200)  # until no broker can hold a reorder of the killed process
    finally:
        successor.close()
    assert (gone(operator), orders(operator)) == (True, HOME)


def test_retries_of_a_deletion_are_spread_too(operator: MemoryOperator):
    loop = operator.begin(3)
    loop._requeue = Requeue(jitter=lambda seconds: seconds / 4)
    operator.connector.trouble = Transient("no broker answers")
    loop.release()
    delete(operator)
    assert operator.step(loop) == RETRY_SECONDS / 4


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def body(value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {UNINSTALL: value} if value is not None else {}}}


@pytest.mark.parametrize("restore", [True, False])
def test_what_is_written_is_read_back(restore: bool) -> None:
    asked = UninstallRequest(restore, NOW + timedelta(seconds=60))
    assert requested_uninstall(body(str(asked)), NOW) == asked


def test_the_words_say_what_is_asked_for() -> None:
    assert str(UninstallRequest(True, NOW)) == "Restore until 2026-01-01T00:00:00Z"


def test_it_counts_for_a_while_after_its_end_only() -> None:
    asked = UninstallRequest(True, NOW)
    assert requested_uninstall(body(str(asked)), NOW + STAYS_AWAY - timedelta(seconds=1)) == asked
    assert requested_uninstall(body(str(asked)), NOW + STAYS_AWAY) is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "true",
        "Restore",
        "Restore until tomorrow",
        "Restore until 2026-01-01T00:01:00",
        "Remove until 2026-01-01T00:01:00Z",
    ],
)
def test_any_other_annotation_value_requests_nothing(value: str | None) -> None:
    assert requested_uninstall(body(value), NOW) is None


def test_an_object_without_annotations_asks_for_nothing() -> None:
    assert requested_uninstall({"metadata": {}}, NOW) is None
