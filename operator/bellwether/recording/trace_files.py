"""Trace files: read and write JSON Lines, compressed where the name ends in ``.gz``.

In: a header and instants, written one by one; each is flushed before the next is taken, so that an interrupted
recording leaves a readable file. Out: the same; a truncated end is tolerated and reported. Called by
``bellwether record`` and ``bellwether replay``. Terminal names the file, the line and the remedy.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from bellwether.ports.errors import Terminal
from bellwether.recording.traces.trace_lines import Header, Instant, UnreadableTrace, read_header, read_instant

LONGEST_LINE = 128 * 1024 * 1024
"""Maximum bytes of one line: it may hold the partitions of a whole cluster."""

MOST_INSTANTS = 2_000_000

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 256 * 1024


class Full(Terminal):
    """Nothing more can be written; what was written stays readable."""


class TraceWriter:
    """Writes one trace. An existing file is never overwritten. From ``limit_bytes`` on no line is added."""

    def __init__(self, path: Path, header: Header, limit_bytes: int) -> None:
        self._path = path
        self._limit = limit_bytes
        self.instants = 0
        self._closed = False
        try:
            self._file = path.open("xb")
        except FileExistsError:
            raise Terminal(f"{path} exists already: name another file with --output, or remove it") from None
        except OSError as error:
            raise Terminal(f"{path}: cannot be written: {error.strerror}: choose another --output") from error
        packed = path.name.endswith(".gz")
        self._stream: Any = gzip.GzipFile(fileobj=self._file, mode="wb", compresslevel=6) if packed else self._file
        self._put(header.line())

    @property
    def written(self) -> int:
        """Bytes of the file."""
        return self._path.stat().st_size

    def write(self, instant: Instant) -> None:
        """Add an instant. Raises Full when the disk, or the limit, has no room for it."""
        self._put(instant.line())
        self.instants += 1

    def close(self) -> None:
        """End the file. Safe to call twice, and after Full."""
        self._closed = True
        for stream in (self._stream, self._file):
            with suppress(OSError):  # the disk is full: the end is missing, as after a kill, and readers do without it
                stream.close()

    def _put(self, line: str) -> None:
        if self._closed:
            raise Full(f"{self._path} is closed")
        if self.written >= self._limit:
            self.close()
            raise Full(f"{self._path}: the limit of {self._limit // 1_000_000} MB is reached: raise it with --max-size")
        try:
            self._stream.write(line.encode() + b"\n")
            self._stream.flush()  # line by line: what was written can be read though the process is killed
        except OSError as error:
            self.close()
            raise Full(f"{self._path}: {error.strerror}; what was written until now can be replayed") from error


class TraceReader:
    """Reads one trace: ``header`` at once, ``instants`` as they are asked for.

    ``truncated`` is true, once all instants were read, when the file is truncated: the broken line is skipped.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.truncated = False
        self._lines = self._split(self._blocks())
        first = next(self._lines, None)
        if first is None:
            raise Terminal(f"{path} is empty: it has no header; the recording was probably stopped at once")
        try:
            self.header: Header = read_header(first.decode())
        except (UnreadableTrace, UnicodeDecodeError) as error:
            raise Terminal(f"{path}: {error}") from None

    def instants(self) -> Iterator[Instant]:
        """The instants in order. Raises Terminal for a line that cannot be read, unless it is the last."""
        after, held = 0.0, None
        for number, line in enumerate(self._lines, 2):
            if held is not None:
                raise Terminal(f"{self._path}: {held}")
            if number > MOST_INSTANTS:
                raise Terminal(f"{self._path}: more than {MOST_INSTANTS} instants: cut the trace before replaying it")
            try:
                instant = read_instant(line.decode(), number, after)
            except (UnreadableTrace, UnicodeDecodeError) as error:
                held = error  # the last line may be broken: another line after it means that this is not the last
                continue
            after = instant.at
            yield instant
        self.truncated |= held is not None

    def _split(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        rest = bytearray()
        for block in blocks:
            start = 0
            while (end := block.find(b"\n", start)) >= 0:
                line = bytes(rest) + block[start:end]
                rest.clear()
                start = end + 1
                if line.strip():
                    yield line
            rest += block[start:]
            if len(rest) > LONGEST_LINE:
                raise Terminal(f"{self._path}: a line is longer than {LONGEST_LINE // 1_048_576} MiB: this is no trace")
        if rest.strip():
            yield bytes(rest)

    def _blocks(self) -> Iterator[bytes]:
        """The file's bytes, decompressed, in bounded blocks for any content."""
        packed = self._path.name.endswith(".gz")
        try:
            with gzip.open(self._path) if packed else self._path.open("rb") as stream:
                while block := stream.read1(_CHUNK):
                    if not packed and block.startswith(_GZIP_MAGIC) and stream.tell() == len(block):
                        raise Terminal(f"{self._path} is compressed: let its name end in .gz, as in trace.jsonl.gz")
                    yield block
        except EOFError:
            self.truncated = True
        except (gzip.BadGzipFile, zlib.error) as error:
            raise Terminal(f"{self._path}: not a gzip file, or a damaged one ({error})") from None
        except OSError as error:
            raise Terminal(f"{self._path}: cannot be read: {error.strerror}") from error
