"""The loads job on both engines, from the sampler's files to the store, against the arithmetic alone."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from bellwether_load.__main__ import main
from bellwether_load.histories.rules import Rules
from bellwether_load.jobs import load_writer, sample_reader
from bellwether_load.jobs import loads as job
from bellwether_load.store.filesystems import Store
from bellwether_load.transforms import loads as transform
from testkit.loads.load_histories import History, deleted, led, measured, steady
from testkit.loads.sample_files import Histories, write_compacted, write_rounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bellwether_load.engines.frames import Engine

HISTORIES: Histories = {
    **{("apples", n): steady(40, messages=10 * n, each=100) for n in range(20)},
    ("pears", 0): led(steady(40, messages=60, each=9), 20, leader=2, larger=10**6),
    ("pears", 1): deleted(steady(40, messages=600, each=5), 20, size=10**4),
    ("pears", 2): steady(1),
    ("plums", 0): [sample for sample in steady(40) if not 10 <= sample.at // 60 < 15],
}


@pytest.fixture
def run(engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Runs the command on the engine; on the session that all tests share, and leaves that one up."""

    @contextmanager
    def shared(*_: Any, **__: Any) -> Iterator[Engine]:
        yield engine

    monkeypatch.setattr(job, "opened", shared)

    def running(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["loads", "--store", str(tmp_path), "--name", "now", *arguments])

    return running


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


def written(store: Store, name: str = "now") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for file in store.list(f"loads/{name}"):
        rows += store.read_table(file.path).to_pylist()
    return rows


def account(tmp_path: Path) -> dict[str, Any]:
    return dict(json.loads((tmp_path / "loads/now/_loads.json").read_text()))


def expected(histories: Histories) -> list[dict[str, Any]]:
    """The rows that must be in the store, by the arithmetic alone."""
    rows = []
    for (topic, partition), history in sorted(histories.items()):
        found = measured(history)
        if found.samples[0] < 2:
            continue
        rates = {"produce": found.produce, "consume": found.consume}
        row: dict[str, Any] = {"topic": topic, "topic_id": f"{topic:_<22}", "partition": partition}
        for name, levels in rates.items():
            for level in ("median", "p95", "peak"):
                value = float(getattr(levels, level)[0])
                row[f"{name}_{level}"] = None if math.isnan(value) else value
        row |= {"messages_median": float(found.messages_median[0]), "samples": int(found.samples[0])}
        row["covered_seconds"] = int(found.covered[0])
        # All samples are of one hour, and none has consumption.
        rows.append({**row, "produce_hours": found.hours.records["produce"].tolist(), "consume_hours": None})
    return rows


@pytest.mark.slow
def test_single_rounds_become_loads(run: Any, store: Store, tmp_path: Path):
    write_rounds(store, HISTORIES)
    result = run()
    assert (result.exit_code, result.stdout) == (0, "loads/now\n")
    assert written(store) == expected(HISTORIES)
    said = account(tmp_path)
    assert (said["partitions"], said["loads"], said["tooFewSamples"], said["withoutSizes"]) == (24, 23, 1, 0)
    assert said["samples"] == sum(map(len, HISTORIES.values()))
    assert (said["skipped"], said["missingDays"], said["refused"]) == ([], [], 0)
    assert "24 partitions; 23 have a load, 1 too few samples" in result.stderr
    assert said["hours"] == 1
    assert "1 of 168 hours of the week are known, each by at least 15 minutes of samples" in result.stderr


