"""What one task of an executor reads, without Spark."""

from __future__ import annotations

import errno
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bellwether_load.jobs.sample_reader import Portion, Source, Window, portions, read_portion, within
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.sample_files import SCHEMA
from bellwether_load.store.store_errors import StoreUnavailable
from bellwether_load.store.store_uri import Redacted
from bellwether_load.transforms.stretches import unpack
from testkit.loads.load_histories import MIDNIGHT, Sample, steady
from testkit.loads.sample_files import Histories, samples_table, write_compacted, write_rounds

HISTORIES: Histories = {("apples", 0): steady(50), ("apples", 1): steady(50, messages=3), ("pears", 7): steady(9)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


def read(store: Store, *work: Portion, window: Window | None = None) -> tuple[Counter[tuple[Any, ...]], list[str]]:
    """The samples (topic, partition, minute, end) of some portions, and what was said."""
    said: list[str] = []
    batches = [b for portion in work for b in read_portion(store, portion, window or Window(), said.append)]
    if not batches:
        return Counter(), said
    keys, samples = unpack(batches)
    names = [(key["topic"], key["partition"]) for key in keys.to_pylist()]
    minutes = ((samples.at - MIDNIGHT) // 60).tolist()
    rows = zip(samples.owner.tolist(), minutes, samples.end.tolist(), strict=True)
    return Counter((*names[owner], minute, end) for owner, minute, end in rows), said


def told(histories: Histories) -> Counter[tuple[Any, ...]]:
    return Counter((t, p, s.at // 60, s.end) for (t, p), history in histories.items() for s in history)


def test_single_rounds_are_read_together(store: Store):
    paths = write_rounds(store, HISTORIES)
    assert read(store, Portion(tuple(paths), False)) == (told(HISTORIES), [])
    batches = list(read_portion(store, Portion(tuple(paths), False), Window(), print))
    assert sum(batch.num_rows for batch in batches) == len(HISTORIES)


@pytest.mark.parametrize("of", [1, 2, 3, 7, 200])
def test_the_parts_of_a_compacted_file_are_the_whole(store: Store, of: int):
    path = write_compacted(store, HISTORIES, group_rows=10)
    work = [Portion((path,), True, part, of) for part in range(of)]
    assert read(store, *work) == (told(HISTORIES), [])


def test_only_the_window_is_read(store: Store):
    paths, window = write_rounds(store, HISTORIES), Window(MIDNIGHT + 600, MIDNIGHT + 1200)
    expected = Counter({row: n for row, n in told(HISTORIES).items() if 10 <= row[2] < 20})
    assert read(store, Portion(tuple(paths), False), window=window) == (expected, [])


@pytest.mark.parametrize(
    ("window", "minutes"),
    [
        (Window(), [0, 1, 2]),
        (Window(start=MIDNIGHT + 60), [1, 2]),
        (Window(start=MIDNIGHT + 61), [2]),
        (Window(end=MIDNIGHT + 60), [0]),
        (Window(end=MIDNIGHT), []),
    ],
)
def test_a_window_holds_its_start_and_not_its_end(window: Window, minutes: list[int]):
    found = within(samples_table({("apples", 0): steady(3)}), window)
    assert [(at.timestamp() - MIDNIGHT) / 60 for at in found.column("at").to_pylist()] == minutes


def damage(path: Path) -> None:
    """Spoil what is in the middle and leave the footer as it is."""
    data = bytearray(path.read_bytes())
    for at in range(4, len(data) // 3):
        data[at] ^= 0xFF
    path.write_bytes(data)


def test_a_round_that_is_damaged_beyond_its_footer_is_named_and_the_others_are_read(store: Store, tmp_path: Path):
    paths = write_rounds(store, HISTORIES)
    damage(tmp_path / paths[5])
    found, said = read(store, Portion(tuple(paths), False))
    assert found == Counter({row: n for row, n in told(HISTORIES).items() if row[2] != 5})
    (line,) = said
    assert paths[5] in line
    assert "is damaged or not a Parquet file" in line


def test_a_damaged_compacted_file_is_named_and_what_was_read_before_stays(store: Store, tmp_path: Path):
    path = write_compacted(store, HISTORIES, group_rows=10)
    data = bytearray((tmp_path / path).read_bytes())
    middle = len(data) // 2
    data[middle : middle + 200] = bytes(200)
    (tmp_path / path).write_bytes(data)
    found, said = read(store, Portion((path,), True))
    assert found < told(HISTORIES)
    assert len(said) == 1
    assert path in said[0]


def test_a_file_that_has_gone_meanwhile_is_named(store: Store, tmp_path: Path):
    paths = write_rounds(store, {("apples", 0): steady(2)})
    (tmp_path / paths[0]).unlink()
    found, said = read(store, Portion(tuple(paths), False))
    assert found == Counter({("apples", 0, 1, 100): 1})
    assert "there is no such file" in said[0]


def with_column(name: str, column: Any) -> Any:
    table = samples_table({("apples", 0): steady(2)})
    return table.set_column(SCHEMA.names.index(name), name, column)


@pytest.mark.parametrize(
    ("name", "column", "word"),
    [
        ("end_offset", pa.array(["many", "few"]), "as a scalar of type int64"),
        ("partition", pa.array([0, None], pa.int32()), "Casting field 'partition' with null values"),
        ("at", pa.array([1.5, 2.5]), "timestamp"),
    ],
)
def test_a_foreign_file_is_named_and_skipped(store: Store, name: str, column: Any, word: str):
    good = write_rounds(store, {("pears", 0): steady(1)})
    store.write_table("samples/date=2026-11-20/foreign.parquet", with_column(name, column))
    found, said = read(store, Portion(("samples/date=2026-11-20/foreign.parquet", *good), False))
    assert found == Counter({("pears", 0, 0, 0): 1})
    (line,) = said
    assert "foreign.parquet: does not have the columns of samples" in line
    assert word in line


def test_of_several_rounds_only_the_one_with_impossible_keys_is_left_out(store: Store):
    good = write_rounds(store, {("pears", 0): steady(1)})
    bad = "samples/date=2026-11-20/bad.parquet"
    store.write_table(bad, with_column("partition", pa.array([-3, 0], pa.int32())))
    found, said = read(store, Portion((*good, bad), False))
    assert found == Counter({("pears", 0, 0, 0): 1})
    assert said == [f"{store.where(bad)}: column partition holds negative numbers. Move it out of the store"]


def test_a_store_that_cannot_be_reached_is_no_damaged_file(tmp_path: Path):
    class Away:
        """A file system that does not answer."""

        type_name = "s3"

        def open_input_file(self, path: str) -> Any:
            raise OSError(errno.ETIMEDOUT, f"no answer for {path}")

    away = Store(Away(), "bucket", Redacted("s3://bucket"))
    with pytest.raises(StoreUnavailable):
        list(read_portion(away, Portion(("x.parquet",), True), Window(), print))


def test_large_files_are_cut_and_small_rounds_go_together():
    sources = [
        Source("day", 95, True),
        Source("r1", 4, False),
        Source("hour", 5, True),
        Source("r2", 4, False),
        Source("r3", 4, False),
        Source("r4", 40, False),
    ]
    assert portions(sources, 10) == (
        *(Portion(("day",), True, part, 10) for part in range(10)),
        Portion(("hour",), True),
        Portion(("r1", "r2"), False),
        Portion(("r3",), False),
        Portion(("r4",), False),
    )


def test_no_files_are_no_work():
    assert portions([]) == ()


def test_an_empty_compacted_file_is_still_looked_at():
    assert portions([Source("empty", 0, True)]) == (Portion(("empty",), True),)


def test_samples_of_unknown_ends_are_read_as_unknown(store: Store):
    paths = write_rounds(store, {("apples", 0): [Sample(0, None, None)]})
    assert read(store, Portion(tuple(paths), False)) == (Counter({("apples", 0, 0, -1): 1}), [])
