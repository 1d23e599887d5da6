"""The undo record in a file: durable before ``save`` returns, and one process at a time."""

from __future__ import annotations

import fcntl
import math
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bellwether.adapters import undo_record_codec
from bellwether.adapters.files.undo_record_file import FileLeadership, FileRecords
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.undo_record import PlanApplication, UndoEntry, UndoRecord
from bellwether.ports.errors import Fenced, Terminal

ENTRY = {PartitionKey("id", 0): UndoEntry("orders", (1, 2, 3), (2, 3, 1))}

SECOND = """
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from bellwether.adapters.files.undo_record_file import FileLeadership
from bellwether.ports.errors import Terminal
try:
    FileLeadership(Path(sys.argv[1])).acquire()
except Terminal as refused:
    print(refused)
else:
    print("acquired")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "undo.json"


def held(path: Path) -> FileLeadership:
    leadership = FileLeadership(path)
    leadership.acquire()
    return leadership


def test_what_was_saved_is_read_back_under_the_next_epoch(path: Path) -> None:
    leadership = held(path)
    records = FileRecords(path, leadership)
    record = records.take_over("c").with_entries(ENTRY)
    records.save(record)
    again = FileRecords(path, leadership).take_over("c")
    assert again.entries == ENTRY
    assert again.epoch == record.epoch + 1
    assert sorted(p.name for p in path.parent.iterdir()) == ["undo.json", "undo.json.lock"]
    leadership.release()
    assert [p.name for p in path.parent.iterdir()] == ["undo.json"]


def test_a_removed_lock_file_admits_no_second_process(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    former, lock, third = held(path), fcntl.flock, FileLeadership(path)

    def late(descriptor: int, how: int) -> None:
        """Between opening and locking the former holder ends, and a third process begins."""
        monkeypatch.setattr(fcntl, "flock", lock)
        former.release()
        third.acquire()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(Terminal, match="another bellwether process"):
        FileLeadership(path).acquire()


def test_an_unchanged_record_is_not_written_again(path: Path) -> None:
    records = FileRecords(path, held(path))
    record = records.take_over("c").with_entries(ENTRY)
    records.save(record)
    before = path.stat()
    records.save(record)
    assert path.stat() == before


def test_record_taken_over_is_written_with_its_first_change(path: Path) -> None:
    records = FileRecords(path, held(path))
    record = records.take_over("c")
    records.save(record)
    assert not path.exists()
    records.save(record.with_entries(ENTRY))
    assert records.read() == record.with_entries(ENTRY)


def test_file_created_after_take_over_is_not_overwritten(path: Path) -> None:
    records = FileRecords(path, held(path))
    record = records.take_over("c")
    foreign = undo_record_codec.export_record(UndoRecord("c", 7, entries=ENTRY))
    path.write_bytes(foreign)
    with pytest.raises(Fenced, match="another process changed the record"):
        records.save(record.with_entries(ENTRY))
    assert path.read_bytes() == foreign


def test_second_process_is_refused_with_the_pid_of_the_first(path: Path) -> None:
    leadership = held(path)
    assert leadership.seconds_left() == math.inf

    def second() -> str:
        command = [sys.executable, "-c", SECOND, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "another bellwether process (pid " in second()
    leadership.release()
    assert leadership.seconds_left() == 0
    assert second() == "acquired\n"


def test_nothing_is_written_without_the_lock(path: Path) -> None:
    leadership = held(path)
    records = FileRecords(path, leadership)
    record = records.take_over("c")
    leadership.release()
    with pytest.raises(Fenced, match="the lock of this record is not held"):
        records.save(record.with_entries(ENTRY))


def test_a_file_changed_by_another_process_is_not_overwritten(path: Path) -> None:
    records = FileRecords(path, held(path))
    record = records.take_over("c")
    records.save(record.with_entries(ENTRY))
    foreign = undo_record_codec.export_record(UndoRecord("c", 7, entries=ENTRY))
    path.write_bytes(foreign)
    with pytest.raises(Fenced, match="another process changed the record"):
        records.save(record)
    assert path.read_bytes() == foreign


def test_copy_of_same_content_is_not_foreign_change(path: Path) -> None:
    records = FileRecords(path, held(path))
    record = records.take_over("c")
    records.save(record.with_entries(ENTRY))
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    records.save(record)
    assert FileRecords(path, held_again(records)).read() == record


def held_again(records: FileRecords) -> FileLeadership:
    return records._leadership


def test_another_clusters_record_is_refused_unless_it_is_empty(path: Path) -> None:
    leadership = held(path)
    records = FileRecords(path, leadership)
    records.save(records.take_over("c").with_entries(ENTRY))
    with pytest.raises(Terminal, match="belongs to Kafka cluster c, you have reached d"):
        FileRecords(path, leadership).take_over("d")
    records.save(records.take_over("c").with_entries(dict.fromkeys(ENTRY)))
    assert FileRecords(path, leadership).take_over("d").cluster_id == "d"


def test_the_plan_of_another_cluster_is_not_gone_on_with(path: Path) -> None:
    leadership, begun = held(path), datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
    records = FileRecords(path, leadership)
    record = replace(records.take_over("c"), application=PlanApplication("0123456789abcdef", 7, begun, begun))
    records.save(record)
    assert FileRecords(path, leadership).take_over("c").application == record.application
    assert FileRecords(path, leadership).take_over("d").application is None


def test_a_record_that_is_not_empty_is_not_deleted(path: Path) -> None:
    records = FileRecords(path, held(path))
    record = records.take_over("c").with_entries(ENTRY)
    records.save(record)
    with pytest.raises(Terminal, match="still holds 1 partitions: promote first"):
        records.delete()
    records.save(record.with_entries(dict.fromkeys(ENTRY)))
    records.delete()
    assert records.read() is None


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Terminal, match=r"nowhere/undo\.json\.lock: cannot be opened"):
        FileLeadership(tmp_path / "nowhere" / "undo.json").acquire()


def test_a_damaged_file_is_named_and_left_alone(path: Path) -> None:
    path.write_text("{")
    with pytest.raises(Terminal, match=r"undo\.json: the undo record is damaged"):
        FileRecords(path, held(path)).take_over("c")
    assert path.read_text() == "{"
