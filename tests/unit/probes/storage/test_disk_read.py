"""A direct read takes an old segment of the log directory, follows no link, and does without what has vanished."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellwether.probes.storage.disk_read import NO_DIRECT_READS, NO_OLD_SEGMENT, DiskReader, NothingToRead

OLD, OLDER, ACTIVE = f"{100:020}.log", f"{0:020}.log", f"{200:020}.log"


def log_of(directory: Path, partition: str, *segments: str, blocks: int = 3) -> None:
    folder = directory / partition
    folder.mkdir(exist_ok=True)
    for segment in segments:
        (folder / segment).write_bytes(b"x" * (4096 * blocks + 10))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of the segments that were opened."""
    names: list[str] = []
    real = os.open

    def open_(path: object, flags: int, *more: object, **named: object) -> int:
        if str(path).endswith(".log"):
            names.append(str(path))
        return real(path, flags, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", open_)
    return names


def read_often(reader: DiskReader, times: int = 30) -> None:
    for _ in range(times):
        reader.open()
        reader.read()


def reason(reader: DiskReader) -> str:
    with pytest.raises(NothingToRead) as refused:
        reader.open()
    return str(refused.value)


def test_every_old_segment_is_read_and_the_active_one_never(tmp_path: Path, opened: list[str]) -> None:
    log_of(tmp_path, "orders-0", OLDER, OLD, ACTIVE)
    log_of(tmp_path, "__cluster_metadata-0", ACTIVE)
    read_often(DiskReader(tmp_path, random.Random(1)))
    assert set(opened) == {OLDER, OLD}


def test_without_old_segment_nothing_is_read_and_reason_is_given(tmp_path: Path) -> None:
    log_of(tmp_path, "orders-0", ACTIVE)
    assert reason(DiskReader(tmp_path)) == NO_OLD_SEGMENT


def test_files_that_are_no_segments_of_partition_are_left_alone(tmp_path: Path, opened: list[str]) -> None:
    log_of(tmp_path, "orders-0.4f2a-delete", OLD, ACTIVE)
    log_of(tmp_path, "lost+found", OLD, ACTIVE)
    log_of(tmp_path, "orders-0", "recovery.log", "snapshot.log")
    assert reason(DiskReader(tmp_path)) == NO_OLD_SEGMENT
    assert opened == []


def test_a_segment_of_less_than_a_block_is_not_read(tmp_path: Path) -> None:
    log_of(tmp_path, "orders-0", OLD, ACTIVE, blocks=0)
    assert reason(DiskReader(tmp_path)) == NO_OLD_SEGMENT


def test_links_are_not_followed(tmp_path: Path) -> None:
    log, elsewhere = tmp_path / "log", tmp_path / "elsewhere"
    log.mkdir()
    elsewhere.mkdir()
    log_of(elsewhere, "orders-0", OLD, ACTIVE)
    (log / "orders-0").symlink_to(elsewhere / "orders-0")
    log_of(log, "clicks-0", ACTIVE)
    (log / "clicks-0" / OLD).symlink_to(elsewhere / "orders-0" / OLD)
    assert reason(DiskReader(log)) == NO_OLD_SEGMENT


def test_named_pipe_in_place_of_segment_does_not_hang_reader(tmp_path: Path) -> None:
    log_of(tmp_path, "orders-0", ACTIVE)
    os.mkfifo(tmp_path / "orders-0" / OLD)
    assert reason(DiskReader(tmp_path)) == NO_OLD_SEGMENT


def test_segments_and_partitions_that_vanish_are_forgotten(tmp_path: Path) -> None:
    log_of(tmp_path, "orders-0", OLDER, OLD, ACTIVE)
    log_of(tmp_path, "clicks-0", OLD, ACTIVE)
    reader = DiskReader(tmp_path)
    read_often(reader)
    (tmp_path / "orders-0" / OLDER).unlink()
    shutil.rmtree(tmp_path / "clicks-0")
    read_often(reader)
    shutil.rmtree(tmp_path / "orders-0")
    assert reason(reader) == NO_OLD_SEGMENT


def test_a_log_directory_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        DiskReader(tmp_path / "absent").open()


def test_without_direct_reads_nothing_is_measured_and_reason_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_of(tmp_path, "orders-0", OLD, ACTIVE)
    real = os.open

    def refuse(path: object, flags: int, *more: object, **named: object) -> int:
        if flags & os.O_DIRECT and not flags & os.O_DIRECTORY:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(path, flags, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    assert reason(DiskReader(tmp_path)) == NO_DIRECT_READS


def test_no_file_stays_open_between_two_reads(tmp_path: Path) -> None:
    log_of(tmp_path, "orders-0", OLD, ACTIVE)
    reader = DiskReader(tmp_path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    read_often(reader)
    reader.open()
    reader.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_many_partitions_are_searched_a_few_at_a_time(tmp_path: Path, opened: list[str]) -> None:
    for number in range(40):
        log_of(tmp_path, f"orders-{number}", ACTIVE)
    log_of(tmp_path, "clicks-0", OLD, ACTIVE)
    reader = DiskReader(tmp_path, random.Random(3))
    found = 0
    for _ in range(12):
        try:
            reader.open()
        except NothingToRead:
            continue
        reader.read()
        found += 1
    assert found
    assert set(opened) == {OLD}
