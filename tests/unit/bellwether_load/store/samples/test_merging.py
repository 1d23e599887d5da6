from collections import Counter

import pyarrow as pa
import pytest

from bellwether_load.store.samples import filenames, sample_files
from bellwether_load.store.samples.merging import merged
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing
from testkit.loads.sample_rounds import CLUSTER, rows, told


def write(store, one, tag="0a1b2c3d", group=sample_files.ROUND_GROUP_ROWS):
    path = filenames.round_path(one.at, tag)
    store.write_table(path, sample_files.table(one), row_group_size=group, **sample_files.SHORT_RUNS)
    return path


def keys(store, paths):
    """Topic, partition and time of every merged row, in the order in which they come."""
    found = []
    for table in merged(store, paths):
        columns = [table.column(name).to_pylist() for name in ("topic", "partition", "at")]
        found += list(zip(*columns, strict=True))
    return found


@pytest.mark.parametrize("group", [1, 2, 3, 7, 1000])
def test_rows_come_by_topic_partition_and_time_whatever_the_row_groups(store, group):
    rounds = [rows(minute, partitions=11) for minute in (3, 1, 2)]
    found = keys(store, [write(store, one, group=group) for one in rounds])
    assert found == sorted(found)
    assert len(found) == 33


def test_every_column_keeps_its_values(store):
    rounds = [rows(minute, partitions=9) for minute in range(4)]
    paths = [write(store, one, group=2) for one in rounds]
    whole = pa.concat_tables(merged(store, paths)).unify_dictionaries()
    found = Counter(tuple(row.values()) for row in whole.select(range(1, 9)).to_pylist())
    wanted = Counter(
        row
        for one in rounds
        for row in zip(
            one.topic,
            one.topic_id,
            one.partition,
            one.leader,
            one.leader_epoch,
            one.end_offset,
            one.log_bytes,
            one.consume,
            strict=True,
        )
    )
    assert found == wanted


def test_topics_that_come_and_go_between_rounds_are_in_their_place(store):
    few, many = rows(0, partitions=2), rows(1, partitions=40)
    found = keys(store, [write(store, one, group=3) for one in (few, many, rows(2, partitions=0))])
    assert found == sorted(found)
    assert len(found) == 42


def test_one_partition_with_more_rows_than_a_row_group_goes_on_in_the_next(store):
    one = rows(0, partitions=1)
    same = [one.__class__(**{**fields(one), "topic": ["t"] * 9, **{name: [0] * 9 for name in NUMBERS}})]
    paths = [write(store, piece, tag=f"0000000{n}", group=2) for n, piece in enumerate(same * 2)]
    assert len(keys(store, paths)) == 18


NUMBERS = ("partition", "leader", "leader_epoch", "end_offset", "log_bytes", "consume")


def fields(one):
    return {"cluster_id": CLUSTER, "at": one.at, "topic_id": ["x" * 22] * 9}


def test_names_are_ordered_as_their_letters_are(store):
    one = rows(0, partitions=3)
    named = one.__class__(
        **{name: getattr(one, name) for name in one.__slots__ if name != "topic"}, topic=["B", "a", "é"]
    )
    found = keys(store, [write(store, named, tag="00000001"), write(store, named, tag="00000002")])
    assert [topic for topic, _, _ in found] == ["B", "B", "a", "a", "é", "é"]


def test_a_file_that_is_not_sorted_loses_no_row(store):
    one = rows(0, partitions=8)
    backwards = one.__class__(
        cluster_id=CLUSTER,
        at=one.at,
        **{name: list(reversed(getattr(one, name))) for name in one.__slots__ if name not in ("cluster_id", "at")},
    )
    paths = [write(store, backwards, group=3), write(store, rows(1, partitions=8), group=3)]
    found = Counter((topic, partition) for topic, partition, _ in keys(store, paths))
    assert found == Counter({(topic, partition): 2 for _, topic, partition, _ in told(one)})


def test_a_file_that_has_gone_is_missing_and_a_broken_one_is_named(store):
    path = write(store, rows(0, partitions=400), group=100)
    with pytest.raises(StoreMissing):
        list(merged(store, [path, "samples/date=2021-11-21/000100-0a1b2c3d.parquet"]))
    whole = bytearray(store.read_bytes(path))
    whole[200:900] = bytes(700)
    store.write_bytes(path, bytes(whole))
    with pytest.raises(StoreDamaged, match="000000-0a1b2c3d"):
        list(merged(store, [path]))
