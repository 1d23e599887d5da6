"""Reads a posed problem and measured loads for the plan job.

The problem's file is read by the executors, a row group a piece, without a detour over Spark's rows; so its store must
be within their reach, as it must be for the loads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bellwether.adapters.parquet.filesystems import Store
from bellwether.adapters.parquet.problems import FOLDER, PARTITIONS
from bellwether_load.jobs.paths import spark_path
from bellwether_load.planning.blocks import Int64s
from bellwether_load.planning.tables import PARTITION_COLUMNS, Key, first_key
from bellwether_load.transforms.pieces import PARTITIONS as KIND
from bellwether_load.transforms.pieces import PIECE_TYPE, piece_row


@dataclass(frozen=True)
class Posed:
    """A problem's partitions in pieces. ``starts``: the first row of each piece, and behind them how many there are."""

    pieces: DataFrame
    starts: Int64s
    borders: tuple[Key, ...]


def read_posed(spark: SparkSession, uri: str, name: str) -> Posed:
    """The partitions of ``problems/name``. Raises StoreError."""
    path = f"{FOLDER}/{name}/{PARTITIONS}"
    rows, borders = [], []
    with Store.open(uri).parquet(path) as file:
        for group in range(file.metadata.num_row_groups):
            if file.metadata.row_group(group).num_rows:
                rows.append((group, file.metadata.row_group(group).num_rows))
                batch = next(file.iter_batches(1, row_groups=[group], columns=list(Key._fields)))
                borders.append(first_key(pa.Table.from_batches([batch])))
    groups = [group for group, _ in rows]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for piece in batch.column("id").to_pylist():
                with Store.open(uri).parquet(path) as file:
                    yield piece_row(piece, KIND, file.read_row_group(groups[piece], columns=list(PARTITION_COLUMNS)))

    numbers = spark.range(0, len(groups), 1, max(1, len(groups)))
    starts = np.cumsum([0, *(count for _, count in rows)]).astype(np.int64)
    return Posed(numbers.mapInArrow(read, PIECE_TYPE), starts, tuple(borders))


def read_loads(spark: SparkSession, uri: str, name: str) -> DataFrame:
    """The measured loads of ``loads/name``, a row a partition."""
    return spark.read.parquet(spark_path(uri, f"loads/{name}"))