@pytest.mark.parametrize(
    "engine", ["process", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow])], indirect=True
)
def test_layouts_portions_and_tasks_do_not_change_a_single_bit(
    run: Any, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_compacted(store, HISTORIES, group_rows=64)
    assert run().exit_code == 0
    once = (tmp_path / "loads/now/part-00000.parquet").read_bytes()
    assert written(store) == expected(HISTORIES)
    monkeypatch.setattr(transform, "TASK_SAMPLES", 400)
    monkeypatch.setattr(sample_reader.portions, "__defaults__", (300,))
    assert run().exit_code == 0
    assert (tmp_path / "loads/now/part-00000.parquet").read_bytes() == once


def test_many_loads_are_written_in_parts_that_are_in_order_together(
    run: Any, store: Store, monkeypatch: pytest.MonkeyPatch
):
    write_rounds(store, HISTORIES)
    assert run().exit_code == 0
    monkeypatch.setattr(load_writer, "PART_ROWS", 5)
    assert run().exit_code == 0
    assert len(store.list("loads/now")) > 1
    assert written(store) == expected(HISTORIES)


def test_fewer_parts_leave_none_of_the_older_ones(run: Any, store: Store):
    write_rounds(store, HISTORIES)
    for number in range(4):
        store.write_table(f"loads/now/part-{number:05}.parquet", load_writer.SCHEMA.empty_table())
    assert run().exit_code == 0
    assert [file.path for file in store.list("loads/now")] == ["loads/now/part-00000.parquet"]
    assert written(store) == expected(HISTORIES)


def test_a_file_that_is_damaged_within_is_named_and_the_others_count(run: Any, store: Store, tmp_path: Path):
    paths = write_rounds(store, HISTORIES)
    data = bytearray((tmp_path / paths[5]).read_bytes())
    data[4 : len(data) // 3] = bytes(len(data) // 3 - 4)
    (tmp_path / paths[5]).write_bytes(data)
    (tmp_path / paths[6]).write_bytes((tmp_path / paths[6]).read_bytes()[:-5])
    result = run()
    assert result.exit_code == 0
    whole = {key: [s for s in history if s.at not in (300, 360)] for key, history in HISTORIES.items()}
    assert written(store) == expected(whole)
    for path in paths[5:7]:
        assert f"skipped: {tmp_path / path}: is damaged or not a Parquet file" in result.stderr
    assert len(account(tmp_path)["skipped"]) == 2


def test_only_what_was_asked_for_is_measured(run: Any, store: Store):
    write_rounds(store, HISTORIES)
    assert run("--from", "2026-11-20T00:05:00", "--to", "2026-11-20T00:21:00").exit_code == 0
    inside = {key: [s for s in history if 300 <= s.at < 1260] for key, history in HISTORIES.items()}
    assert written(store) == expected({key: history for key, history in inside.items() if history})


def test_partitions_without_a_load_give_an_empty_result_that_says_why(run: Any, store: Store, tmp_path: Path):
    unsized: History = [s.__class__(s.at, s.end) for s in steady(40)]
    write_rounds(store, {("apples", 0): unsized, ("apples", 1): steady(1)})
    result = run()
    assert result.exit_code == 3
    assert "0 have a load, 1 too few samples, 1 messages but no size that grew" in result.stderr
    assert written(store) == []
    assert (account(tmp_path)["withoutSizes"], account(tmp_path)["tooFewSamples"]) == (1, 1)


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["process"], indirect=True)
def test_what_spark_reads_of_the_loads_is_the_loads(run: Any, spark: SparkSession, store: Store, tmp_path: Path):
    write_rounds(store, HISTORIES)
    assert run().exit_code == 0
    rows = spark.read.parquet((tmp_path / "loads/now").as_uri()).orderBy("topic", "partition").collect()
    assert [row.asDict() for row in rows] == expected(HISTORIES)
    assert pq.read_schema(tmp_path / "loads/now/part-00000.parquet").equals(load_writer.SCHEMA)


def test_the_transform_takes_stretches_from_any_frame(engine: Engine, store: Store):
    write_rounds(store, HISTORIES)
    paths = tuple(file.path for file in store.list("samples"))
    work = [sample_reader.Portion(paths[:20], False), sample_reader.Portion(paths[20:], False)]
    packed, _ = sample_reader.stretches(engine, str(store), work, sample_reader.Window())
    found = transform.measured(packed.ordered(1, "at"), 10, Rules())
    assert sum(batch.num_rows for batch in found.batches()) == len(HISTORIES)
    loads = list(transform.loads(found).batches())
    assert loads[0].schema.names == [*transform.COLUMNS, "hours"]
    assert sum(batch.num_rows for batch in loads) == len(expected(HISTORIES))


def test_nothing_was_measured_of_no_samples(engine: Engine, store: Store):
    nothing, _ = sample_reader.stretches(engine, str(store), [], sample_reader.Window())
    assert transform.summary(transform.measured(nothing, 10, Rules())) == transform.Summary()
