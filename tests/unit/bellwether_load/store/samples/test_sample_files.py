import random
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.compaction_rules import Rounds
from testkit.loads.sample_rounds import CLUSTER, DAY, held, read, rows, told

FOLDER = "samples/date=2021-11-21"


def compacted(store: Store, path: str, rounds: Rounds) -> None:
    store.write_table(f"{FOLDER}/{path}", sample_files.table(rows(0)).cast(sample_files.described(CLUSTER, rounds)))


def test_a_round_is_read_again_as_it_was_written(store):
    one = rows(61, partitions=40)
    size = sample_files.write_round(store, one, "0a1b2c3d")
    (path,) = sample_files.current_files(store, DAY)
    assert path == f"{FOLDER}/010100-0a1b2c3d.parquet"
    assert held(store) == told(one)
    found = store.read_table(path)
    assert found.column("topic_id").to_pylist() == list(one.topic_id)
    assert found.column("leader").to_pylist() == list(one.leader)
    assert found.column("leader_epoch").to_pylist() == list(one.leader_epoch)
    assert found.column("log_bytes").to_pylist() == list(one.log_bytes)
    assert found.column("consume_bytes_per_second").to_pylist() == list(one.consume)
    assert found.column("at")[0].as_py() == datetime(2021, 11, 21, 1, 1, tzinfo=UTC)
    assert store.list()[0].size == size


def test_a_file_says_its_format_and_its_cluster(store):
    sample_files.write_round(store, rows(), "0a1b2c3d")
    (path,) = sample_files.current_files(store, "2021-11-21")
    metadata = store.read_table(path).schema.metadata
    assert metadata[b"bellwether.format"] == b"samples/1"
    assert metadata[b"bellwether.cluster_id"] == CLUSTER.encode()


def test_a_cluster_without_partitions_has_rounds_without_rows(store):
    sample_files.write_round(store, rows(partitions=0), "0a1b2c3d")
    (path,) = sample_files.current_files(store, DAY)
    assert read(store, path) == []


def test_a_day_or_a_store_that_is_not_there_has_no_files(store, tmp_path):
    assert sample_files.current_files(store, DAY) == ()
    assert sample_files.days(Store.open(str(tmp_path / "nowhere"))) == ()


def test_days_with_samples_are_listed(store):
    for minute in (0, 24 * 60, 1):
        sample_files.write_round(store, rows(minute), "0a1b2c3d")
    store.write_bytes("samples/notes.txt", b"")
    assert [day.isoformat() for day in sample_files.days(store)] == ["2021-11-21", "2021-11-22"]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("README.txt", b"hello", "does not have the name of a sample file"),
        ("part-00000.parquet", b"PAR1", "does not have the name of a sample file"),
        ("000500-0a1b2c3d.parquet", b"", "is damaged or not a Parquet file"),
        ("000500-0a1b2c3d.parquet", b"not Parquet" * 20, "is damaged or not a Parquet file"),
    ],
)
def test_a_foreign_file_is_named_and_left_out(store, name, content, why):
    sample_files.write_round(store, rows(), "0a1b2c3d")
    store.write_bytes(f"{FOLDER}/{name}", content)
    said = {}
    assert sample_files.current_files(store, DAY, said=said.__setitem__) == (f"{FOLDER}/000000-0a1b2c3d.parquet",)
    assert list(said) == [f"{FOLDER}/{name}"]
    assert name in said[f"{FOLDER}/{name}"]
    assert why in said[f"{FOLDER}/{name}"]
    assert "Move it out of the store" in said[f"{FOLDER}/{name}"]


@pytest.mark.parametrize("left", [0.1, 0.5, 0.99])
def test_a_truncated_round_is_named_and_left_out(store, left):
    for minute in (0, 1):
        sample_files.write_round(store, rows(minute), "0a1b2c3d")
    path = f"{FOLDER}/000000-0a1b2c3d.parquet"
    whole = store.read_bytes(path)
    store.write_bytes(path, whole[: int(left * len(whole))])
    said = {}
    assert sample_files.current_files(store, DAY, said=said.__setitem__) == (f"{FOLDER}/000100-0a1b2c3d.parquet",)
    assert list(said) == [path]


