"""Loads by hour of the week, of each broker before and after a plan and of each partition: one pass each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bellwether_load.engines.frames import Batches, Engine, Frame
from bellwether_load.planning.arrays import int64s, pack
from bellwether_load.planning.blocks import Int32s, Int64s
from bellwether_load.planning.choices import Choices, Costs, Slots, choices
from bellwether_load.planning.forecasts import brokers_by_hour, hourly_rates, partitions_by_hour, refuse_missing
from bellwether_load.planning.hourly_rounds import HourlyInput
from bellwether_load.planning.tables import from_bytes
from bellwether_load.transforms.moves import targets
from bellwether_load.transforms.pieces import BOTH, LOADS


@dataclass(frozen=True)
class HourlyLoads:
    """Loads by hour, in pieces of kind ``loads``; ``hours`` are those of the week that each list has."""

    hours: tuple[int, ...]
    pieces: Frame


def by_broker(
    engine: Engine,
    pieces: Frame,
    hourly: HourlyLoads,
    slots: Slots,
    costs: Costs,
    starts: Int64s,
    ids: Int64s,
    to: Int32s,
) -> tuple[Int64s, Int64s]:
    """Load before and after: a row a broker, a column an hour. ``pieces``: partitions with their rates.

    ``ids``, ascending, get the leaders ``to``.
    """
    count, brokers = len(hourly.hours), len(slots.ids)
    sent = engine.send((ids, to))

    def add(batches: Batches) -> Iterator[pa.RecordBatch]:
        changing, leaders = sent.value
        for piece, table, parts in _joined(batches):
            chosen, numbers = _chosen(table, slots, costs, int(starts[piece]))
            after = targets(numbers, chosen, changing, leaders)
            sums = np.zeros((2, brokers, count), np.int64)
            for rows, *rates in _rates(table, parts, count):
                sums += brokers_by_hour(chosen, after, costs, rows, *rates)
            yield pa.RecordBatch.from_pydict({"sums": [pack(sums)]})

    total = np.zeros((2, brokers, count), np.int64)
    for batch in _together(pieces, hourly, starts).map(add, "sums binary").batches():
        for sums in batch.column("sums").to_pylist():
            total += int64s(sums).reshape(total.shape)
    before, after = total
    return before, after


def by_partition(pieces: Frame, hourly: HourlyLoads, slots: Slots, costs: Costs, starts: Int64s) -> HourlyInput:
    """Loads of all partitions that have a choice, and of brokers without them, here: for few partitions."""
    count, brokers = len(hourly.hours), len(slots.ids)

    def find(batches: Batches) -> Iterator[pa.RecordBatch]:
        for piece, table, parts in _joined(batches):
            chosen, numbers = _chosen(table, slots, costs, int(starts[piece]))
            for rows, *rates in _rates(table, parts, count):
                free, loads, fixed = partitions_by_hour(chosen, costs, rows, *rates)
                row = {"ids": [pack(numbers[free])], "loads": [pack(loads)], "fixed": [pack(fixed)]}
                yield pa.RecordBatch.from_pydict(row)

    parts = _together(pieces, hourly, starts).map(find, "ids binary, loads binary, fixed binary").batches()
    found = [row for batch in parts for row in batch.to_pylist()]
    none = np.empty(0, np.int64)
    ids = np.concatenate([none, *(int64s(row["ids"]) for row in found)])
    loads = np.concatenate([none, *(int64s(row["loads"]) for row in found)]).reshape(len(ids), count)
    fixed = np.zeros((brokers, count), np.int64)
    for row in found:
        fixed += int64s(row["fixed"]).reshape(fixed.shape)
    order = np.argsort(ids)
    return HourlyInput(hourly.hours, ids[order], loads[order], fixed)


def _together(pieces: Frame, hourly: HourlyLoads, starts: Int64s) -> Frame:
    return pieces.union(hourly.pieces).grouped(max(1, len(starts) - 1), "piece")


def _joined(batches: Batches) -> Iterator[tuple[int, pa.Table, list[bytes]]]:
    """Each piece: its number, its partitions, and its loads by hour in parts that are not read yet."""
    found: dict[int, dict[str, list[bytes]]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            found.setdefault(row["piece"], {BOTH: [], LOADS: []})[row["kind"]].append(row["data"])
    for piece, kinds in found.items():
        for table in map(from_bytes, kinds[BOTH]):  # one, as a piece is
            yield piece, table, kinds[LOADS]


def _chosen(table: pa.Table, slots: Slots, costs: Costs, start: int) -> tuple[Choices, Int64s]:
    (batch,) = table.combine_chunks().to_batches()
    return choices(batch, slots, costs), np.arange(start, start + batch.num_rows, dtype=np.int64)


def _rates(table: pa.Table, parts: list[bytes], count: int) -> Iterator[tuple[Int64s, Int64s, Int64s]]:
    """One part at a time: the loads by hour of a piece can take more memory than a worker has."""
    seen = np.zeros(table.num_rows, np.bool_)
    for part in map(from_bytes, parts):
        rows, produce, consume = hourly_rates(table, part, count)
        yield rows, produce, consume
        seen[rows] = True
    refuse_missing(table, seen)
