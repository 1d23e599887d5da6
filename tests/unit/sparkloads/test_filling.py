from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bellwether.adapters.store.filesystems import Store
from bellwether.adapters.store.samples.sample_files import SCHEMA, current_files
from bellwether_load.histories.rules import Rules
from bellwether_load.jobs.reading import Portion, Window, read_portion
from bellwether_load.jobs.writing import SCHEMA as LOADS
from bellwether_load.transforms.loads import COLUMNS, measure_batches
from sparkloads.filling import fill_day, fill_hours
from sparkloads.traffic import Cluster
from sparkloads.truth import Errors, worst_errors

PARTITIONS = 60


def tables(directory: Path) -> list[Any]:
    store = Store.open(str(directory))
    return [store.read_table(path) for path in current_files(store, date(2026, 11, 20))]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("day")
    fill_day(folder, Cluster(PARTITIONS, 9))
    return folder


def test_the_files_are_the_samplers_and_hold_a_day(filled: Path):
    (table,) = tables(filled)
    assert table.cast(SCHEMA).num_rows == table.num_rows
    assert table.num_rows == PARTITIONS * 1440


def test_rows_are_sorted_as_compaction_sorts_them(filled: Path):
    (table,) = tables(filled)
    rows = list(zip(*(table.column(name).to_pylist() for name in ("topic", "partition", "at")), strict=True))
    assert rows == sorted(rows)


def test_by_day_and_by_hour_it_is_the_same(filled: Path, tmp_path: Path):
    sizes = fill_hours(tmp_path, Cluster(PARTITIONS, 9))
    hours = tables(tmp_path)
    assert (sizes.files, sizes.rows, len(hours)) == (24, PARTITIONS * 1440, 24)
    order = [("topic", "ascending"), ("partition", "ascending"), ("at", "ascending")]
    plain = pa.schema([*(f if n not in (1, 2) else pa.field(f.name, pa.string()) for n, f in enumerate(SCHEMA))])
    whole = pa.concat_tables([hour.cast(plain) for hour in hours]).sort_by(order)
    assert whole.equals(tables(filled)[0].cast(plain))


def test_what_is_said_of_the_files_is_so(tmp_path: Path):
    said = fill_day(tmp_path, Cluster(5, 1))
    (path,) = tmp_path.rglob("*.parquet")
    assert (said.rows, said.bytes, said.files) == (5 * 1440, path.stat().st_size, 1)


def test_measured_loads_are_close_to_the_true_ones_and_errors_are_noticed(tmp_path: Path):
    cluster = Cluster(PARTITIONS, 9)
    fill_day(tmp_path, cluster)
    store = Store.open(str(tmp_path))
    (path,) = current_files(store, date(2026, 11, 20))
    batches = read_portion(store, Portion((path,), True), Window(), print)
    found = pa.Table.from_batches(list(measure_batches(batches, Rules())))
    store.write_table("loads/x/part.parquet", found.select(COLUMNS))
    errors = worst_errors(tmp_path / "loads" / "x", cluster)
    assert errors.median < 0.05
    assert errors.p95 < 0.05
    doubled = pa.array(np.asarray(found.column("produce_p95").to_numpy()) * 2)
    wrong = found.set_column(found.schema.names.index("produce_p95"), "produce_p95", doubled)
    store.write_table("loads/x/part.parquet", wrong.select(COLUMNS))
    assert worst_errors(tmp_path / "loads" / "x", cluster) == Errors(errors.median, pytest.approx(1, abs=0.1))


def test_a_partition_without_a_load_is_an_error(tmp_path: Path):
    cluster = Cluster(PARTITIONS, 9)
    fill_day(tmp_path, cluster)
    Store.open(str(tmp_path)).write_table("loads/x/part.parquet", LOADS.empty_table())
    with pytest.raises(LookupError):
        worst_errors(tmp_path / "loads" / "x", cluster)
