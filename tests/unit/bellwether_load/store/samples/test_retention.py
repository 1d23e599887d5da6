from datetime import date, timedelta

import pytest

from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.retention import expire
from testkit.loads.sample_rounds import DAY, rows

TODAY = DAY + timedelta(days=3)


@pytest.fixture
def store(tmp_path):
    found = Store.open(str(tmp_path))
    for day in range(4):
        sample_files.write_round(found, rows(day * 1440), "0a1b2c3d")
    return found


def refuse(day: date, why: str) -> None:
    raise AssertionError(f"{day}: {why}")


def test_days_that_are_too_old_go_with_their_folders(store, tmp_path):
    assert expire(store, 2, TODAY, refuse) == (DAY, DAY + timedelta(days=1))
    assert [day.day for day in sample_files.days(store)] == [23, 24]
    assert len(list((tmp_path / "samples").iterdir())) == 2


def test_what_is_young_enough_stays(store):
    before = store.list()
    assert expire(store, 4, TODAY, refuse) == ()
    assert expire(store, 14, TODAY, refuse) == ()
    assert store.list() == before


def test_foreign_files_stay_and_keep_their_folder(store):
    store.write_bytes("samples/date=2021-11-21/notes.txt", b"mine")
    store.write_bytes("samples/keep/x.parquet", b"")
    store.write_bytes("loads/main/part.parquet", b"")
    expire(store, 1, TODAY, refuse)
    assert [file.path for file in store.list()] == [
        "loads/main/part.parquet",
        "samples/date=2021-11-21/notes.txt",
        "samples/date=2021-11-24/000000-0a1b2c3d.parquet",
        "samples/keep/x.parquet",
    ]


def test_interrupted_writes_go_with_their_day(store):
    store.write_bytes("samples/date=2021-11-21/_tmp-12345678-x.parquet", b"half")
    expire(store, 3, TODAY, refuse)
    assert store.list(temporary=True) == ()
    assert not store.exists("samples/date=2021-11-21")


def test_days_that_are_yet_to_come_are_named_and_stay(store):
    sample_files.write_round(store, rows(500 * 1440), "0a1b2c3d")
    said = {}
    assert expire(store, 4, TODAY, said.__setitem__) == ()
    assert list(said) == [date(2023, 4, 5)]
    assert "is in the future, so a clock was wrong" in said[date(2023, 4, 5)]


def test_a_store_without_samples_has_nothing_to_remove(tmp_path):
    assert expire(Store.open(str(tmp_path / "nowhere")), 1, TODAY, refuse) == ()
