"""The same store in a bucket: objects that are whole or not there, and errors without the keys."""

from datetime import timedelta

import pytest
from testkit.loads.object_store import KEY, SECRET, Bucket

from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.compaction import Compactor, Stopped
from bellwether_load.store.samples.retention import expire
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing, StoreUnavailable, StoreUnusable
from testkit.loads.sample_rounds import CLUSTER, DAY, MIDNIGHT, held, named, rows, told

NEXT_DAY = MIDNIGHT + timedelta(days=1, minutes=10)


@pytest.fixture
def bucket():
    with Bucket() as found:
        yield found


@pytest.fixture
def store(bucket):
    return Store.open(bucket.uri)


def ignore(path, why):
    """Nothing foreign is there."""


def test_files_are_written_listed_read_and_deleted(store, bucket):
    store.write_bytes("a/b.json", b"{}")
    store.write_bytes("a/_tmp-c", b"")
    assert sorted(bucket.objects) == ["store/a/_tmp-c", "store/a/b.json"]
    assert [(file.path, file.size) for file in store.list()] == [("a/b.json", 2)]
    assert [(file.path, file.size) for file in store.list("a")] == [("a/b.json", 2)]
    assert store.read_bytes("a/b.json") == b"{}"
    assert store.exists("a/b.json")
    store.delete("a/b.json")
    assert not store.exists("a/b.json")
    with pytest.raises(StoreMissing):
        store.read_bytes("a/b.json")


def test_a_whole_file_is_put_at_once_under_its_own_name(store, bucket):
    seen = []
    bucket.refuse = lambda method, key: seen.append((method, key)) or ""
    store.write_bytes("a/b.json", b"{}")
    assert "_tmp-" not in str(seen)


def test_rounds_are_kept_compacted_and_removed(store):
    wanted = told(rows(0)) + told(rows(1)) + told(rows(2))
    for minute in range(3):
        sample_files.write_round(store, rows(minute), f"{minute:08x}")
    assert held(store) == wanted
    Compactor(store, CLUSTER, ignore).run(NEXT_DAY)
    assert len(sample_files.current_files(store, DAY)) == 1
    assert named(store) == wanted
    assert held(store) == wanted
    later = max(file.modified for file in store.list()) + timedelta(hours=1)
    assert Compactor(store, CLUSTER, ignore).run(later).removed == 3
    assert held(store) == wanted
    sample_files.write_round(store, rows(1440), "0a1b2c3d")
    assert expire(store, 1, DAY + timedelta(days=1), ignore) == (DAY,)
    assert sample_files.days(store) == (DAY + timedelta(days=1),)


def test_a_large_file_goes_in_parts_and_comes_back_whole(store, bucket):
    data = bytes(range(256)) * 80_000
    with store.stream("large") as file:
        for start in range(0, len(data), 1 << 20):
            file.write(data[start : start + (1 << 20)])
        assert store.list() == ()
    assert store.read_bytes("large") == data
    assert len(next(iter(bucket.uploads.values()))) > 1


def test_a_compaction_that_is_broken_off_leaves_nothing_that_counts(store, bucket):
    for minute in range(3):
        sample_files.write_round(store, rows(minute), f"{minute:08x}")
    # The process ends right after pyarrow has completed what it was broken off in: nothing removes it.
    bucket.refuse = lambda method, _key: "AccessDenied" if method == "DELETE" else ""
    with pytest.raises(Stopped):
        Compactor(store, CLUSTER, ignore, stopped=lambda: True).run(NEXT_DAY)
    assert len(sample_files.current_files(store, DAY)) == 3
    assert any("compacted" in key for key in bucket.objects)
    assert held(store) == told(rows(0)) + told(rows(1)) + told(rows(2))


def test_a_bucket_that_refuses_is_named_without_the_keys(store, bucket):
    bucket.refuse = lambda _method, _key: "AccessDenied"
    for refused in (lambda: store.write_bytes("x", b""), lambda: store.list("samples")):
        with pytest.raises(StoreUnusable, match="Grant this user permission") as error:
            refused()
        assert "s3://bucket/store" in str(error.value)
        assert KEY not in str(error.value)
        assert SECRET not in str(error.value)


def test_a_bucket_that_is_not_there_is_named(store, bucket):
    bucket.refuse = lambda method, _key: "NoSuchBucket" if method in ("PUT", "POST") else ""
    with pytest.raises((StoreUnusable, StoreUnavailable), match="s3://bucket/store/x: cannot be written"):
        store.write_bytes("x", b"1")


def test_damage_in_a_bucket_is_no_fault_of_the_network(store):
    store.write_bytes("x.parquet", b"no Parquet" * 20)
    with pytest.raises(StoreDamaged):
        store.read_table("x.parquet")
