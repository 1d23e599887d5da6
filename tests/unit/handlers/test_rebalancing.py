"""A policy's rebalances, from the asking to the last wave: real store, recheck and loop; a small planner for Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes.client import EVENTS, POLICIES
from bellwether.adapters.parquet.filesystems import Store, StoreAway
from bellwether.core.signals import OverrideState, Reading
from bellwether.handlers.loops import PolicyLoop
from bellwether.handlers.rebalancing import Desk
from testkit.builders import site
from testkit.desks import Planner, asking, desk_of
from testkit.offices import Office

SPEC: dict[str, Any] = {
    "history": {"uri": "/somewhere"},
    "runner": {"type": "Process"},
    "waves": {"partitions": 2, "pauseSeconds": 0},
}


class Desked(Office):
    """An office whose policy rebalances: eight skewed partitions on three brokers."""

    def __init__(self, folder: Path) -> None:
        super().__init__(site=site(3, {"orders": 8}))
        self.planner = Planner(Store.open(str(folder)))
        self.desks: list[Desk] = []
        self.desk = desk_of(self.planner, self.site.clock, self.desks)
        for broker in self.site.cluster.brokers:
            self.site.signals.say(broker, Reading.PASSING)

    def annotate(self, **annotations: str) -> None:
        self.api.merge(POLICIES, "default", "main", dict(asking(**annotations)))

    def go(self, loop: PolicyLoop, times: int = 1, seconds: float = 1.0) -> None:
        """Turns, and after each one whatever the desk can do."""
        for _ in range(times):
            self.step(loop, seconds=seconds)
            for _ in range(5):
                if not (self.desks and self.desks[-1].step()):
                    break

    def until(self, loop: PolicyLoop, state: str, most: int = 30) -> None:
        for _ in range(most):
            if self.state == state:
                return
            self.go(loop)
        raise AssertionError(f"{state} was not reached: {self.status}")

    @property
    def status(self) -> dict[str, Any]:
        return dict((self.body().get("status") or {}).get("rebalance") or {})

    @property
    def state(self) -> str:
        return str(self.status.get("state", ""))

    def proposed(self, **spec: Any) -> PolicyLoop:
        """A loop whose policy has a plan that waits for approval."""
        loop = self.make(rebalance={**SPEC, **spec})
        self.annotate(rebalance="please")
        self.until(loop, "Proposed")
        return loop

    def approve(self) -> str:
        digest = str(self.status["digest"])
        self.annotate(approve_plan=digest)
        return digest

    def led(self) -> dict[int, float]:
        """What each broker leads, by the planner's own rates."""
        found = dict.fromkeys(self.site.cluster.brokers, 0.0)
        for p in self.site.cluster.partitions():
            assert p.leader is not None
            found[p.leader] += 1000.0 / (1 + p.index)
        return found


@pytest.fixture
def desked(tmp_path: Path) -> Iterator[Desked]:
    made = Desked(tmp_path)
    yield made
    made.close()


def conditions(desked: Desked) -> dict[str, tuple[str, str]]:
    return {t: desked.condition(t)[:2] for t in ("RebalanceProposed", "Rebalancing")}


def test_a_policy_that_says_nothing_of_it_shows_nothing_of_it(desked: Desked):
    loop = desked.make()
    desked.go(loop, 3)
    assert "rebalance" not in desked.body()["status"]
    assert not {"RebalanceProposed", "Rebalancing"} & {c["type"] for c in desked.body()["status"]["conditions"]}
    assert desked.desks == []


def test_until_somebody_asks_nothing_is_planned(desked: Desked):
    loop = desked.make(rebalance=SPEC)
    desked.go(loop, 5, seconds=3600)
    assert (desked.state, desked.status["reason"]) == ("Idle", "NothingPlanned")
    assert desked.planner.started == []


def test_a_plan_that_was_asked_for_is_proposed_with_its_figures_and_moves_nothing(desked: Desked):
    before = desked.site.cluster.mutations
    desked.proposed()
    plan = desked.status["plan"]
    assert plan["loadAfter"] < plan["loadBefore"]
    assert plan["bound"] <= plan["loadAfter"]
    assert plan["moves"] >= 1
    assert conditions(desked) == {
        "RebalanceProposed": ("True", "PlanProposed"),
        "Rebalancing": ("False", "PlanProposed"),
    }
    assert desked.site.cluster.mutations == before
    assert len(desked.planner.started) == 1


def test_the_digest_is_the_approval_and_the_leaders_move_in_waves(desked: Desked):
    loop = desked.proposed()
    before = desked.led()
    digest = desked.approve()
    desked.until(loop, "Done")
    after = desked.led()
    assert max(after.values()) < max(before.values())
    assert desked.status["digest"] == digest
    assert desked.status["applied"] == desked.status["plan"]["moves"] + desked.status["plan"]["reorders"]
    assert desked.status["left"] == 0
    assert all(p.leader == p.replicas[0] for p in desked.site.cluster.partitions())
    assert desked.status["message"].endswith("partitions stand in the plan's order")