def test_a_table_of_another_kind_under_a_rounds_name_is_left_out(store):
    store.write_table(f"{FOLDER}/000000-0a1b2c3d.parquet", pa.table({"x": [1]}))
    said = {}
    assert sample_files.current_files(store, DAY, said=said.__setitem__) == ()
    assert "is not in the format samples/1 (it names none)" in next(iter(said.values()))


def test_samples_of_another_cluster_are_left_out_when_one_is_asked_for(store):
    sample_files.write_round(store, rows(0), "0a1b2c3d")
    sample_files.write_round(store, rows(1, cluster_id="another"), "0a1b2c3d")
    said = {}
    found = sample_files.current_files(store, DAY, cluster_id=CLUSTER, said=said.__setitem__)
    assert found == (f"{FOLDER}/000000-0a1b2c3d.parquet",)
    assert f"has samples of Kafka cluster another, not of {CLUSTER}" in next(iter(said.values()))
    assert len(sample_files.current_files(store, DAY)) == 2


def test_rounds_that_a_compacted_file_holds_are_left_out(store):
    for minute in range(3):
        sample_files.write_round(store, rows(minute), "0a1b2c3d")
    compacted(store, "compacted-0000-0001-0a1b2c3d.parquet", frozenset({"000000-0a1b2c3d", "000100-0a1b2c3d"}))
    assert sample_files.current_files(store, DAY) == (
        f"{FOLDER}/000200-0a1b2c3d.parquet",
        f"{FOLDER}/compacted-0000-0001-0a1b2c3d.parquet",
    )


def test_a_damaged_compacted_file_takes_no_rounds_place(store):
    sample_files.write_round(store, rows(0), "0a1b2c3d")
    store.write_bytes(f"{FOLDER}/compacted-0000-0001-0a1b2c3d.parquet", b"PAR1 and no more")
    assert sample_files.current_files(store, DAY) == (f"{FOLDER}/000000-0a1b2c3d.parquet",)


def test_a_compacted_file_that_was_completed_too_early_takes_no_rounds_place(store):
    sample_files.write_round(store, rows(0), "0a1b2c3d")
    store.write_table(f"{FOLDER}/compacted-0000-0001-0a1b2c3d.parquet", sample_files.table(rows(0)))
    said = {}
    found = sample_files.current_files(store, DAY, said=said.__setitem__)
    assert found == (f"{FOLDER}/000000-0a1b2c3d.parquet",)
    assert "does not list its rounds" in next(iter(said.values()))


@pytest.mark.parametrize("rounds", [frozenset(), frozenset({"no round"}), frozenset({"../../etc/passwd"})])
def test_a_compacted_file_that_does_not_say_what_it_holds_is_left_out(store, rounds):
    compacted(store, "compacted-0000-0001-0a1b2c3d.parquet", rounds)
    said = {}
    assert sample_files.current_files(store, DAY, said=said.__setitem__) == ()
    assert "does not list its rounds" in next(iter(said.values()))


def test_a_file_that_is_being_written_is_no_file(store):
    store.write_bytes(f"{FOLDER}/_tmp-12345678-000000-0a1b2c3d.parquet", b"half")
    said = {}
    assert sample_files.current_files(store, DAY, said=said.__setitem__) == ()
    assert said == {}


@pytest.mark.parametrize(("minutes", "encoding"), [(1440, sample_files.LONG_RUNS), (60, sample_files.SHORT_RUNS)])
def test_a_sample_costs_eight_bytes_at_most_where_traffic_is_as_uneven_as_it_is(store, minutes, encoding):
    chance, count = random.Random(1), 120_000 // minutes
    columns = {name: [] for name in sample_files.SCHEMA.names}
    for partition in range(count):
        rate, size = chance.lognormvariate(5, 2), chance.lognormvariate(6, 1)
        end, log = chance.randrange(10**9), chance.randrange(10**10)
        for minute in range(minutes):
            came = max(0, round(chance.gauss(rate, rate**0.5)))
            end, log = end + came, log + int(came * size * chance.uniform(0.95, 1.05))
            row = (minute * 60, f"orders-{partition // 50:05}", f"{partition // 50:022}", partition % 50)
            for name, value in zip(columns, (*row, partition % 100, 3, end, log, None), strict=True):
                columns[name].append(value)
    store.write_table("x.parquet", pa.table(columns, schema=sample_files.SCHEMA), **encoding)
    assert store.list()[0].size / (count * minutes) <= 6
