"""The manifest of a day, as a stranger reads it: each sample once."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pytest

from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.compaction import LINGER, Compactor
from bellwether_load.store.samples.manifest import manifest_files, manifest_path
from bellwether_load.store.samples.retention import expire
from sourcetree import ROOT
from testkit.loads.sample_rounds import CLUSTER, DAY, MIDNIGHT, Sample, named, rows, told

HOUR_OVER = MIDNIGHT + timedelta(minutes=70)
NEXT_DAY = MIDNIGHT + timedelta(days=1, minutes=10)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


def sample(store: Store, *minutes: int) -> Counter[Sample]:
    found: Counter[Sample] = Counter()
    for minute in minutes:
        sample_files.write_round(store, rows(minute), f"{minute:08x}")
        found += told(rows(minute))
    return found


def ignore(_about: object, _why: str) -> None:
    """What is left out is of no interest."""


def compact(store: Store, now: object = HOUR_OVER) -> None:
    Compactor(store, CLUSTER, ignore).run(now)  # type: ignore[arg-type]


def test_a_manifest_names_rounds_until_they_are_compacted_and_then_the_file_that_holds_them(store: Store) -> None:
    wanted = sample(store, 58, 60)
    compact(store, MIDNIGHT + timedelta(minutes=62))
    assert len(manifest_files(store, DAY)) == 2
    wanted += sample(store, 59)
    compact(store)
    assert len(store.list()) == 4
    assert len(manifest_files(store, DAY)) == 2
    assert named(store) == wanted


def test_a_manifest_says_whose_samples_how_many_and_how_large(store: Store) -> None:
    sample(store, 0)
    compact(store)
    (file,) = store.list()
    assert json.loads(store.read_bytes(manifest_path(DAY))) == {
        "format": 1,
        "clusterId": CLUSTER,
        "date": "2021-11-21",
        "files": [{"path": file.path, "rows": 6, "bytes": file.size}],
    }


def test_a_manifest_is_written_only_when_the_files_change(store: Store, tmp_path: Path) -> None:
    sample(store, 0, 1)
    compact(store)
    path = tmp_path / manifest_path(DAY)
    before = path.stat().st_mtime_ns, path.stat().st_ino
    compact(store)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


def test_files_that_an_old_manifest_names_stay_until_it_is_replaced(store: Store) -> None:
    wanted = sample(store, 0, 1)
    compact(store, MIDNIGHT + timedelta(minutes=2))
    old = store.read_bytes(manifest_path(DAY))
    compact(store)
    store.write_bytes(manifest_path(DAY), old)  # a suspended process that goes on
    later = max(file.modified for file in store.list() if file.modified) + LINGER
    compact(store, later)
    assert len(store.list()) == 3
    assert named(store) == wanted
    compact(store, later)
    assert len(store.list()) == 1
    assert named(store) == wanted


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"7", b'{"files": 7}', b'{"files": [{}]}', b"[" * 100_000])
def test_a_damaged_or_missing_manifest_is_written_again(store: Store, text: bytes) -> None:
    wanted = sample(store, 0)
    compact(store)
    store.write_bytes(manifest_path(DAY), text) if text else store.delete(manifest_path(DAY))
    assert manifest_files(store, DAY) == frozenset()
    compact(store)
    assert named(store) == wanted


def test_damaged_and_foreign_files_are_not_named(store: Store) -> None:
    wanted = sample(store, 0)
    store.write_bytes("samples/date=2021-11-21/000100-00000001.parquet", b"half")
    store.write_bytes("samples/date=2021-11-21/notes.txt", b"mine")
    sample_files.write_round(store, rows(2, cluster_id="another"), "00000002")
    compact(store)
    assert named(store) == wanted


def test_a_day_whose_samples_were_moved_out_has_no_manifest(store: Store) -> None:
    sample(store, 0)
    store.write_bytes("samples/date=2021-11-21/notes.txt", b"mine")
    compact(store)
    store.delete("samples/date=2021-11-21/000000-00000000.parquet")
    compact(store)
    assert not store.exists(manifest_path(DAY))


def test_an_expired_day_takes_its_manifest_along_even_if_something_foreign_stays(store: Store) -> None:
    sample(store, 0, 1440)
    store.write_bytes("samples/date=2021-11-21/notes.txt", b"mine")
    compact(store, NEXT_DAY)
    assert expire(store, 1, date(2021, 11, 22), ignore) == (DAY,)
    assert not store.exists(manifest_path(DAY))
    assert store.exists(manifest_path(date(2021, 11, 22)))


def test_the_example_for_pyarrow_reads_each_sample_once(store: Store, tmp_path: Path) -> None:
    wanted = sample(store, *range(57, 62))
    compact(store)
    assert len(store.list()) > len(manifest_files(store, DAY))
    page = (ROOT / "docs/load/files.md").read_text()
    (code,) = re.findall(r"```python\n(import json\n.*?)```", page, re.DOTALL)
    assert "s3://loads/orders" in code
    names: dict[str, object] = {}
    exec(code.replace("s3://loads/orders", f"file://{tmp_path}").replace("2026-11-21", DAY.isoformat()), names)  # noqa: S102 - our own page
    found = names["samples"].to_table().to_pylist()  # type: ignore[attr-defined]
    assert Counter((int(s["at"].timestamp()), s["topic"], s["partition"], s["end_offset"]) for s in found) == wanted
