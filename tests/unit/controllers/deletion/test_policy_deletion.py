"""The end of a policy, in every order in which it may come: nothing is lost, and it does end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, POLICIES
from bellwether.controllers.cluster_connection import PolicyRefused
from bellwether.controllers.deletion.finalizer import ABANDON, FINALIZER
from bellwether.controllers.deletion.policy_deletion import DONE, RETRY_SECONDS
from bellwether.controllers.policy_controller import PolicyController
from bellwether.core.reasons import Reason
from bellwether.core.signals import Reading
from bellwether.ports.errors import Terminal, Transient
from testkit.offices import Office

HOME = [(1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2), (2, 1, 3), (3, 2, 1)]


def demoting(office: Office, **spec: Any) -> PolicyController:
    """A policy under which broker 1 is demoted."""
    loop = office.make(**spec)
    office.step(loop)
    office.site.signals.say(1, Reading.FAILING)
    office.step(loop, 2)
    assert office.site.cluster.snapshot().leaders()[1] == 0
    return loop


def heal(office: Office) -> None:
    office.site.signals.say(1, Reading.PASSING)


def delete(office: Office, at: str = "2026-01-01T00:00:10Z") -> None:
    office.api.delete(POLICIES, "default", "main")
    office.api.objects["leadershippolicies", "default", "main"]["metadata"]["deletionTimestamp"] = at


def end(office: Office, loop: PolicyController, most: int = 60) -> None:
    """Steps until the loop says that it is done. Raises AssertionError when it never does."""
    for _ in range(most):
        if office.step(loop) == DONE:
            return
    raise AssertionError(f"not done after {most} steps: {office.body()}")


def gone(office: Office) -> bool:
    return office.api.find(POLICIES, "default", "main") is None


def orders(office: Office) -> list[tuple[int, ...]]:
    return [p.replicas for p in office.site.cluster.partitions()]


def exports(office: Office) -> list[dict[str, Any]]:
    return [json.loads(c["data"]["record.json"]) for c in office.api.all(CONFIG_MAPS) if "-export-" in name_of(c)]


def name_of(found: dict[str, Any]) -> str:
    return str(found["metadata"]["name"])


def records(office: Office) -> list[str]:
    names = [name_of(c) for c in office.api.all(CONFIG_MAPS)]
    return [name for name in names if name.startswith("bellwether-undo-") and "-export-" not in name]


def test_a_policy_that_displaced_nothing_goes_at_once(office: Office):
    loop = office.make()
    office.step(loop)
    delete(office)
    end(office, loop, most=1)
    assert (gone(office), records(office), exports(office)) == (True, [], [])


def test_a_well_brokers_leaders_are_given_back_before_the_policy_goes(office: Office):
    loop = demoting(office)
    heal(office)
    delete(office)
    end(office, loop)
    assert orders(office) == HOME
    assert office.site.cluster.snapshot().leaders()[1] == 2
    assert (gone(office), records(office), exports(office)) == (True, [], [])


def test_restoring_does_not_wait_for_the_stabilization(office: Office):
    loop = demoting(office, promotion={"stabilizationSeconds": 86400})
    heal(office)
    delete(office)
    end(office, loop)
    assert orders(office) == HOME


def test_a_sick_broker_is_left_demoted_and_its_baselines_are_exported(office: Office):
    loop = demoting(office)
    away = orders(office)
    delete(office)
    end(office, loop)
    assert (orders(office), gone(office), records(office)) == (away, True, [])
    (export,) = exports(office)
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
def test_what_is_to_be_left_is_left_at_once_and_exported(office: Office, leave: Callable[[Office], object]):
    loop = demoting(office)
    heal(office)
    away, before = orders(office), office.site.cluster.mutations
    leave(office)
    delete(office)
    end(office, loop, most=1)
    assert (orders(office), office.site.cluster.mutations) == (away, before)
    assert (gone(office), records(office), len(exports(office))) == (True, [], 1)


def test_an_annotation_of_another_word_asks_for_nothing(office: Office):
    loop = demoting(office)
    heal(office)
    office.api.merge(POLICIES, "default", "main", {"metadata": {"annotations": {ABANDON: "false"}}})
    delete(office)
    end(office, loop)
    assert orders(office) == HOME


@pytest.mark.parametrize("trouble", [Transient("no answer"), Terminal("wrong credentials")], ids=["away", "refused"])
def test_with_kafka_gone_the_deletion_waits_its_time_and_then_ends_with_an_export(office: Office, trouble: Exception):
    loop = demoting(office, deletionTimeoutSeconds=30)
    loop.release()
    office.connector.trouble = trouble  # type: ignore[assignment]
    delete(office, at=office.site.clock.now().isoformat())
    assert office.step(loop, 30) == RETRY_SECONDS
    assert not gone(office)
    assert office.step(loop, 2) == DONE
    assert (gone(office), records(office), len(exports(office))) == (True, [], 1)


def test_a_broker_that_stays_unwell_keeps_the_deletion_no_longer_than_its_time(office: Office):
    loop = demoting(office, deletionTimeoutSeconds=30)
    heal(office)
    # Nobody can lead in its place, nor it: the election back is never possible.
    for p in office.site.cluster.partitions():
        if p.leader != 1:
            office.site.cluster.shrink_isr(p.name, 1)
    delete(office, at=office.site.clock.now().isoformat())
    end(office, loop, most=40)
    assert gone(office)


@pytest.mark.parametrize(
    ("reason", "ends"),
    [
        pytest.param(Reason.STANDING_BY, False, id="another process holds the Lease: it does it"),
        pytest.param(Reason.CLUSTER_CLAIMED, True, id="another policy has the cluster"),
        pytest.param(Reason.CLUSTER_CHANGED, True, id="the bootstrap leads to another cluster"),
    ],
)
def test_who_may_not_act_leaves_it_or_ends_it(office: Office, reason: Reason, ends: bool):
    loop = demoting(office)
    loop.release()
    office.connector.trouble = PolicyRefused(reason, "so it is")
    delete(office)
    assert office.step(loop) == (DONE if ends else RETRY_SECONDS)
    assert gone(office) is ends
    assert len(exports(office)) == ends


def test_a_policy_whose_finalizer_is_gone_is_none_of_ours_any_more(office: Office):
    loop = office.make()
    delete_at = {"deletionTimestamp": "2026-01-01T00:00:10Z", "finalizers": ["somebody.else/finalizer"]}
    office.api.objects["leadershippolicies", "default", "main"]["metadata"].update(delete_at)
    office.api.writes.clear()
    assert office.step(loop) == DONE
    assert office.api.writes == []


def test_another_finalizer_is_left_to_its_owner(office: Office):
    loop = office.make()
    office.step(loop)
    office.api.objects["leadershippolicies", "default", "main"]["metadata"]["finalizers"].append("somebody.else/f")
    delete(office)
    end(office, loop)
    assert office.body()["metadata"]["finalizers"] == ["somebody.else/f"]


@pytest.mark.parametrize("verb", ["create", "merge", "delete"])
def test_an_api_that_is_away_at_the_end_is_tried_again_and_the_record_stands(office: Office, verb: str):
    loop = demoting(office)
    delete(office)
    office.api.refuse(verb, CONFIG_MAPS, Transient("away"))
    assert office.step(loop, 3) == RETRY_SECONDS
    assert FINALIZER in office.body()["metadata"]["finalizers"]
    assert records(office)
    office.api.refuse(verb, CONFIG_MAPS, None)
    end(office, loop)
    assert (gone(office), records(office), len(exports(office))) == (True, [], 1)


def test_a_new_process_finishes_what_a_killed_one_had_begun(office: Office):
    loop = demoting(office)
    heal(office)
    delete(office)
    office.step(loop)
    loop.release()
    successor = Office(office.site, office.api, holder="operator-b")
    try:
        end(successor, successor.loop())
    finally:
        successor.close()
    assert (gone(office), orders(office)) == (True, HOME)
