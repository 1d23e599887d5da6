import threading
import time
from collections import Counter
from datetime import timedelta

import pytest

from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import filenames, sample_files
from bellwether_load.store.samples.compaction import FORGOTTEN, LINGER, Compactor, Stopped
from bellwether_load.store.store_errors import StoreUnusable
from testkit.loads.sample_rounds import CLUSTER, DAY, MIDNIGHT, held, read, rows, told

NEXT_DAY = MIDNIGHT + timedelta(days=1, minutes=10)
FOLDER = "samples/date=2021-11-21"


def refuse(path, why):
    raise AssertionError(f"{path}: {why}")


def compactor(store, said=refuse):
    return Compactor(store, CLUSTER, said)


def sample(store, *minutes, **wanted):
    """Rounds of these minutes of the day; what they hold."""
    everything = Counter()
    for minute in minutes:
        one = rows(minute, **wanted)
        sample_files.write_round(store, one, f"{minute:08x}")
        everything += told(one)
    return everything


def names(store):
    return [file.path.rsplit("/", 1)[-1][:19] for file in store.list()]


def later(store):
    """Half an hour after the last file was written."""
    return max(file.modified for file in store.list()) + LINGER


def test_an_hours_rounds_become_one_file_with_the_same_samples(store):
    wanted = sample(store, *range(58, 62))
    done = compactor(store).run(MIDNIGHT + timedelta(minutes=70))
    assert (done.written, done.rows) == (1, 12)
    assert len(sample_files.current_files(store, DAY)) == 3
    assert held(store) == wanted


def test_a_compacted_file_is_sorted_and_says_whose_place_it_takes(store):
    sample(store, 1, 0, 2)
    done = compactor(store).run(MIDNIGHT + timedelta(minutes=70))
    (path,) = sample_files.current_files(store, DAY)
    assert path.startswith(f"{FOLDER}/compacted-0000-0002-")
    order = [(topic, partition, at) for at, topic, partition, _ in read(store, path)]
    assert order == sorted(order)
    assert done.bytes == next(file.size for file in store.list() if file.path == path)
    found = sample_files.readable(store, DAY)[path]
    assert (len(found.rounds), found.rows, found.cluster_id) == (3, 18, CLUSTER)


def test_what_was_compacted_goes_half_an_hour_later(store):
    wanted = sample(store, 0, 1)
    compactor(store).run(MIDNIGHT + timedelta(minutes=70))
    (path,) = sample_files.current_files(store, DAY)
    assert compactor(store).run(later(store) - timedelta(seconds=5)).removed == 0
    assert len(store.list()) == 3
    assert compactor(store).run(later(store)).removed == 2
    assert [file.path for file in store.list()] == [path]
    assert held(store) == wanted


def test_a_day_that_is_over_becomes_one_file(store):
    wanted = sample(store, *range(0, 1440, 10))
    compactor(store).run(MIDNIGHT + timedelta(hours=12))
    done = compactor(store).run(NEXT_DAY)
    assert len(sample_files.current_files(store, DAY)) == 1
    assert held(store) == wanted
    assert done.rows >= len(wanted)
    assert compactor(store).run(NEXT_DAY).written == 0


def test_several_days_that_were_missed_are_made_up_for(store):
    wanted = sample(store, *range(0, 3 * 1440, 360))
    compactor(store).run(MIDNIGHT + timedelta(days=4))
    days = sample_files.days(store)
    assert [len(sample_files.current_files(store, day)) for day in days] == [1, 1, 1]
    assert sum((held(store, day) for day in days), Counter()) == wanted


def test_a_late_round_is_taken_into_the_day(store):
    wanted = sample(store, 0, 1)
    compactor(store).run(NEXT_DAY)
    wanted += sample(store, 30)
    compactor(store).run(NEXT_DAY)
    assert len(sample_files.current_files(store, DAY)) == 1
    assert held(store) == wanted


def test_two_samplers_rounds_of_the_same_minute_are_both_kept(store):
    first, second = rows(0), rows(0, partitions=8)
    sample_files.write_round(store, first, "00000001")
    sample_files.write_round(store, second, "00000002")
    compactor(store).run(NEXT_DAY)
    assert held(store) == told(first) + told(second)


