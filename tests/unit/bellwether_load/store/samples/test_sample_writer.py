import pytest

from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.sample_writer import SampleWriter
from bellwether_load.store.store_errors import StoreUnusable
from testkit.loads.sample_rounds import CLUSTER, DAY, held, rows, told


def test_rounds_are_written_and_their_size_is_returned(store):
    writer = SampleWriter(store)
    size = writer.write(rows(0)) + writer.write(rows(1))
    assert held(store) == told(rows(0)) + told(rows(1))
    assert sum(file.size for file in store.list()) == size


def test_two_writers_of_one_moment_take_nothing_from_each_other(store):
    for _ in range(2):
        SampleWriter(store).write(rows(0))
    assert held(store) == told(rows(0)) + told(rows(0))


def test_waiting_for_the_cluster_is_reported_once(store):
    begun = []
    writer = SampleWriter(store, begun.append)
    for minute in range(3):
        writer.write(rows(minute))
    assert begun == [CLUSTER]


def test_a_store_of_another_cluster_is_refused_and_left_as_it_is(store):
    SampleWriter(store).write(rows(0, cluster_id="another"))
    before = store.list()
    begun = []
    with pytest.raises(
        StoreUnusable, match=f"has samples of Kafka cluster another, and this is {CLUSTER}: use a separate"
    ):
        SampleWriter(store, begun.append).write(rows(1))
    assert (store.list(), begun) == (before, [])


def test_a_store_with_old_samples_of_this_cluster_is_gone_on_with(store):
    SampleWriter(store).write(rows(0))
    SampleWriter(store).write(rows(1440))
    assert len(sample_files.days(store)) == 2


def test_damaged_files_of_the_newest_day_do_not_hide_whose_store_it_is(store):
    SampleWriter(store).write(rows(0, cluster_id="another"))
    store.write_bytes("samples/date=2021-11-22/000000-0a1b2c3d.parquet", b"half")
    with pytest.raises(StoreUnusable, match="has samples of Kafka cluster another"):
        SampleWriter(store).write(rows(1))
    assert len(sample_files.current_files(store, DAY)) == 1