def test_another_digest_approves_nothing_and_the_condition_says_so(desked: Desked):
    loop = desked.proposed()
    desked.annotate(approve_plan="f" * 16)
    desked.go(loop, 3)
    status, reason, message = desked.condition("RebalanceProposed")
    assert (status, reason) == ("True", "OtherPlanApproved")
    assert f"the annotation names '{'f' * 16}'" in message
    assert desked.state == "Proposed"
    assert all(p.replicas[0] == p.leader for p in desked.site.cluster.partitions())


def test_an_automatic_policy_applies_what_is_worth_while(desked: Desked):
    loop = desked.make(rebalance={**SPEC, "approval": "Automatic"})
    desked.annotate(rebalance="please")
    desked.until(loop, "Done")


def test_what_is_not_worth_while_is_not_proposed(desked: Desked):
    loop = desked.make(rebalance={**SPEC, "minimumImprovementPercent": 90})
    desked.annotate(rebalance="please")
    desked.go(loop, 8)
    assert (desked.state, desked.status["reason"]) == ("Idle", "NotWorthwhile")
    assert desked.status["plan"]["loadBefore"] > 0


def test_the_schedule_asks_once_each_time(desked: Desked):
    loop = desked.make(rebalance={**SPEC, "schedule": "0 4 * * *"})
    desked.go(loop, 2)
    assert desked.planner.started == []
    due = desked.status["nextAt"]
    desked.site.clock.advance(86400)
    desked.go(loop, 5)
    assert desked.planner.started == [f"at-{due[:10].replace('-', '')}-0400"]
    assert desked.status["nextAt"] > due
    assert desked.state == "Proposed"
    desked.site.clock.advance(86400)
    desked.go(loop, 5)
    assert len(desked.planner.started) == 2


def test_asked_for_again_with_the_same_word_nothing_more_is_done(desked: Desked):
    loop = desked.proposed()
    desked.go(loop, 5)
    assert len(desked.planner.started) == 1
    desked.annotate(rebalance="once more")
    desked.go(loop, 5)
    assert len(desked.planner.started) == 2


def test_a_job_that_fails_says_why_and_is_tried_again_at_the_next_time_and_not_before(desked: Desked):
    desked.planner.fails = "loads: exit status 3: the history is empty"
    loop = desked.make(rebalance={**SPEC, "schedule": "0 4 * * *"})
    desked.go(loop, 2)
    desked.site.clock.advance(86400)
    desked.go(loop, 20)
    assert (desked.state, desked.status["reason"]) == ("Failed", "JobFailed")
    assert desked.status["message"] == "loads: exit status 3: the history is empty"
    assert len(desked.planner.started) == 1
    desked.planner.fails = ""
    desked.site.clock.advance(86400)
    desked.until(loop, "Proposed")
    assert len(desked.planner.started) == 2
    assert any("the history is empty" in e.get("note", "") for e in desked.api.all(EVENTS))


def test_a_job_that_somebody_removed_has_failed(desked: Desked):
    desked.planner.looks = 100
    loop = desked.make(rebalance=SPEC)
    desked.annotate(rebalance="please")
    desked.go(loop, 3)
    assert desked.state == "Running"
    desked.planner.gone = True
    desked.until(loop, "Failed")
    assert "gone before it brought a plan" in desked.status["message"]


def test_a_plan_that_does_not_stand_the_recheck_is_refused(desked: Desked):
    desked.planner.tamper = lambda plan: replace(plan, after=replace(plan.after, max=plan.after.max / 2))
    loop = desked.make(rebalance={**SPEC, "approval": "Automatic"})
    desked.annotate(rebalance="please")
    desked.until(loop, "Failed")
    assert desked.status["reason"] == "PlanRefused"
    desked.go(loop, 3)
    assert all(p.leader == p.replicas[0] for p in desked.site.cluster.partitions())


def test_a_plan_that_was_changed_between_proposal_and_approval_is_refused(desked: Desked):
    loop = desked.proposed()
    digest = desked.status["digest"]
    store = desked.planner.store
    path = f"plans/{digest}/moves.parquet"
    table = store.read_table(path)
    store.write_table(path, table.slice(1))
    before = desked.led()
    desked.approve()
    desked.until(loop, "Failed")
    assert desked.status["reason"] == "PlanRefused"
    assert desked.led() == before


def test_no_wave_comes_while_a_broker_is_sick_and_it_goes_on_when_it_is_well(desked: Desked):
    loop = desked.proposed(waves={"partitions": 1, "pauseSeconds": 0})
    desked.approve()
    desked.until(loop, "Applying")
    desked.site.signals.say(3, Reading.FAILING)
    desked.go(loop, 10)
    stopped = desked.status["applied"]
    assert (desked.state, desked.status["reason"]) == ("Applying", "SignalsWorsened")
    assert "broker 3" in desked.status["message"]
    assert conditions(desked)["Rebalancing"] == ("True", "SignalsWorsened")
    desked.go(loop, 10)
    assert desked.status["applied"] == stopped
    desked.site.signals.say(3, Reading.PASSING)
    desked.go(loop, 40, seconds=5)
    assert desked.state == "Done"
    assert desked.led()[3] > 0


