from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.sample_files import SampleWriter, list_rounds, require_format, write_round
from bellwether_load.store.store_errors import StoreDamaged, StoreNewer, StoreUnusable
from testkit.loads.sample_rounds import CLUSTER, MIDNIGHT, held, noted, read_table, rows

FOLDER = f"samples/cluster={CLUSTER}/hour=2021-11-21T01"
FORMAT = {b"bellwether.format": b"samples/3", b"bellwether.cluster_id": CLUSTER.encode()}


def test_a_round_is_read_again_as_it_was_written(store: Store) -> None:
    one = rows(61, partitions=40)
    size = write_round(store, one, "0a1b2c3d")
    (file,) = list_rounds(store).rounds
    assert (file.path, file.cluster_id, file.size) == (f"{FOLDER}/0100-0a1b2c3d.parquet", CLUSTER, size)
    assert file.at == int(one.at.timestamp())
    assert held(store) == noted(one)
    found = read_table(store, file.path)
    assert found.column("topic_id").to_pylist() == list(one.topic_id)
    assert found.column("leader").to_pylist() == list(one.leader)
    assert found.column("leader_epoch").to_pylist() == list(one.leader_epoch)
    assert found.column("log_bytes").to_pylist() == list(one.log_bytes)
    assert found.column("consume_bytes_per_second").to_pylist() == list(one.consume)
    assert found.column("at")[0].as_py() == datetime(2021, 11, 21, 1, 1, tzinfo=UTC)
    require_format(found.schema.metadata, sample_files.FORMAT, CLUSTER, file.path)


def test_row_groups_have_the_topics_of_their_own_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sample_files._OPTIONS, "row_group_size", 10)
    names = [f"topic-{number:02}" for number in range(40)]
    write_round(store, replace(rows(partitions=40), topic=names))
    with store.parquet(list_rounds(store).rounds[0].path) as parquet:
        for group in range(4):
            column = parquet.read_row_group(group, columns=["topic"]).column("topic")
            assert column.chunk(0).dictionary.to_pylist() == names[10 * group : 10 * group + 10]


def test_a_cluster_without_partitions_has_rounds_without_rows(store: Store) -> None:
    write_round(store, rows(partitions=0))
    assert (len(list_rounds(store).rounds), held(store)) == (1, noted(rows(partitions=0)))


def test_a_store_that_is_not_there_has_no_rounds(tmp_path) -> None:
    assert list_rounds(Store.open(str(tmp_path / "nowhere"))).rounds == ()


def test_any_cluster_id_makes_a_folder_of_its_own(store: Store) -> None:
    for cluster in ("a/b", "..", "ü =", CLUSTER):
        write_round(store, rows(cluster_id=cluster))
    assert {file.cluster_id for file in list_rounds(store).rounds} == {"a/b", "..", "ü =", CLUSTER}
    assert len(list_rounds(store, cluster_id="a/b").rounds) == 1


def test_rounds_of_a_clock_that_was_ahead_are_listed_apart(store: Store) -> None:
    for minute in (0, 9, 12, 1440):
        write_round(store, rows(minute))
    found = list_rounds(store, MIDNIGHT)
    assert [len(found.rounds), len(found.ahead)] == [2, 2]


@pytest.mark.parametrize("name", ["README.txt", "part-00000.parquet", "0560-0a1b2c3d.parquet"])
def test_files_with_other_names_are_foreign(store: Store, name: str) -> None:
    store.write_bytes(f"{FOLDER}/{name}", b"hello")
    assert list_rounds(store).foreign == (f"{FOLDER}/{name}",)


def test_a_file_that_is_being_written_is_no_file(store: Store) -> None:
    store.write_bytes(f"{FOLDER}/_tmp-12345678-0000-0a1b2c3d.parquet", b"half")
    assert list_rounds(store) == list_rounds(Store.open(f"{store}/nowhere"))


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ({b"bellwether.format": b"samples/4"}, StoreNewer, "later release than this one .*: upgrade"),
        ({b"bellwether.format": b"samples/2"}, StoreDamaged, "is not in the format samples/3 .samples/2.. Move it out"),
        ({b"bellwether.format": b"rollups/9"}, StoreDamaged, "is not in the format samples/3"),
        ({b"bellwether.cluster_id": b"another"}, StoreDamaged, "of Kafka cluster another, not of"),
    ],
)
def test_a_later_format_is_an_error_and_others_are_left_out(said, error, words: str) -> None:
    with pytest.raises(error, match=words):
        require_format(FORMAT | said, "samples/3", CLUSTER, "x")
    require_format(FORMAT, "samples/3", CLUSTER, "x")


def test_two_writers_of_one_moment_take_nothing_from_each_other(store: Store) -> None:
    for _ in range(2):
        SampleWriter(store).write(rows(0))
    assert held(store) == noted(rows(0)) + noted(rows(0))


def test_a_store_of_another_cluster_is_refused_and_left_as_it_is(store: Store) -> None:
    SampleWriter(store).write(rows(0, cluster_id="another"))
    before = store.list()
    with pytest.raises(StoreUnusable, match=f"of Kafka cluster another, and this is {CLUSTER}: use a separate"):
        SampleWriter(store).write(rows(1))
    assert store.list() == before


def test_a_sample_costs_fourteen_bytes_at_most(store: Store) -> None:
    chance, columns = random.Random(1), {name: [] for name in sample_files.SCHEMA.names}
    for partition in range(20_000):
        rate, size = chance.lognormvariate(5, 2), chance.lognormvariate(6, 1)
        end = int(chance.randrange(10**6) * rate)
        name = (f"orders-{partition // 50:05}", f"{partition // 50:022}", partition % 50)
        row = (0, *name, partition % 100, 3, end, int(end * size), None, None)
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    table = pa.table(columns, schema=sample_files.SCHEMA)
    assert sample_files.write_table(store, CLUSTER, MIDNIGHT + timedelta(minutes=1), table) / 20_000 <= 14
