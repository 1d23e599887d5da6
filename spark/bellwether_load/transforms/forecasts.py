"""Load of each broker by hour of the week, before and after a plan: one pass through the loads by hour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from bellwether_load.planning.arrays import int64s, pack
from bellwether_load.planning.blocks import Int32s, Int64s
from bellwether_load.planning.choices import Costs, Slots, choices
from bellwether_load.planning.forecasts import brokers_by_hour, hourly_rates, refuse_missing
from bellwether_load.planning.tables import from_bytes
from bellwether_load.transforms.moves import targets
from bellwether_load.transforms.pieces import BOTH, LOADS, Batches


@dataclass(frozen=True)
class HourlyLoads:
    """Loads by hour, in pieces of kind ``loads``; ``hours`` are those of the week that each list has."""

    hours: tuple[int, ...]
    pieces: DataFrame


def by_broker(
    pieces: DataFrame, hourly: HourlyLoads, slots: Slots, costs: Costs, starts: Int64s, ids: Int64s, to: Int32s
) -> tuple[Int64s, Int64s]:
    """Load before and after: a row a broker, a column an hour. ``pieces``: partitions with their rates.

    ``ids``, ascending, get the leaders ``to``.
    """
    count, brokers = len(hourly.hours), len(slots.ids)
    sent = pieces.sparkSession.sparkContext.broadcast((ids, to))

    def add(batches: Batches) -> Iterator[pa.RecordBatch]:
        changing, leaders = sent.value
        found: dict[int, dict[str, list[bytes]]] = {}
        for batch in batches:
            for row in batch.to_pylist():
                found.setdefault(row["piece"], {BOTH: [], LOADS: []})[row["kind"]].append(row["data"])
        for piece, kinds in found.items():
            for table in map(from_bytes, kinds[BOTH]):  # one, as a piece is
                (batch,) = table.combine_chunks().to_batches()
                chosen = choices(batch, slots, costs)
                numbers = np.arange(starts[piece], starts[piece] + len(chosen.loads), dtype=np.int64)
                after = targets(numbers, chosen, changing, leaders)
                seen = np.zeros(len(numbers), np.bool_)
                sums = np.zeros((2, brokers, count), np.int64)
                # One part at a time: the loads by hour of a piece can take more memory than a worker has.
                for part in map(from_bytes, kinds[LOADS]):
                    rows, *rates = hourly_rates(table, part, count)
                    sums += brokers_by_hour(chosen, after, costs, rows, *rates)
                    seen[rows] = True
                refuse_missing(table, seen)
                yield pa.RecordBatch.from_pydict({"sums": [pack(sums)]})

    spread = pieces.union(hourly.pieces).repartition(max(1, len(starts) - 1), "piece")
    total = np.zeros((2, brokers, count), np.int64)
    for row in spread.mapInArrow(add, "sums binary").collect():
        total += int64s(row["sums"]).reshape(total.shape)
    before, after = total
    return before, after