def test_an_approval_that_is_taken_back_stops_the_waves(desked: Desked):
    loop = desked.proposed(waves={"partitions": 1, "pauseSeconds": 0})
    desked.approve()
    desked.until(loop, "Applying")
    desked.annotate(approve_plan="")
    desked.go(loop, 4)
    stopped = desked.led()
    assert desked.state == "Proposed"
    desked.go(loop, 10)
    assert desked.led() == stopped
    desked.approve()
    desked.until(loop, "Done")


def test_whoever_asks_for_another_plan_ends_the_one_that_is_applied(desked: Desked):
    loop = desked.proposed(waves={"partitions": 1, "pauseSeconds": 0})
    first = desked.approve()
    desked.until(loop, "Applying")
    desked.annotate(rebalance="another")
    desked.until(loop, "Proposed")
    assert desked.status["digest"] != first
    assert any(e.get("reason") == "PlanSuperseded" for e in desked.api.all(EVENTS))


@pytest.mark.parametrize("mode", [{"mode": "Observe"}, {"suspend": True}])
def test_a_policy_that_does_not_act_plans_and_does_not_apply(desked: Desked, mode: dict[str, Any]):
    loop = desked.make(rebalance=SPEC, **mode)
    desked.annotate(rebalance="please")
    desked.until(loop, "Proposed")
    before = desked.site.cluster.mutations
    desked.approve()
    desked.go(loop, 6)
    assert desked.state == "Approved"
    assert desked.status["reason"] in ("Observing", "Suspended")
    assert desked.site.cluster.mutations == before
    desked.change(mode="Enforce", suspend=False)
    desked.until(loop, "Done")


def test_a_policy_that_gives_rebalancing_up_shows_nothing_of_it_and_stops(desked: Desked):
    loop = desked.proposed(waves={"partitions": 1, "pauseSeconds": 0})
    desked.approve()
    desked.until(loop, "Applying")
    desked.change(rebalance=None)
    desked.go(loop, 3)
    stopped = desked.led()
    desked.go(loop, 10)
    assert desked.led() == stopped
    assert "rebalance" not in desked.body()["status"]
    assert desked.planner.closed >= 1


@pytest.mark.parametrize("state", ["Proposed", "Done"])
def test_a_settled_policy_causes_no_write_at_all(desked: Desked, state: str):
    loop = desked.proposed()
    if state == "Done":
        desked.approve()
    desked.until(loop, state)
    desked.go(loop, 40)
    desked.api.writes.clear()
    before = desked.site.cluster.mutations
    desked.go(loop, 5, seconds=30)
    assert [w for w in desked.api.writes if " leases " not in w] == []
    assert desked.site.cluster.mutations == before


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
    loop._unlink()
    desked.site.clock.advance(60)
    successor = desked.loop()
    if state in ("Running", "Proposed"):
        desked.until(successor, "Proposed")
        desked.approve()
    desked.until(successor, "Done", most=60)
    desked.go(successor, 5)
    assert len(desked.planner.started) == 1
    assert desked.status["left"] == 0


def test_a_plan_whose_status_was_lost_is_gone_on_with_from_the_undo_record(desked: Desked):
    loop = desked.proposed(waves={"partitions": 1, "pauseSeconds": 0})
    digest = desked.approve()
    desked.until(loop, "Applying")
    loop._unlink()
    desked.api.merge(POLICIES, "default", "main", {"status": {"rebalance": None}}, sub="status")
    desked.site.clock.advance(60)
    successor = desked.loop()
    desked.until(successor, "Done", most=60)
    assert desked.status["digest"] == digest


def test_a_store_that_is_away_is_said_and_tried_again(desked: Desked, monkeypatch: pytest.MonkeyPatch):
    away = True

    def exists(self: Store, path: str) -> bool:
        if away:
            raise StoreAway("s3://loads: no answer")
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


def test_a_store_that_nobody_may_use_fails_the_run_with_the_remedy(desked: Desked):
    (Path(desked.planner.store.filesystem[1]) / "problems").write_text("a file")
    loop = desked.make(rebalance=SPEC)
    desked.annotate(rebalance="please")
    desked.until(loop, "Failed")
    assert desked.status["reason"] == "StoreUnavailable"
    assert "problems" in desked.status["message"]


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
    assert desked.planner.closed >= 1


def test_work_that_takes_long_delays_no_turn(desked: Desked, monkeypatch: pytest.MonkeyPatch):
    """The desk works in its own thread: a recheck of millions of partitions must not hold a demotion back."""
    entered, let = threading.Event(), threading.Event()
    real = Planner.look

    def slow(self: Planner, run: str) -> Any:
        entered.set()
        assert let.wait(30)
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
    assert not loop._wait(0.0)
    desked.annotate(rebalance="please")
    loop.update(desked.body())
    desked.step(loop)
    before = loop._fingerprint()
    assert desked.desks[-1].step()
    assert loop._fingerprint() != before
