from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from bellwether_load.plan.problem import Problem
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.plan_files import plans, read_moves, read_plan, source
from bellwether_load.store.plans.problem_files import write_problem
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing
from testkit.loads.approved_plans import write_plan
from testkit.loads.plan_verification import load_problems
from testkit.loads.small_planner import loads, planned, problem, slot

POSED = problem(*(slot(i) for i in range(6)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(load_problems())
def test_a_plan_and_its_moves_are_read_as_they_were_written(tmp_path: Path, drawn: tuple[Problem, Any]) -> None:
    store = Store.open(str(tmp_path))
    plan, moves = planned(*drawn)
    assert write_plan(store, plan, reversed(moves)) == f"plans/{plan.digest}"
    assert read_plan(store, plan.digest) == plan
    assert tuple(read_moves(store, plan.digest)) == moves


def test_the_history_tells_whole_plans_by_the_age_of_their_problems(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    made = []
    for day in (2, 0, 1):
        posed = replace(POSED, header=replace(POSED.header, made_at=POSED.header.made_at + timedelta(days=day)))
        plan, moves = planned(posed, loads(posed, 100.0, 50.0))
        write_plan(store, plan, moves)
        made.append(plan)
    store.write_bytes("plans/damaged/plan.json", b"{")
    store.write_bytes("plans/half/moves/part-00000.parquet", b"")
    store.write_bytes("plans/notes.txt", b"hello")
    assert plans(store) == tuple(sorted(made, key=lambda plan: plan.made_at))
    assert plans(Store.open(str(tmp_path / "elsewhere"))) == ()


def test_a_plan_that_was_put_into_another_folder_is_refused(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    plan, moves = planned(POSED, loads(POSED, 100.0, 50.0))
    write_plan(store, plan, moves)
    shutil.copytree(tmp_path / "plans" / plan.digest, tmp_path / "plans" / "0123456789abcdef")
    with pytest.raises(StoreDamaged, match="the file belongs to another plan"):
        read_plan(store, "0123456789abcdef")


def test_a_plan_that_is_not_there_is_named(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    with pytest.raises(StoreMissing, match=r"plans/gone/plan\.json"):
        read_plan(store, "gone")
    with pytest.raises(StoreMissing, match=r"plans/gone/moves: there are no moves"):
        list(read_moves(store, "gone"))


@pytest.mark.parametrize("text", ["", "null", '{"format": 7}', '{"format": 1}'])
def test_a_plan_that_cannot_be_read_is_named_by_file(tmp_path: Path, text: str) -> None:
    store = Store.open(str(tmp_path))
    store.write_bytes("plans/x/plan.json", text.encode())
    with pytest.raises(StoreDamaged, match=r"plans/x/plan\.json: "):
        read_plan(store, "x")


def test_the_problem_of_a_plan_is_found_by_its_terms(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    plan, _ = planned(POSED, loads(POSED, 100.0, 50.0))
    write_problem(store, "monday", replace(POSED, header=replace(POSED.header, policy="kafka/other")))
    store.write_bytes("problems/damaged/problem.json", b"{")
    assert source(store, plan) is None
    write_problem(store, "tuesday", POSED)
    assert source(store, plan) == "tuesday"
