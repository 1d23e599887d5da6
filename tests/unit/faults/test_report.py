"""The report: a run of a few scenarios replaces their rows, a whole run begins anew."""

from __future__ import annotations

import json
from pathlib import Path

from faults.report import merged, save, times

NAMES = ("a", "b", "c")


def row(name: str, *, ok: bool = True, healthy: int = 0, at: str = "now") -> dict[str, object]:
    return {"scenario": name, "ok": ok, "healthy_brokers_demoted": healthy, "at": at}


def test_rows_stand_in_the_tables_order_and_are_counted() -> None:
    report = merged([], [row("c", ok=False, healthy=1), row("a")], NAMES)
    assert [one["scenario"] for one in report["results"]] == ["a", "c"]
    assert (report["scenarios"], report["of"], report["right"], report["healthy_brokers_demoted"]) == (2, 3, 1, 1)


def test_a_scenario_that_there_is_no_more_leaves_the_report() -> None:
    assert merged([row("gone")], [row("a")], NAMES)["scenarios"] == 1


def test_a_partial_run_replaces_its_own_rows_alone(tmp_path: Path) -> None:
    path = tmp_path / "reports" / "faults.json"
    save(path, [row("a", at="then"), row("b", at="then")], NAMES, fresh=True)
    save(path, [row("b", at="now")], NAMES, fresh=False)
    results = json.loads(path.read_text())["results"]
    assert [(one["scenario"], one["at"]) for one in results] == [("a", "then"), ("b", "now")]


def test_a_whole_run_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "faults.json"
    save(path, [row("a", at="then")], NAMES, fresh=True)
    save(path, [row("b")], NAMES, fresh=True)
    assert [one["scenario"] for one in json.loads(path.read_text())["results"]] == ["b"]


def played(name: str, zero: float | None, *, ok: bool = True) -> dict[str, object]:
    seconds = {"seconds_to_verdict": 2.0, "seconds_to_zero_leaders": zero}
    return {"scenario": name, "what": "w", "partitions": 9, "ok": ok, "load": 1.5, "commit": "c", **seconds}


def test_times_are_given_for_each_scenario_with_median_and_worst() -> None:
    first, second = times([played("a", 3.0), played("b", 5.0), played("a", 4.0), played("a", 9.0)])
    assert (first["scenario"], first["runs"], first["right"]) == ("a", 3, 3)
    assert first["to_zero_leaders"] == {"median": 4.0, "worst": 9.0, "all": [3.0, 4.0, 9.0]}
    assert second["to_zero_leaders"]["median"] == 5.0


def test_a_run_that_never_came_to_zero_leaders_leaves_no_worst_time() -> None:
    (found,) = times([played("a", 3.0), played("a", None, ok=False)])
    assert (found["right"], found["to_zero_leaders"]["worst"]) == (1, None)
