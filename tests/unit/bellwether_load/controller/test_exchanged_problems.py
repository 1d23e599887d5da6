"""A writer of the store who exchanges problem, loads and plan together gets no plan proposed or applied."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.adapters.kubernetes.api_client import LEADER_REBALANCES
from bellwether_load.controller.job_commands import file_name
from bellwether_load.plan.problem import Problem
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import problem_files
from testkit.kubernetes.api_objects import LOADS
from testkit.loads.small_planner import problem as small_problem
from testkit.loads.small_planner import slot
from testkit.simulation.rebalance_fixture import SPEC, Desked, Planner

AUTOMATIC = {**SPEC, "approval": "Automatic"}


def strong_broker(problem: Problem) -> Problem:
    """Broker 1 can carry everything: the best plan gives it every leader."""
    brokers = tuple(replace(b, capacity=1_000_000 if b.id == 1 else 1) for b in problem.header.brokers)
    return replace(problem, header=replace(problem.header, brokers=brokers))


def exchanged(store: Store, name: str) -> None:
    """Another client replaces a problem of the store."""
    problem_files.write_problem(store, name, strong_broker(problem_files.read_problem(store, name)))


def problem_name(desked: Desked) -> str:
    return file_name("default", "main", desked.status["run"])


def orders(desked: Desked) -> dict[int, tuple[int, ...]]:
    return {p.index: p.replicas for p in desked.site.cluster.partitions()}


def test_a_plan_for_another_problem_is_never_applied(desked: Desked, monkeypatch: pytest.MonkeyPatch):
    real = Planner.work

    def work(self: Planner, name: str) -> None:
        exchanged(self.store, name)
        real(self, name)

    monkeypatch.setattr(Planner, "work", work)
    before = orders(desked)
    loop = desked.make(rebalance=AUTOMATIC)
    desked.annotate(rebalance="please")
    desked.until(loop, "Failed")
    assert desked.status["reason"] == "PlanVerificationFailed"
    assert (
        f"problems/{problem_name(desked)}: the stored problem is not the one that the operator wrote"
        in desked.status["message"]
    )
    assert "request a new plan" in desked.status["message"]
    assert orders(desked) == before


def test_a_problem_that_was_exchanged_after_the_proposal_is_not_applied(desked: Desked):
    loop = desked.proposed()
    before, name = orders(desked), problem_name(desked)
    exchanged(desked.planner.store, name)
    desked.planner.work(name)
    desked.approve()
    desked.until(loop, "Failed")
    assert desked.status["reason"] == "PlanVerificationFailed"
    assert "the stored problem is not the one that the operator wrote" in desked.status["message"]
    assert orders(desked) == before


def test_a_problem_that_lies_in_the_store_before_the_run_starts_is_replaced(desked: Desked):
    loop = desked.make(rebalance={**AUTOMATIC, "schedule": "0 4 * * *"})
    desked.go(loop, 2)
    due = desked.status["nextAt"]
    foreign = strong_broker(small_problem(slot(0), cluster_id=desked.body()["status"]["clusterId"]))
    name = file_name("default", "main", f"at-{due[:10].replace('-', '')}-0400")
    problem_files.write_problem(desked.planner.store, name, foreign)
    desked.site.clock.advance(86400)
    desked.until(loop, "Done")
    written = problem_files.read_problem(desked.planner.store, name)
    assert written.header.policy == "default/main"
    assert len(written.partitions) == 8


def test_no_job_starts_before_status_has_the_digest_of_its_problem(desked: Desked):
    loop = desked.make(rebalance=SPEC)
    desked.annotate(rebalance="please")
    started = Planner.start

    def start(self: Planner, run: str) -> None:
        assert len(desked.status["inputDigest"]) == 64
        started(self, run)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Planner, "start", start)
        desked.until(loop, "Proposed")
    assert desked.planner.started


def test_a_process_killed_before_status_had_the_digest_writes_the_problem_again(desked: Desked):
    loop = desked.make(rebalance=SPEC)
    desked.annotate(rebalance="please")
    name = ""
    while not name or not desked.planner.store.exists(f"problems/{name}/problem.json"):
        desked.go(loop)
        name = problem_name(desked) if desked.status.get("run") else ""
    loop.release()
    desked.api.merge(LEADER_REBALANCES, "default", LOADS, {"status": {"inputDigest": None}}, sub="status")
    exchanged(desked.planner.store, name)
    desked.planner.started.clear()
    desked.site.clock.advance(60)
    desked.until(desked.loop(), "Proposed")
    written = problem_files.read_problem(desked.planner.store, name)
    assert {b.capacity for b in written.header.brokers} == {100}


def test_an_approved_plan_without_a_digest_of_its_problem_is_not_applied(desked: Desked):
    loop = desked.proposed()
    before = orders(desked)
    loop.release()
    desked.api.merge(LEADER_REBALANCES, "default", LOADS, {"status": {"inputDigest": None}}, sub="status")
    desked.site.clock.advance(60)
    desked.approve()
    desked.until(desked.loop(), "Failed")
    assert "status.inputDigest" in desked.status["message"]
    assert orders(desked) == before
