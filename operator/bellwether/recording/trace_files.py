"""Trace files: read and write JSON Lines, compressed where the name ends in ``.gz``.

In: a header and instants, written one by one; each is flushed before the next is taken, so that an interrupted
recording leaves a readable file. Out: the same; a truncated end is tolerated and reported. Called by
``bellwether record`` and ``bellwether replay``. Terminal names the file, the line and the remedy.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from bellwether.ports.errors import Terminal
from bellwether.recording.traces.trace_lines import Header, Instant, UnreadableTrace, read_header, read_instant

LONGEST_LINE = 128 * 1024 * 1024
"""Maximum bytes of one line: it may hold the partitions of a whole cluster."""

MOST_INSTANTS = 2_000_000

_GZIP = 31  # zlib's window bits for a gzip stream
_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 256 * 1024


class Full(Terminal):
    """Nothing more can be written; what was written stays readable."""


class TraceWriter:
    """Writes one trace. An existing file is never overwritten. From ``limit_bytes`` on no line is added."""

    def __init__(self, path: Path, header: Header, limit_bytes: int) -> None:
        self._path = path
        self._limit = limit_bytes
        self._pack = zlib.compressobj(6, zlib.DEFLATED, _GZIP) if path.name.endswith(".gz") else None
        self.written = 0
        self.instants = 0
        try:
            self._stream: BinaryIO | None = path.open("xb", buffering=0)
        except FileExistsError:
            raise Terminal(f"{path} exists already: name another file with --output, or remove it") from None
        except OSError as error:
            raise Terminal(f"{path}: cannot be written: {error.strerror}: choose another --output") from error
        self._put(header.line())

    def write(self, instant: Instant) -> None:
        """Add an instant. Raises Full when the disk, or the limit, has no room for it."""
        self._put(instant.line())
        self.instants += 1

    def close(self) -> None:
        """End the file. Safe to call twice, and after Full."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            if self._pack is not None:
                stream.write(self._pack.flush(zlib.Z_FINISH))
        except OSError:
            pass  # the disk is full: the end is missing, as after a kill, and readers know how to do without
        finally:
            stream.close()

    def _put(self, line: str) -> None:
        if self._stream is None:
            raise Full(f"{self._path} is closed")
        if self.written >= self._limit:
            self.close()
            raise Full(f"{self._path}: the limit of {self._limit // 1_000_000} MB is reached: raise it with --max-size")
        data = line.encode() + b"\n"
        if self._pack is not None:
            # Flushed line by line: what was written can be read though the process is killed.
            data = self._pack.compress(data) + self._pack.flush(zlib.Z_SYNC_FLUSH)
        try:
            sent = 0
            while sent < len(data):
                sent += self._stream.write(data[sent:]) or 0
        except OSError as error:
            stream, self._stream = self._stream, None
            stream.close()
            raise Full(f"{self._path}: {error.strerror}; what was written until now can be replayed") from error
        self.written += len(data)


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
        try:
            with self._path.open("rb") as stream:
                if not self._path.name.endswith(".gz"):
                    while block := stream.read(_CHUNK):
                        if stream.tell() == len(block) and block.startswith(_GZIP_MAGIC):
                            raise Terminal(f"{self._path} is compressed: let its name end in .gz, as in trace.jsonl.gz")
                        yield block
                    return
                yield from self._unpacked(stream)
        except OSError as error:
            raise Terminal(f"{self._path}: cannot be read: {error.strerror}") from error

    def _unpacked(self, stream: BinaryIO) -> Iterator[bytes]:
        unpack = zlib.decompressobj(_GZIP)
        while packed := stream.read(_CHUNK):
            while packed:
                try:
                    yield unpack.decompress(packed, _CHUNK)
                except zlib.error as error:
                    raise Terminal(f"{self._path}: not a gzip file, or a damaged one ({error})") from None
                packed = unpack.unconsumed_tail
            if unpack.eof:
                return
        self.truncated = not unpack.eof
