"""What the command says and does before any JVM is started; tests/spark has the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from bellwether_load.__main__ import main
from bellwether_load.jobs import loads as job
from bellwether_load.jobs.engines import ProcessEngine
from bellwether_load.jobs.load_parts import SCHEMA
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.sample_files import FORMAT_KEY
from testkit.loads.load_histories import MIDNIGHT, Sample, steady
from testkit.loads.sample_files import write_rounds
from testkit.loads.sample_rounds import read_table


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["loads", *arguments, "--engine", "process"])


def account(store: Path, name: str = "x") -> dict[str, Any]:
    return dict(json.loads((store / f"loads/{name}/_loads.json").read_text()))


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


def test_skipped_files_are_one_line_with_a_count(tmp_path: Path):
    first, *others = write_rounds(Store.open(str(tmp_path)), {("apples", 0): steady(9)})
    for path in (first, *others[:4]):
        (tmp_path / path).write_text("no Parquet")
    result = run("--store", str(tmp_path), "--name", "x")
    assert result.exit_code == 0
    (said,) = account(tmp_path)["skipped"]
    assert f"skipped: {said}" in result.stderr
    assert said.startswith(f"{tmp_path}/{first}: is damaged or not a Parquet file")
    assert said.endswith("(4 more files)")


def test_loads_say_on_what_they_rest(tmp_path: Path):
    histories = {("apples", 0): steady(70), ("apples", 1): [replace(s, size=None) for s in steady(3)]}
    write_rounds(Store.open(str(tmp_path)), histories)
    assert run("--store", str(tmp_path), "--name", "x").exit_code == 0
    said = account(tmp_path)
    assert (said["since"], said["until"]) == ("2026-11-20T00:00:00Z", "2026-11-20T01:09:00Z")
    assert (said["partitions"], said["loads"], said["withoutSizes"], said["hours"]) == (2, 1, 1, 1)
    assert (said["rollups"], said["samples"], said["logBytes"], said["logBytesWithoutLoad"]) == (2, 73, 69_000, 0)


def test_partitions_that_the_last_day_lacks_are_left_out(tmp_path: Path):
    later = [replace(s, at=s.at + 25 * 3600) for s in steady(70)]
    histories = {("deleted", 0): steady(70), ("kept", 0): [*steady(70), *later], ("new", 0): later}
    write_rounds(Store.open(str(tmp_path)), histories)
    assert run("--store", str(tmp_path), "--name", "x").exit_code == 0
    rows = pq.read_table(tmp_path / "loads/x").to_pylist()
    assert [(row["topic"], row["samples"]) for row in rows] == [("kept", 140), ("new", 70)]
    said = account(tmp_path)
    assert (said["partitions"], said["loads"], said["logBytes"]) == (2, 2, 2 * 69_000)


def test_rollups_alone_give_the_same_loads(tmp_path: Path):
    paths = write_rounds(Store.open(str(tmp_path)), {("apples", 0): steady(70)})
    run("--store", str(tmp_path), "--name", "x")
    for path in paths:
        (tmp_path / path).unlink()
    run("--store", str(tmp_path), "--name", "y")
    first, second = ((tmp_path / f"loads/{name}/part-00000.parquet").read_bytes() for name in "xy")
    assert first == second


def test_samples_of_a_later_format_are_an_error(tmp_path: Path):
    store = Store.open(str(tmp_path))
    (path,) = write_rounds(store, {("apples", 0): steady(1)})
    table = read_table(store, path)
    store.write_table(path, table.replace_schema_metadata({**table.schema.metadata, FORMAT_KEY: b"samples/4"}))
    result = run("--store", str(tmp_path), "--name", "x")
    assert result.exit_code == 1
    assert "has format samples/4, which is of a later release than this one (samples/3): upgrade it" in result.stderr


def test_samples_of_a_clock_one_day_ahead_are_named_and_left_out(tmp_path: Path):
    store, now = Store.open(str(tmp_path)), datetime.fromtimestamp(MIDNIGHT + 7200, UTC)
    write_rounds(store, {("apples", 0): [*steady(60), *(replace(s, at=s.at + 86_400) for s in steady(5))]})
    lines: list[str] = []
    job.run(ProcessEngine(), str(tmp_path), "x", job.DAYS, now, lines.append)
    (said,) = account(tmp_path)["skipped"]
    assert said.endswith(": was sampled by a clock that was ahead (4 more files)")
    assert f"skipped: {said}" in lines
    assert (account(tmp_path)["to"], account(tmp_path)["samples"]) == ("2026-11-20", 60)


def test_loads_are_of_the_days_that_were_asked_for(tmp_path: Path):
    store, now = Store.open(str(tmp_path)), datetime.fromtimestamp(MIDNIGHT + 20 * 86_400, UTC)
    days = [
        Sample(86_400 * day + 60 * minute, 100 * day + minute, 1000 * (100 * day + minute))
        for day in range(9)
        for minute in (0, 1)
    ]
    write_rounds(store, {("apples", 0): days})

    def of(days: int) -> tuple[str, str, int]:
        job.run(ProcessEngine(), str(tmp_path), "x", days, now, lambda _: None)
        said = account(tmp_path)
        return said["from"][5:], said["to"][5:], said["samples"]

    assert of(14) == ("11-20", "11-28", 18)
    assert of(2) == ("11-27", "11-28", 4)


@pytest.mark.parametrize("name", ["", "_hidden", ".hidden", "../up", "a/b", "a b", "x" * 201])
def test_a_name_that_would_be_no_folder_of_loads_is_refused(tmp_path: Path, name: str):
    result = run("--store", str(tmp_path), "--name", name)
    assert result.exit_code == 1
    assert "use letters, digits, dots, dashes and underscores" in result.stderr
    assert not (tmp_path / "loads").exists()


@pytest.mark.parametrize(
    "arguments",
    [("--store", "x"), ("--name", "x"), ("--store", "x", "--name", "x", "--days", "0")],
)
def test_wrong_arguments_have_a_status_of_their_own(arguments: tuple[str, ...]):
    assert run(*arguments).exit_code == 2


def test_two_clusters_in_one_store_are_refused(tmp_path: Path):
    store = Store.open(str(tmp_path))
    write_rounds(store, {("apples", 0): steady(1)}, "one")
    write_rounds(store, {("apples", 0): steady(1, first=5)}, "two")
    result = run("--store", str(tmp_path), "--name", "x")
    assert result.exit_code == 1
    assert "samples of several Kafka clusters: one (samples/cluster=one/" in result.stderr
    assert "Select one with --cluster" in result.stderr
    assert run("--store", str(tmp_path), "--name", "x", "--cluster", "two").exit_code == 3
    assert account(tmp_path)["clusterId"] == "two"
    assert account(tmp_path)["skipped"][0].endswith(": is not of Kafka cluster two")


def test_without_java_it_says_what_to_install(tmp_path: Path):
    write_rounds(Store.open(str(tmp_path)), {("apples", 0): steady(2)})
    # A process of its own: in this one Java may run already.
    command = [sys.executable, "-m", "bellwether_load", "loads", "--store", str(tmp_path), "--name", "x"]
    environment = {**os.environ, "JAVA_HOME": str(tmp_path / "none")}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert "Spark cannot start Java" in result.stderr
    assert "Install a full Java 17" in result.stderr


def test_both_jobs_are_listed_without_starting_spark():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert "loads" in result.output
    assert "plan" in result.output


def test_a_job_that_does_not_exist_is_a_wrong_argument():
    assert CliRunner().invoke(main, ["nothing"]).exit_code == 2
