"""Compute the load of each partition from stretches of samples.

In: a DataFrame of ``stretches.SCHEMA``, in any order and any number of rows a partition. Out: one row a partition. The
values do not depend on how the stretches are cut or spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

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
MEASURED = f"""topic string, topic_id string, partition int,
    {", ".join(f"{column} double" for column in COLUMNS[3:10])},
    samples int, covered_seconds bigint, hours binary,
    sized boolean, given bigint, refused bigint, days array<int>"""

# Samples that one task measures; each takes some 150 bytes of a Python worker meanwhile.
TASK_SAMPLES = 2_000_000


def measured(stretches: DataFrame, samples: int, rules: Rules) -> DataFrame:
    """All partitions that have samples, those without a load too, as rows of ``MEASURED``.

    ``samples``: about how many there are in all. ``sized``: whether bytes are known. ``given``: how many samples there
    were. ``refused``: how many of them had an invalid number.
    """
    tasks = max(1, -(-samples // TASK_SAMPLES))

    def whole(batches: Iterator[Any]) -> Iterator[Any]:
        # All stretches of a partition are in one task: they are measured when the last one has come.
        yield from measure_batches(batches, rules)

    return stretches.repartition(tasks, "topic_id", "partition").mapInArrow(whole, MEASURED)


def loads(found: DataFrame) -> DataFrame:
    """Of measured partitions those that have a load, as rows of ``COLUMNS`` and their ``hours``, packed."""
    return found.where(_has_load()).select(*COLUMNS, "hours")


def summary(found: DataFrame) -> DataFrame:
    """One row with counts: measured partitions, partitions with and without a load, samples; and the known hours.

    ``days``: the hours of which any partition with a load has a mean, as bits (``histories.hours.of_masks``).
    """
    few = F.col("samples") < 2
    return found.agg(
        F.count("*").alias("partitions"),
        F.count_if(_has_load()).alias("loads"),
        F.count_if(few).alias("too_few_samples"),
        F.count_if(~few & ~F.col("sized")).alias("without_sizes"),
        F.coalesce(F.sum("given"), F.lit(0)).alias("samples"),
        F.coalesce(F.sum("refused"), F.lit(0)).alias("refused"),
        F.array(*(_any_bits(F.col("days")[day]) for day in range(7))).alias("days"),
    )


def measure_batches(batches: Iterable[Any], rules: Rules) -> Iterator[Any]:
    """The loads of the partitions whose stretches these Arrow batches hold, all of them; nothing for none."""
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return
    keys, samples = unpack(held)
    del held
    given = np.diff(samples.bounds)
    yield from _rows(keys, given, measure(samples, rules)).to_batches()


def _has_load() -> Any:
    return (F.col("samples") >= 2) & F.col("sized")


def _any_bits(column: Any) -> Any:
    return F.coalesce(F.bit_or(F.when(_has_load(), column)), F.lit(0))


def _rows(keys: Any, given: Any, found: Measures) -> Any:
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
