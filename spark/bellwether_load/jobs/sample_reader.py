"""Read samples in tasks: from a list of files to stretches.

In: files to read, and a time window. Out: a frame of stretches, and messages about files that are unreadable beyond
their footers. Files are read by pyarrow: it keeps topic names as codes and needs none of Hadoop's
file systems, so a store is accessed as in the sampler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bellwether_load.engines.frames import Batches, Engine, Frame, Messages
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.sample_files import SCHEMA as FORMAT
from bellwether_load.store.store_errors import StoreDamaged, StoreUnusable
from bellwether_load.transforms.stretches import SCHEMA, NoSamples, pack

Said = Callable[[str], None]

# Rows that one task reads, and that are held at once: some 300 MB of a Python worker.
TASK_ROWS = 4_000_000
BATCH_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read: its path in the store, its rows, and whether the rows of a partition are consecutive in it."""

    path: str
    rows: int
    compacted: bool


@dataclass(frozen=True, slots=True)
class Portion:
    """What one task reads: some rounds, or of one compacted file the ``part``-th of ``of`` equal parts."""

    paths: tuple[str, ...]
    compacted: bool
    part: int = 0
    of: int = 1


@dataclass(frozen=True, slots=True)
class Window:
    """Moments to read, in seconds since 1970: from ``start``, before ``end``; None: as far as there are samples."""

    start: int | None = None
    end: int | None = None


def portions(sources: Sequence[Source], rows: int = TASK_ROWS) -> tuple[Portion, ...]:
    """Split the work into portions of about ``rows`` rows: large files in parts, several single rounds together."""
    found: list[Portion] = []
    together: list[str] = []
    held = 0
    for source in sources:
        if source.compacted:
            parts = max(1, -(-source.rows // rows))
            found += [Portion((source.path,), True, part, parts) for part in range(parts)]
            continue
        if together and held + source.rows > rows:
            found.append(Portion(tuple(together), False))
            together, held = [], 0
        together.append(source.path)
        held += source.rows
    if together:
        found.append(Portion(tuple(together), False))
    return tuple(found)


def stretches(engine: Engine, uri: str, work: Sequence[Portion], window: Window) -> tuple[Frame, Messages]:
    """The samples of these portions, and messages that are complete once the frame was computed."""
    said = engine.messages()

    def read(number: int) -> Batches:
        return read_portion(Store.open(uri), work[number], window, said.add)

    return engine.each(len(work), read, SCHEMA), said


def read_portion(store: Store, portion: Portion, window: Window, said: Said) -> Iterator[Any]:
    """A portion as record batches of stretches. An unreadable file is reported, and the rest of it is skipped.

    Raises StoreUnavailable if the store does not answer; Spark then retries the task.
    """
    if portion.compacted:
        (path,) = portion.paths
        for tables in _together(_tables(store, path, portion, window, said)):
            yield from _packed({path: tables}, store, said, sort=False)
        return
    rounds = {path: list(_tables(store, path, portion, window, said)) for path in portion.paths}
    yield from _packed(rounds, store, said, sort=True)


def _tables(store: Store, path: str, portion: Portion, window: Window, said: Said) -> Iterator[Any]:
    try:
        with store.parquet(path) as file, store.reading(path):
            count = file.num_row_groups
            groups = range(count * portion.part // portion.of, count * (portion.part + 1) // portion.of)
            for batch in file.iter_batches(BATCH_ROWS, row_groups=groups, columns=FORMAT.names, use_threads=False):
                yield within(_conformed(pa.Table.from_batches([batch]), store.where(path)), window)
    except StoreUnusable as error:
        said(str(error))


def _together(tables: Iterator[Any]) -> Iterator[list[Any]]:
    """Combine small row groups: a file of an hour has hundreds."""
    held: list[Any] = []
    for table in tables:
        held.append(table)
        if sum(one.num_rows for one in held) >= BATCH_ROWS // 2:
            yield held
            held = []
    if held:
        yield held


def _conformed(table: Any, where: str) -> Any:
    try:
        return table.cast(FORMAT)
    except (pa.ArrowException, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise StoreDamaged(
            f"{where}: does not have the columns of samples: {reason}. Move it out of the store"
        ) from None


def within(table: Any, window: Window) -> Any:
    """The rows of a window."""
    for bound, compare in ((window.start, pc.greater_equal), (window.end, pc.less)):
        if bound is not None:
            kept = compare(table.column("at"), pa.scalar(bound, table.schema.field("at").type))
            table = table if pc.all(kept).as_py() else table.filter(kept)
    return table


def _packed(tables: Mapping[str, Sequence[Any]], store: Store, said: Said, *, sort: bool) -> Iterator[Any]:
    whole = pa.concat_tables([FORMAT.empty_table(), *(table for found in tables.values() for table in found)])
    try:
        if whole.num_rows:
            yield pack(whole, sort=sort)
    except NoSamples as error:
        if len(tables) == 1:
            said(f"{store.where(next(iter(tables)))}: {error}. Move it out of the store")
            return
        # Several files: pack each one separately, so that only the invalid one is skipped.
        for path, found in tables.items():
            yield from _packed({path: found}, store, said, sort=sort)
