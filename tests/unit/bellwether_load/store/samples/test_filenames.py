from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from bellwether_load.store.samples import filenames

NOON = datetime(2026, 11, 21, 12, 1, 5, tzinfo=UTC)


def test_a_round_lies_in_the_folder_of_its_day_in_utc() -> None:
    assert filenames.round_path(NOON, "0a1b2c3d") == "samples/date=2026-11-21/120105-0a1b2c3d.parquet"
    late = datetime(2026, 11, 21, 23, 30, tzinfo=timezone(timedelta(hours=-3)))
    assert filenames.round_path(late, "0a1b2c3d") == "samples/date=2026-11-22/023000-0a1b2c3d.parquet"


def test_a_compacted_file_is_named_by_its_first_and_last_round() -> None:
    path = filenames.compacted_path(date(2026, 11, 21), ["125900-00000001", "120000-00000002"], "0a1b2c3d")
    assert path == "samples/date=2026-11-21/compacted-1200-1259-0a1b2c3d.parquet"
    assert filenames.is_compacted(path)
    assert not filenames.is_round(path)


def test_a_rounds_name_is_known_again() -> None:
    path = filenames.round_path(NOON, "0a1b2c3d")
    assert filenames.is_round(path)
    assert not filenames.is_compacted(path)
    assert filenames.name_of(path) == "120105-0a1b2c3d"
    assert filenames.day_of(path) == date(2026, 11, 21)


@pytest.mark.parametrize(
    "path",
    [
        "samples/date=2026-11-21/README.txt",
        "samples/date=2026-11-21/126000-0a1b2c3d.parquet",
        "samples/date=2026-11-21/240000-0a1b2c3d.parquet",
        "samples/date=2026-11-21/120000-0A1B2C3D.parquet",
        "samples/date=2026-11-21/part-00000.snappy.parquet",
        "samples/date=2026-13-41/120000-0a1b2c3d.parquet",
        "loads/date=2026-11-21/120000-0a1b2c3d.parquet",
        "samples/120000-0a1b2c3d.parquet",
        "",
    ],
)
def test_a_foreign_name_is_neither_a_round_nor_compacted(path: str) -> None:
    assert not filenames.is_round(path)
    assert not filenames.is_compacted(path)


def test_the_days_of_many_paths_are_sorted_and_unique() -> None:
    paths = ["samples/date=2026-11-22/x", "samples/date=2026-11-21/a", "samples/date=2026-11-21/b", "samples/other/c"]
    assert filenames.days(paths) == (date(2026, 11, 21), date(2026, 11, 22))
