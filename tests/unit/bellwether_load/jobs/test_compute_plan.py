"""The plan job, checked by the verifier, which shares nothing with it."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bellwether.cli.main import main
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.settings.objective import Objective
from bellwether.ports.errors import Terminal
from bellwether_load.jobs.compute_plan import ComputedPlan, compute_plan, write_plan
from bellwether_load.plan.documents import PLAN
from bellwether_load.plan.problem import BrokerInput, Problem
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.plan_files import read_moves, read_plan
from bellwether_load.store.plans.problem_files import write_problem
from bellwether_load.store.store_errors import StoreDamaged, StoreError, StoreMissing
from testkit.loads.random_problems import posed
from testkit.loads.small_planner import Hourly, forecast, led, loads, problem, slot, write_loads

if TYPE_CHECKING:
    from bellwether.core.waves.approved_plan import RebalanceMove
    from bellwether_load.plan.rebalance_plan import RebalancePlan

Loads = Mapping[PartitionKey, tuple[float, float | None]]


def planned(store: Path, asked: Problem, known: Loads, hourly: Hourly | None = None) -> ComputedPlan:
    """What the job makes of a problem, written into the store."""

    where = Store.open(str(store))
    write_problem(where, "main", asked)
    write_loads(where, "main", known, {s.topic_id: s.topic for s in asked.partitions}, hourly)
    made = compute_plan(str(store), "main", "main")
    write_plan(str(store), made)
    return made


def moves_in(store: Path, made: ComputedPlan) -> list[RebalanceMove]:
    """The moves of a plan that is stored."""
    return list(read_moves(Store.open(str(store)), made.plan.digest))


def restate(store: Path, plan: RebalancePlan) -> None:
    """Another summary for the moves that are stored."""
    where = Store.open(str(store))
    where.write_bytes(f"plans/{plan.digest}/plan.json", json.dumps(PLAN.to_json(plan)).encode())


def recheck(store: Path, digest: str) -> Any:
    """What the command that rechecks a plan says of it."""
    folders = ("--problem", "problems/main"), ("--loads", "loads/main"), ("--plan", f"plans/{digest}")
    return CliRunner().invoke(main, ["verify-plan", *(word for o, f in folders for word in (o, f"{store}/{f}"))])


@pytest.mark.parametrize("seed", range(6))
def test_the_verifier_accepts_what_the_job_plans(tmp_path: Path, seed: int):
    made = planned(tmp_path, *posed(seed))
    result = recheck(tmp_path, made.plan.digest)
    assert result.exit_code == 0, result.output
    assert made.plan.gap is not None
    assert made.plan.gap < 0.04  # a few partitions are heavy


def test_the_plan_is_the_same_with_any_number_of_row_groups(tmp_path: Path):
    asked, known = posed(7, partitions=400)
    whole = planned(tmp_path / "whole", asked, known)
    file = "problems/main/partitions.parquet"
    planned(tmp_path / "cut", asked, known)
    pq.write_table(pq.read_table(tmp_path / "cut" / file), tmp_path / "cut" / file, row_group_size=37)

    in_groups = compute_plan(str(tmp_path / "cut"), "main", "main")
    assert in_groups.plan == whole.plan
    write_plan(str(tmp_path / "cut"), in_groups)
    assert moves_in(tmp_path / "cut", in_groups) == moves_in(tmp_path / "whole", whole)
    assert recheck(tmp_path / "cut", whole.plan.digest).exit_code == 0


@pytest.mark.parametrize("seed", range(3))
def test_the_forecast_is_the_busiest_hour_with_the_new_leaders(tmp_path: Path, seed: int):
    asked, known = posed(seed)
    dice, hours = Random(seed), (0, 14, 38, 167)

    def rates() -> list[int]:
        return [dice.randint(0, 10**7) for _ in hours]

    hourly = Hourly(hours, {key: (rates(), rates() if outs is not None else None) for key, (_, outs) in known.items()})
    made = planned(tmp_path, asked, known, hourly)
    to = {move.key: move.to_leader for move in moves_in(tmp_path, made)}
    before = [slot.leader for slot in asked.partitions]
    after = [to.get(slot.key, slot.leader) for slot in asked.partitions]
    assert made.plan.forecast == forecast(asked, hourly, before, after)
    assert recheck(tmp_path, made.plan.digest).exit_code == 0
    true = made.plan.forecast
    assert true is not None
    wrong = replace(true, after=replace(true.after, load=true.after.load * 0.99))
    restate(tmp_path, replace(made.plan, forecast=wrong))
    result = recheck(tmp_path, made.plan.digest)
    assert result.exit_code == 4
    assert "busiest hour" in result.output


def test_leaders_are_chosen_for_hours_that_are_known_and_the_bound_is_verified(tmp_path: Path):
    asked = problem(*(slot(i, (1, 2, 3)) for i in range(30)))
    rates = {
        s.key: ([1000 + s.partition, 0] if s.partition % 2 else [0, 1000 + s.partition], None) for s in asked.partitions
    }
    made = planned(tmp_path, asked, loads(asked, *[1000.0] * 30), Hourly((3, 4), rates))
    proof, seen = made.plan.certificate.hourly, made.plan.forecast
    assert proof is not None
    assert seen is not None
    assert proof.bound <= seen.after.load <= proof.bound * 1.02
    assert recheck(tmp_path, made.plan.digest).exit_code == 0
    certificate = replace(made.plan.certificate, hourly=replace(proof, bound=proof.bound * 1.01))
    restate(tmp_path, replace(made.plan, certificate=certificate))
    result = recheck(tmp_path, made.plan.digest)
    assert result.exit_code == 4
    assert "bound by hour" in result.output


def test_leaders_are_chosen_for_requests_that_count_and_the_bound_is_verified(tmp_path: Path):
    brokers = (BrokerInput(1), BrokerInput(2, request_capacity=50), BrokerInput(3))
    slots = [slot(i, (1, 2, 3)) for i in range(60)]
    asked = problem(*slots, brokers=brokers, objective=Objective(request_bytes=1000))
    known = loads(asked, *[100.0] * 59)
    requests = {key: [5_000 if key.partition % 2 else 10, 700] for key in [*known][:-1]}
    made = planned(tmp_path, asked, known, Hourly((3, 4), {key: ([100, 90], [0, 0]) for key in known}, requests))
    proof, seen = made.plan.certificate.hourly, made.plan.forecast
    assert proof is not None
    assert seen is not None
    assert seen.requests is not None
    _, after = seen.highest(1000)
    assert after == 1000 * seen.requests.after.load
    assert proof.bound <= after <= proof.bound * 1.05
    assert proof.request_weights
    assert made.plan.without_requests == 1
    assert recheck(tmp_path, made.plan.digest).exit_code == 0
    for forged in (
        replace(made.plan, without_requests=0),
        replace(made.plan, forecast=replace(seen, requests=None)),
        replace(made.plan, certificate=replace(made.plan.certificate, hourly=replace(proof, bound=after))),
    ):
        restate(tmp_path, forged)
        assert recheck(tmp_path, made.plan.digest).exit_code == 4


def test_requests_of_loads_without_hours_are_not_measured(tmp_path: Path):
    asked = problem(*(slot(i, (1, 2, 3)) for i in range(6)), objective=Objective(request_bytes=1000))
    made = planned(tmp_path, asked, loads(asked, *[1000.0] * 5))
    assert (made.plan.without_requests, made.plan.forecast) == (5, None)
    assert recheck(tmp_path, made.plan.digest).exit_code == 0


def test_loads_by_hour_that_cannot_be_are_refused(tmp_path: Path):

    asked, known = posed(1)
    for rates, said in (([1, 2, 3], "must be 2 numbers"), ([1, -2], "must be 2 numbers from 0 to 2**45")):
        hourly = Hourly((3, 4), dict.fromkeys(known, (rates, None)))
        with pytest.raises(StoreDamaged, match=re.escape(said)):
            planned(tmp_path, asked, known, hourly)
    counted = replace(asked, header=replace(asked.header, objective=Objective(request_bytes=1)))
    hourly = Hourly((3, 4), dict.fromkeys(known, ((1, 2), None)), dict.fromkeys(known, (1, 2**30 + 1)))
    with pytest.raises(StoreDamaged, match=re.escape("must be 2 numbers from 0 to 2**30")):
        planned(tmp_path, counted, known, hourly)


def test_a_problem_in_which_no_broker_may_lead_is_refused(tmp_path: Path):
    shut = tuple(BrokerInput(b, open=False, why="Demoted") for b in (1, 2, 3))
    asked = problem(*(slot(i, (1, 2, 3)) for i in range(4)), brokers=shut)
    with pytest.raises(Terminal, match=r"none of the 3 may lead \(1: Demoted; 2: Demoted; 3: Demoted\)"):
        planned(tmp_path, asked, loads(asked, *[1000.0] * 4))


@pytest.mark.parametrize(("capacity", "valid"), [(10**6, True), (10**15, False)])
def test_capacities_beyond_what_sums_allow_are_refused(tmp_path: Path, capacity: int, valid: bool):
    asked = problem(slot(0, (1, 2)), brokers=(BrokerInput(1), BrokerInput(2, capacity=capacity)))
    with contextlib.nullcontext() if valid else pytest.raises(Terminal, match="capacity"):
        made = planned(tmp_path, asked, loads(asked, 2.0**40))
        assert recheck(tmp_path, made.plan.digest).exit_code == 0


def test_a_busy_broker_hands_leaders_to_the_others(tmp_path: Path):
    asked = problem(*(slot(i, (1, 2, 3)) for i in range(30)))
    made = planned(tmp_path, asked, loads(asked, *[1000.0] * 30))
    assert (made.plan.before.max, made.plan.after.max) == (90_000.0, 50_000.0)  # base 30,000 each; 60,000 to lead
    assert made.plan.gap == 0.0
    assert made.plan.moved.partitions == 20
    assert made.plan.moved.load == made.plan.moved.lower_bound


def test_a_leader_that_is_not_first_is_put_first(tmp_path: Path):
    asked = problem(slot(0, (2, 1), leader=1), slot(1, (2, 1), leader=2))
    made = planned(tmp_path, asked, loads(asked, 10.0, 10.0))
    (move,) = read_moves(Store.open(str(tmp_path)), made.plan.digest)
    assert (move.partition, move.order, move.from_leader, move.to_leader) == (0, (1, 2), 1, 1)
    assert (made.plan.moved.partitions, made.plan.moved.reordered) == (0, 1)


def test_a_closed_broker_is_relieved_of_all_that_others_can_lead(tmp_path: Path):
    brokers = (BrokerInput(1, open=False, why="Demoted"), BrokerInput(2), BrokerInput(3))
    asked = problem(*(slot(i, (1, 2, 3)) for i in range(10)), slot(10, (1,)), brokers=brokers)
    made = planned(tmp_path, asked, loads(asked, *[100.0] * 11))
    moves = list(read_moves(Store.open(str(tmp_path)), made.plan.digest))
    assert sorted(m.partition for m in moves) == list(range(10))
    assert sorted(m.to_leader for m in moves) == [2] * 5 + [3] * 5


def test_a_cap_on_moves_is_kept(tmp_path: Path):
    asked = problem(*(slot(i, (1, 2, 3)) for i in range(30)))
    capped = Problem(replace(asked.header, objective=replace(asked.header.objective, max_moves=5)), asked.partitions)
    made = planned(tmp_path, capped, loads(asked, *[1000.0] * 30))
    assert 0 < made.plan.moved.partitions <= 5
    assert made.plan.after.max < made.plan.before.max
    assert recheck(tmp_path, made.plan.digest).exit_code == 0


@pytest.mark.parametrize(
    ("rate", "named"),
    [
        pytest.param(math.nan, "nan", id="not a number"),
        pytest.param(math.inf, "inf", id="infinite"),
        pytest.param(-5.0, "-5", id="negative"),
    ],
)
def test_a_load_that_is_none_is_refused_by_name(tmp_path: Path, rate: float, named: str):

    asked = problem(slot(0), slot(1))
    with pytest.raises(StoreDamaged, match=f"orders-1 has a produce_p95 of {named}"):
        planned(tmp_path, asked, loads(asked, 1.0, rate))


def test_a_store_that_takes_no_plan_is_named(tmp_path: Path):

    (tmp_path / "plans").write_text("a file where the folder of plans should be")
    asked = problem(*(slot(i, (1, 2, 3)) for i in range(30)))
    with pytest.raises(StoreError, match="plans"):
        planned(tmp_path, asked, loads(asked, *[1000.0] * 30))


def test_two_rows_of_loads_for_one_partition_are_refused(tmp_path: Path):

    asked = problem(slot(0), slot(1))
    planned(tmp_path, asked, loads(asked, 1.0, 2.0))
    file = tmp_path / "loads/main/part-0.parquet"
    table = pq.read_table(file)
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), file)
    uri = str(tmp_path)
    with pytest.raises(StoreDamaged, match="orders-0 comes after the partition that follows it, out of order"):
        compute_plan(uri, "main", "main")


def test_partitions_that_are_out_of_order_are_refused(tmp_path: Path):

    asked = problem(slot(0), slot(1), slot(2))
    planned(tmp_path, asked, loads(asked, 1.0, 2.0, 3.0))
    file = tmp_path / "problems/main/partitions.parquet"
    pq.write_table(pq.read_table(file).take(pa.array([0, 2, 1])), file, row_group_size=2)
    uri = str(tmp_path)
    with pytest.raises(StoreDamaged, match="orders-1 comes after the partition that follows it, out of order"):
        compute_plan(uri, "main", "main")


def test_without_any_load_nothing_moves(tmp_path: Path):
    asked = problem(*(slot(i, (1, 2, 3)) for i in range(5)))
    made = planned(tmp_path, asked, {})
    assert (made.plan.moved.partitions, made.plan.without_load, made.plan.after.max) == (0, 5, 0.0)
    assert recheck(tmp_path, made.plan.digest).exit_code == 0


@pytest.mark.parametrize("hourly", [None, Hourly((3, 4), {})], ids=["no hours", "hours"])
def test_a_cluster_without_partitions_has_an_empty_plan(tmp_path: Path, hourly: Hourly | None):

    write_problem(Store.open(str(tmp_path)), "main", problem())
    write_loads(Store.open(str(tmp_path)), "main", {}, hourly=hourly)
    made = compute_plan(str(tmp_path), "main", "main")
    write_plan(str(tmp_path), made)
    assert (made.plan.partitions, made.plan.moved.partitions) == (0, 0)
    assert recheck(tmp_path, made.plan.digest).exit_code == 0


def test_loads_that_are_not_there_are_named(tmp_path: Path):

    write_problem(Store.open(str(tmp_path)), "main", problem(slot(0)))
    with pytest.raises(StoreMissing, match="loads/main: contains no Parquet files: set the folder"):
        compute_plan(str(tmp_path), "main", "main")


def test_a_plan_reads_back_as_it_was_made(tmp_path: Path):
    made = planned(tmp_path, *posed(11))
    assert read_plan(Store.open(str(tmp_path)), made.plan.digest) == made.plan


def test_a_bound_that_is_rounded_up_leaves_no_negative_gap(tmp_path: Path):
    brokers = (BrokerInput(1, capacity=300), BrokerInput(2, capacity=300))
    asked = problem(slot(0, (1, 2)), brokers=brokers)
    made = planned(tmp_path, asked, led(asked, 5.0))  # 10 / 3 is below its double
    assert recheck(tmp_path, made.plan.digest).exit_code == 0
    assert made.plan.gap == 0


def test_levels_end_at_brokers_that_need_not_carry_anything(tmp_path: Path):
    brokers = tuple(BrokerInput(b, capacity=300 if b in {3, 9} else 100, open=b != 2) for b in range(1, 10))
    slots = (slot(0, (5,)), slot(1, (3, 5, 9)), slot(2, (4, 7, 3), leader=3))
    asked = problem(*slots, brokers=brokers)
    made = planned(tmp_path, asked, led(asked, 543_982.0, 22_809.0, 327_543.0))
    assert recheck(tmp_path, made.plan.digest).exit_code == 0