def test_two_processes_that_compact_the_same_hour_at_once_count_nothing_twice(store):
    wanted = sample(store, 0, 1, 2)
    other = Compactor(store, CLUSTER, refuse, stopped=lambda: bool(compactor(store).run(NEXT_DAY)) and False)
    other.run(NEXT_DAY)
    assert len([name for name in names(store) if name.startswith("compacted")]) == 2
    assert held(store) == wanted
    assert compactor(store).run(later(store)).removed == 4
    assert len(names(store)) == 1
    assert held(store) == wanted


def test_files_removed_by_another_process_are_no_error(store, tmp_path):
    wanted = sample(store, *range(4))
    compactor(store).run(NEXT_DAY)
    taken = read(store, sample_files.current_files(store, DAY)[0])

    def vanish():
        for minute in range(4):
            store.delete(filenames.round_path(MIDNIGHT + timedelta(minutes=minute), f"{minute:08x}"))
        return False

    sample(store, 5)
    Compactor(store, CLUSTER, refuse, stopped=vanish).run(NEXT_DAY)
    assert Counter(taken) == wanted
    assert held(store) == wanted + told(rows(5))


def test_a_compaction_that_is_broken_off_leaves_no_trace(store):
    wanted = sample(store, 0, 1)
    before = store.list()
    with pytest.raises(Stopped):
        Compactor(store, CLUSTER, refuse, stopped=lambda: True).run(NEXT_DAY)
    assert store.list() == before
    assert store.list(temporary=True) == ()
    assert held(store) == wanted


def test_a_damaged_round_is_named_once_and_the_others_are_compacted(store):
    wanted = sample(store, 0, 1, 2, partitions=400)
    path = filenames.round_path(MIDNIGHT, "00000000")
    whole = bytearray(store.read_bytes(path))
    whole[200:900] = bytes(700)
    store.write_bytes(path, bytes(whole))
    said = []
    one = compactor(store, lambda path, why: said.append((path, why)))
    one.run(NEXT_DAY)
    one.run(NEXT_DAY)
    assert [path for path, _ in said] == [path]
    assert "is damaged" in said[0][1]
    (made,) = [p for p in sample_files.current_files(store, DAY) if filenames.is_compacted(p)]
    assert Counter(read(store, made)) == wanted - told(rows(0, partitions=400))
    assert store.exists(path), "what cannot be read is left for a person to look at"


def test_foreign_files_are_named_and_stay(store):
    wanted = sample(store, 0, 1)
    store.write_bytes(f"{FOLDER}/notes.txt", b"mine")
    said = {}
    compactor(store, said.__setitem__).run(NEXT_DAY)
    assert "does not have the name of a sample file" in said[f"{FOLDER}/notes.txt"]
    assert store.read_bytes(f"{FOLDER}/notes.txt") == b"mine"
    assert held(store) == wanted


def test_samples_of_another_cluster_are_never_mixed_in(store):
    wanted = sample(store, 0, 1) + sample(store, 2, 3, cluster_id="another")
    said = {}
    compactor(store, said.__setitem__).run(NEXT_DAY)
    assert held(store) == wanted
    assert len(said) == 2
    (mine,) = sample_files.current_files(store, DAY, cluster_id=CLUSTER)
    assert len(read(store, mine)) == 12


def test_what_an_interrupted_write_left_behind_goes_after_some_hours(store):
    store.write_bytes(f"{FOLDER}/_tmp-0a1b2c3d-000000-0a1b2c3d.parquet", b"half")
    written = store.list(temporary=True)[0].modified
    compactor(store).run(written + FORGOTTEN - timedelta(minutes=1))
    assert len(store.list(temporary=True)) == 1
    compactor(store).run(written + FORGOTTEN + timedelta(minutes=1))
    assert store.list(temporary=True) == ()


def test_a_store_that_cannot_be_listed_is_named(tmp_path):
    (tmp_path / "samples").write_text("a file")
    with pytest.raises(StoreUnusable, match="samples: cannot be listed"):
        compactor(Store.open(str(tmp_path))).run(NEXT_DAY)


def test_who_reads_while_files_are_compacted_sees_every_sample_once(store):
    wanted = sample(store, *range(0, 1440, 20))
    stop = threading.Event()
    seen = []

    def look():
        while not stop.is_set():
            seen.append(held(store) == wanted)
            time.sleep(0.01)

    reader = threading.Thread(target=look)
    reader.start()
    while not seen:
        time.sleep(0.01)
    compactor(store).run(NEXT_DAY)
    stop.set()
    reader.join()
    assert seen
    assert all(seen)
