from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from bellwether_load.plan.documents import PROBLEM
from bellwether_load.plan.problem import Problem
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.problem_files import (
    SCHEMA,
    read_problem,
    read_terms,
    write_columns,
    write_problem,
)
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing
from testkit.loads.digest_lines import input_digest
from testkit.loads.plan_verification import load_problems
from testkit.loads.small_planner import problem, slot


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(load_problems())
def test_a_problem_is_read_as_it_was_written(tmp_path: Path, drawn: tuple[Problem, Any]) -> None:
    store = Store.open(str(tmp_path))
    assert write_problem(store, "main", drawn[0]) == input_digest(drawn[0])
    assert read_problem(store, "main") == drawn[0]


def test_a_table_of_partitions_is_put_into_order(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    posed = problem(slot(0), slot(1), slot(10), slot(0, topic="a"))
    rows = list(reversed(posed.partitions))
    columns = zip(*rows, strict=True)
    table = pa.table([pa.array(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)
    assert write_columns(store, "main", posed.header, table) == input_digest(posed)
    assert read_problem(store, "main") == posed


def test_the_terms_are_written_last_so_that_a_problem_that_has_them_is_whole(tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    class Failing(Store):
        def write_bytes(self, path: str, data: bytes) -> None:
            if path.endswith(".parquet"):
                return super().write_bytes(path, data)
            assert self.exists("problems/main/partitions.parquet")
            raise Killed(path, data)

    opened = Store.open(str(tmp_path))
    with pytest.raises(Killed):
        write_problem(Failing(opened._system, opened._base, opened._shown), "main", problem(slot(0)))
    with pytest.raises(StoreMissing):
        read_terms(opened, "main")


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"format": 1}', '{"format": 2}', "\xff", "[" * 100_000])
def test_terms_that_cannot_be_read_are_named_by_file(tmp_path: Path, text: str) -> None:
    store = Store.open(str(tmp_path))
    store.write_bytes("problems/main/problem.json", text.encode("latin-1"))
    with pytest.raises(StoreDamaged, match=r"problems/main/problem\.json: "):
        read_terms(store, "main")


def test_truncated_partitions_are_named_by_file(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    write_problem(store, "main", problem(*(slot(i) for i in range(100))))
    path = tmp_path / "problems" / "main" / "partitions.parquet"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(StoreDamaged, match=r"partitions\.parquet"):
        read_problem(store, "main")


def test_the_json_is_readable_by_a_person(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    posed = problem(slot(0))
    write_problem(store, "main", posed)
    text = (tmp_path / "problems" / "main" / "problem.json").read_text()
    assert json.loads(text) == PROBLEM.to_json(posed.header)
    assert len(text.splitlines()) > 10
