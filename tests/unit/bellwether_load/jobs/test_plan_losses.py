"""Losses in plans of the job, and what the verifier says of forged ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from bellwether.core.model.cluster import PartitionKey
from bellwether_load.jobs.compute_plan import ComputedPlan, compute_plan, write_plan
from bellwether_load.losses import plan_orders
from bellwether_load.plan.plan_losses import PlanLoss
from bellwether_load.plan.problem import BrokerInput
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.plan_files import read_moves
from bellwether_load.store.plans.plan_verification import recheck
from bellwether_load.store.plans.problem_files import write_problem
from testkit.loads.small_planner import Hourly, problem, slot, write_loads

RANDOM = Random(4)
BROKERS = [BrokerInput(b, f"rack-{b % 3}") for b in range(1, 10)]
POSED = problem(
    *(slot(i, [3 * RANDOM.randrange(3) + rack for rack in RANDOM.sample((1, 2, 3), 3)]) for i in range(200)),
    brokers=BROKERS,
)
KNOWN = {PartitionKey("id-of-orders", i): (float(round(1000 * RANDOM.lognormvariate(0, 1))), 0.0) for i in range(200)}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store")
    write_problem(Store.open(str(path)), "main", POSED)
    write_loads(Store.open(str(path)), "main", KNOWN, {"id-of-orders": "orders"})
    return path


@pytest.fixture(scope="module")
def made(store: Path) -> ComputedPlan:
    found = compute_plan(str(store), "main", "main")
    write_plan(str(store), found)
    return found


def faults(store: Path, made: ComputedPlan, change: Callable[[PlanLoss], PlanLoss] | None = None) -> tuple[str, ...]:
    where, plan = Store.open(str(store)), made.plan
    if change is not None:
        assert plan.losses is not None
        first, *others = plan.losses.kinds
        plan = replace(plan, losses=replace(plan.losses, kinds=(change(first), *others)))
    folders = (where.below("problems/main"), where.below("loads/main"), where.below(f"plans/{plan.digest}"))
    return recheck(*folders, summary=plan).faults


def test_a_plan_lowers_both_losses_and_passes(store: Path, made: ComputedPlan) -> None:
    assert made.plan.losses is not None
    assert [loss.kind for loss in made.plan.losses.kinds] == ["broker", "rack"]
    for loss in made.plan.losses.kinds:
        assert loss.bound <= loss.after.load < loss.before.load
        assert loss.gap is not None
        assert loss.gap < 0.08
    assert faults(store, made) == ()
    assert made.plan.losses_line.startswith("worst loss of one broker: without broker ")


def test_leaders_that_change_for_losses_keep_to_the_busiest_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_problem(Store.open(str(tmp_path)), "main", POSED)
    known = KNOWN | {PartitionKey("id-of-orders", i): (60_000.0, 0.0) for i in range(2)}
    rates = {key: ([round(rate), round(rate)], None) for key, (rate, _) in known.items()}
    hourly = Hourly((0, 1), rates)
    write_loads(Store.open(str(tmp_path)), "main", known, {"id-of-orders": "orders"}, hourly)
    monkeypatch.setattr(plan_orders, "_ORDERS", 9.0)
    alone = compute_plan(str(tmp_path), "main", "main").plan
    monkeypatch.setattr(plan_orders, "_ORDERS", 1.02)
    found = compute_plan(str(tmp_path), "main", "main")
    write_plan(str(tmp_path), found)
    assert found.plan.moved.partitions != alone.moved.partitions
    assert found.plan.forecast is not None
    assert alone.forecast is not None
    assert found.plan.forecast.after.load <= alone.forecast.after.load * 1.004
    assert faults(tmp_path, found) == ()


def test_partitions_that_are_only_reordered_keep_their_leader(store: Path, made: ComputedPlan) -> None:
    moves = list(read_moves(Store.open(str(store)), made.plan.digest))
    alone = [move for move in moves if not move.moves_leader]
    assert len(alone) == made.plan.moved.reordered > 0
    assert all(move.order[0] == move.from_leader and sorted(move.order) == sorted(move.replicas) for move in alone)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda loss: replace(loss, bound=loss.bound * 1.01), "broker: bound is"),
        (lambda loss: replace(loss, after=replace(loss.after, load=loss.after.load * 0.99)), "broker after: load is"),
        (lambda loss: replace(loss, before=replace(loss.before, load=loss.before.load * 2)), "broker before: load is"),
        (lambda loss: replace(loss, after=replace(loss.after, lost="99")), "the loss of 99 is not the worst"),
        (lambda loss: replace(loss, lost_weights={"1": {1: 1}}), "does not survive the loss of '1'"),
        (lambda loss: replace(loss, lost_weights={"77": {1: 1}}), "does not survive the loss of '77'"),
        (lambda loss: replace(loss, lost_weights={"1": {2: 2**62}}), "weights add up to more than 2**62"),
        (
            lambda loss: replace(loss, normal_weights={99: 1}),
            "broker 99 has a weight while none is lost, or is no open",
        ),
        (lambda loss: replace(loss, kind="rack"), "expected broker and rack, each once at most"),
        (lambda loss: replace(loss, kind="row"), "expected broker and rack"),
    ],
)
def test_forged_losses_are_rejected(
    store: Path, made: ComputedPlan, change: Callable[[PlanLoss], PlanLoss], said: str
) -> None:
    assert any(said in fault for fault in faults(store, made, change))
