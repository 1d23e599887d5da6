"""Traces in files: whatever ends a recording, what was written until then can be read."""

from __future__ import annotations

import gzip
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from bellwether.ports.errors import Terminal
from bellwether.recording import trace_files
from bellwether.recording.trace_files import Full, TraceReader, TraceWriter
from bellwether.recording.traces.trace_lines import Header, Instant

T0 = datetime(2026, 11, 21, 9, tzinfo=UTC)
HEADER = Header("main", "default", T0, "cluster-a")
PLENTY = 10_000_000
SEED = Random(1)
INSTANTS = [
    Instant(float(n), T0, {"heard": {"ExternalReachability/a": n}, "n": {str(n): SEED.randbytes(40).hex() + "x" * 200}})
    for n in range(50)
]

NAMES = pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.gz"])


def fill(writer: TraceWriter) -> None:
    for instant in INSTANTS:
        writer.write(instant)


def write(path: Path, instants: list[Instant], *, close: bool = True) -> TraceWriter:
    writer = TraceWriter(path, HEADER, PLENTY)
    for instant in instants:
        writer.write(instant)
    if close:
        writer.close()
    return writer


def test_a_compressed_trace_is_a_gzip_file_like_any_other(tmp_path: Path):
    write(tmp_path / "trace.jsonl.gz", INSTANTS)
    write(tmp_path / "trace.jsonl", INSTANTS)
    with gzip.open(tmp_path / "trace.jsonl.gz") as stream:
        assert stream.read() == (tmp_path / "trace.jsonl").read_bytes()
    assert (tmp_path / "trace.jsonl.gz").stat().st_size < (tmp_path / "trace.jsonl").stat().st_size / 2


@NAMES
def test_everything_written_can_be_read_while_the_recording_goes_on(tmp_path: Path, name: str):
    writer = write(tmp_path / name, INSTANTS, close=False)
    assert list(TraceReader(tmp_path / name).instants()) == INSTANTS
    writer.close()


@NAMES
def test_a_file_cut_at_any_point_gives_the_lines_before(tmp_path: Path, name: str):
    write(tmp_path / name, INSTANTS)
    whole = (tmp_path / name).read_bytes()
    for end in (*range(300, len(whole), 41), len(whole) - 1):
        cut = tmp_path / f"cut-{name}"
        cut.write_bytes(whole[:end])
        reader = TraceReader(cut)
        found = list(reader.instants())
        assert found == INSTANTS[: len(found)]
    assert len(found) >= len(INSTANTS) - 1


def test_a_broken_last_line_is_skipped_and_reported(tmp_path: Path):
    write(tmp_path / "trace.jsonl", INSTANTS)
    with (tmp_path / "trace.jsonl").open("a") as stream:
        stream.write('{"at":50,"wal')
    reader = TraceReader(tmp_path / "trace.jsonl")
    assert (len(list(reader.instants())), reader.truncated) == (50, True)


def test_broken_line_is_refused_by_its_number(tmp_path: Path):
    write(tmp_path / "trace.jsonl", INSTANTS)
    lines = (tmp_path / "trace.jsonl").read_text().splitlines()
    lines[9] = lines[9][:20]
    (tmp_path / "trace.jsonl").write_text("\n".join(lines))
    with pytest.raises(Terminal, match=r"trace\.jsonl: line 10: not JSON"):
        list(TraceReader(tmp_path / "trace.jsonl").instants())


@pytest.mark.parametrize("content", [b"", b"\n\n", b"{}", b"\xff\xfe\n", b"\x1f\x8b\x08garbage"])
@NAMES
def test_other_file_is_refused_by_name(tmp_path: Path, name: str, content: bytes):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Terminal, match="trace"):
        list(TraceReader(tmp_path / name).instants())


def test_a_missing_file_is_refused(tmp_path: Path):
    with pytest.raises(Terminal, match="cannot be read"):
        TraceReader(tmp_path / "none.jsonl")


def test_a_line_without_end_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(trace_files, "LONGEST_LINE", 1_000_000)
    with gzip.open(tmp_path / "bomb.jsonl.gz", "wb") as stream:
        for _ in range(30):
            stream.write(b" " * 1_000_000)
    with pytest.raises(Terminal, match="this is no trace"):
        TraceReader(tmp_path / "bomb.jsonl.gz")


def test_an_existing_file_is_not_overwritten(tmp_path: Path):
    (tmp_path / "trace.jsonl").write_text("precious")
    with pytest.raises(Terminal, match="exists already"):
        TraceWriter(tmp_path / "trace.jsonl", HEADER, PLENTY)
    assert (tmp_path / "trace.jsonl").read_text() == "precious"


def test_a_directory_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(Terminal, match="cannot be written: No such file"):
        TraceWriter(tmp_path / "none" / "trace.jsonl", HEADER, PLENTY)


@NAMES
def test_the_limit_ends_a_recording_whose_file_is_whole(tmp_path: Path, name: str):
    writer = TraceWriter(tmp_path / name, HEADER, 2000)
    with pytest.raises(Full, match="--max-size"):
        fill(writer)
    writer.close()
    reader = TraceReader(tmp_path / name)
    found = list(reader.instants())
    assert found == INSTANTS[: writer.instants]
    assert (writer.instants > 2, reader.truncated) == (True, False)
    assert (tmp_path / name).stat().st_size <= 2000 + len(INSTANTS[0].line()) + 64


@NAMES
def test_trace_stays_readable_when_disk_is_full(tmp_path: Path, name: str):
    writer = TraceWriter(tmp_path / name, HEADER, PLENTY)
    with file_size_limit(2000), pytest.raises(Full, match=r"File too large; what was written until now"):
        fill(writer)
    writer.close()
    found = list(TraceReader(tmp_path / name).instants())
    assert found == INSTANTS[: len(found)]
    assert len(found) >= writer.instants > 2


@contextmanager
def file_size_limit(limit: int) -> Iterator[None]:
    """The kernel refuses to let any file grow beyond the limit, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
