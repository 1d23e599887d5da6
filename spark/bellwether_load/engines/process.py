"""Frames in this process, for people without Java: one part after the other, kept and grouped rows in files.

Memory holds one part, and what the work on it needs; everything else is in a temporary directory (``TMPDIR``) until the
engine is closed: as many bytes as the rows, compressed where they are read only once.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bellwether_load.engines.frames import Batches, Work

Part = Callable[[], Batches]

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
_HASH_FACTOR = np.uint64(1_000_003)


class ProcessEngine:
    """Implements ``frames.Engine``. Close it, or use it in a ``with`` block, to delete its files."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="bellwether-load-")
        self._files = 0

    def __enter__(self) -> ProcessEngine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Delete the files."""
        self._directory.cleanup()

    def each(self, count: int, read: Callable[[int], Batches], schema: str) -> ProcessFrame:  # noqa: ARG002
        """See ``Engine``."""
        return ProcessFrame(self, [partial(read, number) for number in range(count)])

    def messages(self) -> HeldMessages:
        """See ``Engine``."""
        return HeldMessages()

    def file(self) -> Path:
        """A new file's path."""
        self._files += 1
        return Path(self._directory.name) / f"{self._files}.arrow"


class ProcessFrame:
    """Implements ``frames.Frame``."""

    def __init__(self, engine: ProcessEngine, parts: Sequence[Part]) -> None:
        self._engine = engine
        self._parts = parts

    def map(self, work: Work, schema: str) -> ProcessFrame:
        """See ``Frame``."""
        return self.numbered(lambda _, batches: work(batches), schema)

    def numbered(self, work: Callable[[int, Batches], Batches], schema: str) -> ProcessFrame:  # noqa: ARG002
        """See ``Frame``."""

        def run(number: int, part: Part) -> Part:
            return lambda: work(number, part())

        return ProcessFrame(self._engine, [run(number, part) for number, part in enumerate(self._parts)])

    def grouped(self, parts: int, *keys: str) -> ProcessFrame:
        """See ``Frame``."""
        return self._later(parts, lambda: self._split(parts, keys))

    def ordered(self, parts: int, *keys: str) -> ProcessFrame:
        """See ``Frame``."""
        return self._later(parts, lambda: self._sorted(parts, keys))

    def kept(self) -> ProcessFrame:
        """See ``Frame``."""
        return self._later(len(self._parts), lambda: [_written(self._engine.file(), part()) for part in self._parts])

    def drop(self) -> None:
        """See ``Frame``; the engine deletes the files when it is closed."""

    def batches(self) -> Batches:
        """See ``Frame``."""
        for part in self._parts:
            yield from part()

    def _later(self, count: int, make: Callable[[], list[Part]]) -> ProcessFrame:
        """A frame of parts that are made together when the first one is needed, and once."""
        made: list[Part] = []

        def part(number: int) -> Part:
            def read() -> Batches:
                if not made:
                    made.extend(make())
                return made[number]()

            return read

        return ProcessFrame(self._engine, [part(number) for number in range(count)])

    def _split(self, parts: int, keys: Sequence[str]) -> list[Part]:
        shares = [_Writer(self._engine.file(), _COMPRESSED) for _ in range(parts)]
        for batch in self.batches():
            part = _part_of(batch, keys, parts)
            order = np.argsort(part, kind="stable")
            ends = np.searchsorted(part[order], np.arange(parts + 1))
            for number in np.unique(part).tolist():
                rows = order[ends[number] : ends[number + 1]]
                shares[number].write(batch if len(rows) == batch.num_rows else batch.take(pa.array(rows)))
        return [share.done() for share in shares]

    def _sorted(self, parts: int, keys: Sequence[str]) -> list[Part]:
        batches = list(_written(self._engine.file(), self.batches())())
        if not batches:
            return [lambda: iter(())] * parts
        by = pa.Table.from_batches([batch.select(list(keys)) for batch in batches])
        order = pc.sort_indices(by, [(key, "ascending") for key in keys]).to_numpy().astype(np.int64)

        def part(rows: NDArray[np.int64]) -> Part:
            return lambda: iter(_taken(batches, rows))

        return [part(rows) for rows in np.array_split(order, parts)]


class HeldMessages:
    """Implements ``frames.Messages``."""

    def __init__(self) -> None:
        self._found: set[str] = set()

    def add(self, message: str) -> None:
        """See ``Messages``."""
        self._found.add(message)

    def found(self) -> frozenset[str]:
        """See ``Messages``."""
        return frozenset(self._found)


class _Writer:
    """Writes batches to a file that begins with the first one; none gives a part without rows."""

    def __init__(self, path: Path, options: pa.ipc.IpcWriteOptions | None = None) -> None:
        self._path = path
        self._options = options
        self._file: pa.ipc.RecordBatchFileWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        if self._file is None:
            self._file = pa.ipc.new_file(str(self._path), batch.schema, options=self._options)
        self._file.write_batch(batch)

    def done(self) -> Part:
        if self._file is None:
            return lambda: iter(())
        self._file.close()
        return lambda: _read(self._path)


def _written(path: Path, batches: Batches) -> Part:
    writer = _Writer(path)
    for batch in batches:
        writer.write(batch)
    return writer.done()


def _read(path: Path) -> Batches:
    """Mapped: rows that are not compressed stay in the file until they are used."""
    with pa.memory_map(str(path)) as source:
        file = pa.ipc.open_file(source)
        for number in range(file.num_record_batches):
            yield file.get_batch(number)


def _taken(batches: Sequence[pa.RecordBatch], rows: NDArray[np.int64]) -> list[pa.RecordBatch]:
    """Rows of all batches by number, in their order. Arrow's own ``take`` joins all batches first, up to 2 GiB."""
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    source = np.searchsorted(starts, rows, side="right") - 1
    order = np.argsort(source, kind="stable")
    ends = np.searchsorted(source[order], np.arange(len(batches) + 1))
    parts = [
        batch.take(pa.array(rows[order[ends[number] : ends[number + 1]]] - starts[number]))
        for number, batch in enumerate(batches)
        if ends[number] < ends[number + 1]
    ]
    return pa.Table.from_batches(parts).combine_chunks().take(pa.array(np.argsort(order))).to_batches() if parts else []


def _part_of(batch: pa.RecordBatch, keys: Sequence[str], parts: int) -> NDArray[np.uint64]:
    found = np.zeros(batch.num_rows, np.uint64)
    for key in keys:
        found = found * _HASH_FACTOR + _numbers(batch.column(key))
    return found % np.uint64(parts)


def _numbers(column: pa.Array) -> NDArray[np.uint64]:
    """A number of each value, the same in every batch."""
    if pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy().astype(np.uint64))
    coded = column.dictionary_encode()
    of_value = np.array([zlib.crc32(value.encode()) for value in coded.dictionary.to_pylist()], np.uint64)
    return np.asarray(of_value[coded.indices.to_numpy()])
