"""Compute the load of each partition from stretches of samples.

In: a frame of ``stretches.SCHEMA``, in any order and any number of rows a partition. Out: one row a partition. The
values do not depend on how the stretches are cut or spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bellwether_load.engines.frames import Batches, Frame
from bellwether_load.histories.hours import Hours, masks
from bellwether_load.histories.measures import Levels, Measures, measure
from bellwether_load.histories.rules import Rules
from bellwether_load.transforms.stretches import unpack

# A load as the store keeps it: docs/load/files.md.
COLUMNS = (
    "topic",
    "topic_id",
    "partition",
    "produce_median",
    "produce_p95",
    "produce_peak",
    "consume_median",
    "consume_p95",
    "consume_peak",
    "messages_median",
    "samples",
    "covered_seconds",
)
LOADS = f"""topic string, topic_id string, partition int,
    {", ".join(f"{column} double" for column in COLUMNS[3:10])},
    samples int, covered_seconds bigint, hours binary"""
MEASURED = f"{LOADS}, sized boolean, given bigint, log_bytes bigint, refused bigint, days array<int>"

_COUNTS = (
    "partitions",
    "loads",
    "too_few_samples",
    "without_sizes",
    "samples",
    "refused",
    "log_bytes",
    "log_bytes_without_load",
)
_SUMMARY_TYPE = ", ".join([*(f"{name} bigint" for name in _COUNTS), "days array<int>"])
_SUMMARY = pa.schema([*((name, pa.int64()) for name in _COUNTS), ("days", pa.list_(pa.int32()))])

# Samples that one task measures; each takes some 150 bytes of a Python worker meanwhile.
TASK_SAMPLES = 2_000_000


def measured(stretches: Frame, samples: int, rules: Rules) -> Frame:
    """All partitions that have samples, those without a load too, as rows of ``MEASURED``.

    ``samples``: about how many there are in all. ``sized``: whether bytes are known. ``given``: how many samples there
    were. ``log_bytes``: the largest known size of the log. ``refused``: how many of them had an invalid number.
    """
    tasks = max(1, -(-samples // TASK_SAMPLES))

    def whole(batches: Batches) -> Batches:
        # All stretches of a partition are in one task: they are measured when the last one has come.
        yield from measure_batches(batches, rules)

    return stretches.grouped(tasks, "topic_id", "partition").map(whole, MEASURED)


def loads(found: Frame) -> Frame:
    """Of measured partitions those that have a load, as rows of ``COLUMNS`` and their ``hours``, packed."""

    def having(batches: Batches) -> Batches:
        for batch in batches:
            yield batch.filter(pa.array(_has_load(batch))).select([*COLUMNS, "hours"])

    return found.map(having, LOADS)


@dataclass(frozen=True)
class Summary:
    """Counts of measured partitions, bytes in the logs of those with and without a load, and ``days``: the hours of
    which any partition with a load has a mean, as bits (``histories.hours.of_masks``)."""

    partitions: int = 0
    loads: int = 0
    too_few_samples: int = 0
    without_sizes: int = 0
    samples: int = 0
    refused: int = 0
    log_bytes: int = 0
    log_bytes_without_load: int = 0
    days: tuple[int, ...] = (0,) * 7

    def __add__(self, other: Summary) -> Summary:
        counts = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        return Summary(**counts, days=tuple(a | b for a, b in zip(self.days, other.days, strict=True)))


def summary(found: Frame) -> Summary:
    """Of all measured partitions."""

    def add(batches: Batches) -> Batches:
        total = sum(map(_summary, batches), Summary())
        yield pa.RecordBatch.from_pylist([asdict(total)], schema=_SUMMARY)

    rows = (row for batch in found.map(add, _SUMMARY_TYPE).batches() for row in batch.to_pylist())
    return sum((Summary(**{**row, "days": tuple(row["days"])}) for row in rows), Summary())


def measure_batches(batches: Iterable[Any], rules: Rules) -> Iterator[Any]:
    """The loads of the partitions whose stretches these Arrow batches hold, all of them; nothing for none."""
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return
    keys, samples = unpack(held)
    del held
    given = np.diff(samples.bounds)
    sizes = np.maximum.reduceat(samples.size, samples.bounds[:-1]).clip(0)
    yield from _rows(keys, given, sizes, measure(samples, rules)).to_batches()


def _summary(batch: pa.RecordBatch) -> Summary:
    load = _has_load(batch)
    few = batch.column("samples").to_numpy() < 2
    sizes = batch.column("log_bytes").to_numpy()
    days = np.bitwise_or.reduce(_days(batch)[load], axis=0) if load.any() else np.zeros(7, np.int32)
    return Summary(
        partitions=batch.num_rows,
        loads=int(load.sum()),
        too_few_samples=int(few.sum()),
        without_sizes=int((~few & ~load).sum()),
        samples=int(batch.column("given").to_numpy().sum()),
        log_bytes=int(sizes[load].sum()),
        log_bytes_without_load=int(sizes[~load].sum()),
        refused=int(batch.column("refused").to_numpy().sum()),
        days=tuple(days.tolist()),
    )


def _has_load(batch: pa.RecordBatch) -> NDArray[np.bool_]:
    sized = batch.column("sized").to_numpy(zero_copy_only=False)
    return np.asarray((batch.column("samples").to_numpy() >= 2) & sized)


def _days(batch: pa.RecordBatch) -> NDArray[np.int32]:
    return np.asarray(batch.column("days").flatten().to_numpy()).reshape(batch.num_rows, 7)


def _rows(keys: Any, given: Any, sizes: Any, found: Measures) -> Any:
    return pa.table(
        {
            "topic": keys.column("topic"),
            "topic_id": keys.column("topic_id"),
            "partition": keys.column("partition"),
            **_columns("produce", found.produce),
            **_columns("consume", found.consume),
            "messages_median": pa.array(found.messages_median, from_pandas=True),
            "samples": found.samples.astype(np.int32),
            "covered_seconds": found.covered,
            "hours": _packed(found.hours),
            "sized": found.sized,
            "given": given,
            "log_bytes": sizes,
            "refused": keys.column("refused"),
            "days": pa.FixedSizeListArray.from_arrays(masks(found.hours).ravel(), 7).cast(pa.list_(pa.int32())),
        }
    )


def _columns(name: str, levels: Levels) -> dict[str, Any]:
    values = {"median": levels.median, "p95": levels.p95, "peak": levels.peak}
    return {f"{name}_{level}": pa.array(value, from_pandas=True) for level, value in values.items()}


def _packed(hours: Hours) -> Any:
    """A value for each partition: its records, back to back."""
    ends = pa.array(hours.bounds * hours.records.itemsize, pa.int32())
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, ends.buffers()[1], pa.py_buffer(hours.records)])
