"""What goes wrong in a rebalance: jobs that fail, plans that lie, stores that are away, processes that end."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import EVENTS, LEADER_REBALANCES, POLICIES
from bellwether.core.signals import OverrideState, Reading
from bellwether.ports.errors import Terminal, Transient
from bellwether_load.api.load_config import LoadConfig
from bellwether_load.store.filesystems import Store
from bellwether_load.store.store_errors import StoreUnavailable
from testkit.kubernetes.api_objects import LOADS
from testkit.loads.load_configs import body
from testkit.messages import assert_wording
from testkit.simulation.rebalance_fixture import SPEC, Desked, Planner, desk_of
from waiting import limit


def test_a_job_that_fails_says_why_and_is_tried_again_at_the_next_time_and_not_before(desked: Desked):
    desked.planner.fails = "loads: exit status 3: the history is empty"
    loop = desked.make(rebalance={**SPEC, "schedule": "0 4 * * *"})
    desked.go(loop, 2)
    desked.site.clock.advance(86400)
    desked.go(loop, 20)
    assert (desked.state, desked.status["reason"]) == ("Failed", "JobFailed")
    assert_wording(desked.status["message"])
    assert len(desked.planner.started) == 1
    desked.planner.fails = ""
    desked.site.clock.advance(86400)
    desked.until(loop, "Proposed")
    assert len(desked.planner.started) == 2
    assert any("the history is empty" in e.get("note", "") for e in desked.api.all(EVENTS))


def test_a_job_deleted_by_another_client_has_failed(desked: Desked):
    desked.planner.looks = 100
    loop = desked.make(rebalance=SPEC)
    desked.annotate(rebalance="please")
    desked.go(loop, 3)
    assert desked.state == "Running"
    desked.planner.gone = True
    desked.until(loop, "Failed")
    assert_wording(desked.status["message"])


def test_a_plan_that_fails_the_recheck_is_refused(desked: Desked):
    desked.planner.tamper = lambda plan: replace(plan, brokers=tuple(replace(b, after=1.0) for b in plan.brokers))
    loop = desked.make(rebalance={**SPEC, "approval": "Automatic"})
    desked.annotate(rebalance="please")
    desked.until(loop, "Failed")
    assert desked.status["reason"] == "PlanVerificationFailed"
    desked.go(loop, 3)
    assert all(p.leader == p.replicas[0] for p in desked.site.cluster.partitions())


@pytest.mark.parametrize("state", ["Running", "Proposed", "Approved", "Applying", "Done"])
def test_a_process_that_takes_over_goes_on_where_the_last_one_was(desked: Desked, state: str):
    desked.planner.looks = 4
    loop = desked.make(rebalance={**SPEC, "waves": {"partitions": 1, "pauseSeconds": 0}})
    desked.annotate(rebalance="please")
    if state != "Running":
        desked.until(loop, "Proposed")
        if state != "Proposed":
            desked.approve()
    if state != "Approved":
        desked.until(loop, state)
    loop.release()
    desked.site.clock.advance(60)
    successor = desked.loop()
    if state in ("Running", "Proposed"):
        desked.until(successor, "Proposed")
        desked.approve()
    desked.until(successor, "Done", most=60)
    desked.go(successor, 5)
    assert len(desked.planner.started) == 1
    assert desked.status["skipped"] == 0


def test_a_person_of_many_words_is_not_asked_for_again_by_the_next_process(desked: Desked):
    loop = desked.make(rebalance=SPEC)
    desked.annotate(rebalance="because " * 100)
    desked.until(loop, "Proposed")
    loop.release()
    desked.site.clock.advance(60)
    desked.go(desked.loop(), 5)
    assert desked.state == "Proposed"
    assert len(desked.planner.started) == 1


def test_a_plan_whose_status_was_lost_is_gone_on_with_from_the_undo_record(desked: Desked):
    loop = desked.proposed(waves={"partitions": 1, "pauseSeconds": 0})
    digest = desked.approve()
    desked.until(loop, "Applying")
    loop.release()
    found = desked.api.get(LEADER_REBALANCES, "default", LOADS)
    desked.api.put(LEADER_REBALANCES, {key: value for key, value in found.items() if key != "status"})
    desked.site.clock.advance(60)
    successor = desked.loop()
    desked.until(successor, "Done", most=60)
    assert desked.status["digest"] == digest


def test_a_store_that_is_away_is_said_and_tried_again(desked: Desked, monkeypatch: pytest.MonkeyPatch):
    away = True

    def exists(self: Store, path: str) -> bool:
        if away:
            raise StoreUnavailable("s3://loads: no answer")
        return real(self, path)

    real = Store.exists
    monkeypatch.setattr(Store, "exists", exists)
    loop = desked.make(rebalance=SPEC)
    desked.annotate(rebalance="please")
    desked.go(loop, 5)
    assert (desked.state, desked.status["reason"]) == ("Running", "StoreUnavailable")
    assert desked.status["message"] == "s3://loads: no answer"
    away = False
    desked.until(loop, "Proposed")


def test_an_unusable_store_fails_the_run_with_the_remedy(desked: Desked):
    (Path(str(desked.planner.store)) / "problems").write_text("a file")
    loop = desked.make(rebalance=SPEC)
    desked.annotate(rebalance="please")
    desked.until(loop, "Failed")
    assert desked.status["reason"] == "StoreUnavailable"
    assert "problems" in desked.status["message"]


def test_an_api_server_that_is_away_is_asked_again_for_the_job(desked: Desked, monkeypatch: pytest.MonkeyPatch):
    real, away = Planner.start, [True, True]

    def start(self: Planner, run: str) -> None:
        if away:
            away.pop()
            raise Transient("Kubernetes API: POST jobs: not reachable (connection refused)")
        real(self, run)

    monkeypatch.setattr(Planner, "start", start)
    loop = desked.make(rebalance=SPEC)
    desked.annotate(rebalance="please")
    desked.go(loop, 4)
    assert desked.state == "Running"
    assert_wording(desked.status["message"])
    desked.until(loop, "Proposed")
    assert len(desked.planner.started) == 1


def test_a_right_that_is_missing_fails_the_run_with_the_remedy(desked: Desked, monkeypatch: pytest.MonkeyPatch):
    def start(_self: Planner, _run: str) -> None:
        raise Terminal("not allowed to create jobs default/x: grant this account the verb 'create' on jobs")

    monkeypatch.setattr(Planner, "start", start)
    loop = desked.make(rebalance=SPEC)
    desked.annotate(rebalance="please")
    desked.until(loop, "Failed")
    assert desked.status["reason"] == "JobFailed"
    assert_wording(desked.status["message"])


def test_a_defect_ends_the_run_and_not_the_loop(desked: Desked, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Planner, "look", lambda _self, _run: 1 / 0)
    loop = desked.make(rebalance=SPEC)
    desked.annotate(rebalance="please")
    desked.until(loop, "Failed")
    assert desked.status["message"] == "ZeroDivisionError: division by zero"
    desked.site.signals.override(1, OverrideState.DEMOTED)
    desked.go(loop, 2)
    assert desked.site.cluster.snapshot().leaders()[1] == 0


def test_a_policy_that_is_deleted_in_the_middle_finishes_its_wave_and_goes(desked: Desked):
    loop = desked.proposed(waves={"partitions": 2, "pauseSeconds": 0})
    desked.approve()
    desked.until(loop, "Applying")
    desked.api.delete(POLICIES, "default", "main")
    for _ in range(30):
        if desked.api.find(POLICIES, "default", "main") is None:
            break
        desked.step(loop, seconds=2)
    assert desked.api.find(POLICIES, "default", "main") is None
    assert all(p.leader == p.replicas[0] for p in desked.site.cluster.partitions())


def test_work_that_takes_long_delays_no_reconcile(desked: Desked, monkeypatch: pytest.MonkeyPatch):
    """The desk works in its own thread: a recheck of millions of partitions must not hold a demotion back."""
    entered, let = threading.Event(), threading.Event()
    real = Planner.look

    def slow(self: Planner, run: str) -> Any:
        entered.set()
        assert let.wait(limit(30))
        return real(self, run)

    monkeypatch.setattr(Planner, "look", slow)
    loop = desked.make(rebalance=SPEC)
    desked.annotate(rebalance="please")
    desked.step(loop)
    desk = desked.desks[-1]
    desk.start()
    for _ in range(100):
        desked.step(loop)
        if entered.wait(0.05):
            break
    assert entered.is_set()
    desked.site.signals.override(1, OverrideState.DEMOTED)
    desked.step(loop, 2)
    assert desked.site.cluster.snapshot().leaders()[1] == 0
    assert not let.is_set()
    let.set()
    for _ in range(200):
        if desk.run.state == "Proposed":
            break
        desked.step(loop)
        threading.Event().wait(0.02)
    assert desk.run.state == "Proposed"
    desk.close()


def test_the_desk_wakes_the_loop_when_there_is_something_to_do(desked: Desked):
    loop = desked.make(rebalance=SPEC)
    desked.go(loop, 2)
    assert not loop.wait(0.0)
    desked.annotate(rebalance="please")
    loop.update(desked.body())
    desked.step(loop)
    before = loop._inputs()
    assert desked.desks[-1].step()
    assert loop._inputs() != before


# Stores of other teams

SAID = (
    "spec.store is 'private', but LeaderRebalances in namespace default may only use default: set one of these, or"
    " let the administrator allow it (chart value load.stores)"
)


@pytest.fixture
def shared(desked: Desked) -> Desked:
    """As well as the store that every namespace may use, there is one for another team."""
    content = body(str(desked.planner.store))
    content["stores"]["private"] = {"namespaces": ["team-b"], "uri": "/private"}
    desked.desk = desk_of(desked.planner, desked.site.clock, desked.desks, LoadConfig.model_validate(content))
    return desked


def shown(desked: Desked) -> tuple[Any, ...]:
    return desked.status["state"], desked.status["reason"], desked.status["message"]


def test_another_teams_store_is_refused_before_a_plan_is_requested_and_no_job_starts(shared: Desked):
    loop = shared.make(rebalance={**SPEC, "store": "private"})
    shared.go(loop, 3)
    assert shown(shared) == ("Idle", "InvalidPolicy", SAID)
    shared.annotate(rebalance="please")
    shared.go(loop, 3)
    assert shown(shared) == ("Idle", "InvalidPolicy", SAID)
    assert shared.planner.started == []


def test_conditions_of_the_rebalance_say_so_and_the_policy_stays_ready(shared: Desked):
    loop = shared.make(rebalance={**SPEC, "store": "private"})
    shared.go(loop, 3)
    conditions = {one["type"]: (one["status"], one["reason"], one["message"]) for one in shared.status["conditions"]}
    assert conditions == dict.fromkeys(("Ready", "RebalanceProposed", "Rebalancing"), ("False", "InvalidPolicy", SAID))
    assert shared.condition()[1] != "InvalidPolicy"


def test_a_sick_broker_is_demoted_although_the_store_is_refused(shared: Desked):
    loop = shared.make(rebalance={**SPEC, "store": "private"})
    shared.go(loop, 3)
    shared.site.signals.say(1, Reading.FAILING)
    shared.go(loop, 10)
    assert [p.leader for p in shared.site.cluster.partitions() if p.leader == 1] == []


def test_the_plan_that_was_requested_is_made_once_the_policy_names_a_store_that_is_allowed(shared: Desked):
    loop = shared.make(rebalance={**SPEC, "store": "private"})
    shared.annotate(rebalance="please")
    shared.go(loop, 3)
    shared.change(rebalance={**SPEC, "store": "default"})
    shared.until(loop, "Proposed")
    assert len(shared.planner.started) == 1


def test_a_proposed_plan_waits_while_its_policy_names_another_teams_store(shared: Desked):
    loop = shared.proposed()
    shared.change(rebalance={**SPEC, "store": "private"})
    shared.approve()
    shared.go(loop, 5)
    assert shown(shared)[1:] == ("InvalidPolicy", SAID)
    shared.change(rebalance={**SPEC, "store": "default"})
    shared.until(loop, "Done")
