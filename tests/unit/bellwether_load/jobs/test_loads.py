"""What the command says and does before any JVM is started; tests/spark has the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from bellwether_load.__main__ import main
from bellwether_load.jobs.load_writer import SCHEMA
from bellwether_load.store.filesystems import Store
from testkit.loads.load_histories import steady
from testkit.loads.sample_files import write_rounds


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["loads", *arguments])


def test_without_any_history_the_loads_are_empty_and_the_status_says_so(tmp_path: Path):
    result = run("--store", str(tmp_path), "--name", "week")
    assert (result.exit_code, result.stdout) == (3, "loads/week\n")
    assert "loads/week is empty: this period has no usable samples" in result.stderr
    assert "a partition needs two samples, 30 to 600 s apart, and a log that grew" in result.stderr
    assert pq.read_schema(tmp_path / "loads/week/part-00000.parquet").equals(SCHEMA)
    assert pq.read_table(tmp_path / "loads/week").num_rows == 0


def test_a_mistyped_store_is_refused_and_not_created(tmp_path: Path):
    result = run("--store", str(tmp_path / "mistyped"), "--name", "week")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"error: {tmp_path}/mistyped does not exist: correct its URI, or start the sampler" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_empty_result_takes_the_place_of_an_older_one(tmp_path: Path):
    store = Store.open(str(tmp_path))
    store.write_table("loads/week/part-00000.parquet", SCHEMA.empty_table())
    store.write_table("loads/week/part-00001.parquet", SCHEMA.empty_table())
    assert run("--store", str(tmp_path), "--name", "week").exit_code == 3
    assert [file.path for file in store.list("loads")] == ["loads/week/part-00000.parquet"]


def test_missing_days_are_named(tmp_path: Path):
    result = run("--store", str(tmp_path), "--name", "x", "--from", "2026-11-19", "--to", "2026-11-20")
    assert result.exit_code == 3
    assert "no samples of 2026-11-19, 2026-11-20" in result.stderr
    said = json.loads((tmp_path / "loads/x/_loads.json").read_text())
    assert said["missingDays"] == ["2026-11-19", "2026-11-20"]
    assert (said["from"], said["to"]) == ("2026-11-19T00:00:00Z", "2026-11-21T00:00:00Z")
    assert (said["format"], said["samples"], said["loads"]) == (1, 0, 0)


def test_damaged_files_are_named(tmp_path: Path):
    (path,) = write_rounds(Store.open(str(tmp_path)), {("apples", 0): steady(1)})
    (tmp_path / path).write_text("no Parquet")
    result = run("--store", str(tmp_path), "--name", "x")
    assert result.exit_code == 3
    assert f"skipped: {tmp_path}/{path}: is damaged or not a Parquet file" in result.stderr
    assert len(json.loads((tmp_path / "loads/x/_loads.json").read_text())["skipped"]) == 1


@pytest.mark.parametrize("name", ["", "_hidden", ".hidden", "../up", "a/b", "a b", "x" * 201])
def test_a_name_that_would_be_no_folder_of_loads_is_refused(tmp_path: Path, name: str):
    result = run("--store", str(tmp_path), "--name", name)
    assert result.exit_code == 1
    assert "use letters, digits, dots, dashes and underscores" in result.stderr
    assert not (tmp_path / "loads").exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--days", "0"), "--days must be at least 1"),
        (("--from", "2026-11-20", "--to", "2026-11-19"), "is not before"),
        (("--shortest-seconds", "700"), "longest (600 s) must not be less than shortest (700 s)"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_read(tmp_path: Path, arguments: tuple[str, ...], word: str):
    result = run("--store", str(tmp_path), "--name", "x", *arguments)
    assert result.exit_code == 1
    assert f"error: {word}" in result.stderr or word in result.stderr
    assert not (tmp_path / "loads").exists()


@pytest.mark.parametrize(
    "arguments",
    [("--store", "x"), ("--name", "x"), ("--store", "x", "--name", "x", "--from", "yesterday"), ("--days", "many")],
)
def test_wrong_arguments_have_a_status_of_their_own(arguments: tuple[str, ...]):
    assert run(*arguments).exit_code == 2


def test_an_invalid_day_is_refused_with_the_right_form():
    result = run("--store", "x", "--name", "x", "--from", "21.11.2026")
    assert "'21.11.2026' is not a day or time: use 2026-11-21, or 2026-11-21T12:00:00 (UTC)" in result.stderr


def test_two_clusters_in_one_store_are_refused(tmp_path: Path):
    store = Store.open(str(tmp_path))
    write_rounds(store, {("apples", 0): steady(1)}, "one")
    write_rounds(store, {("apples", 0): steady(1, first=5)}, "two")
    result = run("--store", str(tmp_path), "--name", "x")
    assert result.exit_code == 1
    assert "Select one with --cluster" in result.stderr


def test_without_java_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_rounds(Store.open(str(tmp_path)), {("apples", 0): steady(2)})
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    result = run("--store", str(tmp_path), "--name", "x")
    assert result.exit_code == 1
    assert "Spark needs a Java runtime, and there is none" in result.stderr
    assert "Install a full Java 17" in result.stderr


def test_both_jobs_are_listed_without_starting_spark():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert "loads" in result.output
    assert "plan" in result.output


def test_a_job_that_does_not_exist_is_a_wrong_argument():
    assert CliRunner().invoke(main, ["nothing"]).exit_code == 2
