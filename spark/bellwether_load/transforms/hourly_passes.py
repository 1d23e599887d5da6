"""Reads all partitions and their loads by hour of the week, which stay where they are: each call is one pass.

In: partitions with their rates, and the same loads by hour, both in pieces. Out: sums by broker and hour, and the loads
of some partitions. Called by ``jobs.making``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from bellwether_load.engines.frames import Batches, Engine, Frame
from bellwether_load.planning.blocks import Int32s, Int64s
from bellwether_load.planning.choices import Choices, Costs, Slots, choices
from bellwether_load.planning.forecasts import brokers_by_hour, hourly_rates, refuse_missing
from bellwether_load.planning.hourly_rounds import HourlyInput
from bellwether_load.planning.hourly_samples import (
    HourlyRows,
    Rates,
    RatesOfPart,
    carried_with_cheapest,
    heaviest,
    in_sample,
    rows_by_hour,
)
from bellwether_load.planning.tables import from_bytes
from bellwether_load.transforms.moves import targets
from bellwether_load.transforms.packing import ANSWER_TYPE, answer_row, answers, tables
from bellwether_load.transforms.pieces import BOTH, LOADS

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class HourlyLoads:
    """Loads by hour, in pieces of kind ``loads``; ``hours`` are those of the week that each list has."""

    hours: tuple[int, ...]
    pieces: Frame


@dataclass(frozen=True)
class HourlyPasses:
    """``pieces``: partitions with their rates. ``starts``: the first id of each piece, and behind them how many there
    are. Implements ``planning.hourly_samples.Passes``."""

    engine: Engine
    pieces: Frame
    hourly: HourlyLoads
    slots: Slots
    costs: Costs
    starts: Int64s

    @property
    def hours(self) -> tuple[int, ...]:
        """Of the week, a column each."""
        return self.hourly.hours

    def by_broker(self, changed: Int64s, to: Int32s) -> tuple[Int64s, Int64s]:
        """Load before and after: a row a broker, a column an hour. ``changed``, ascending, get the leaders ``to``."""
        sent, costs = self.engine.send((changed, to)), self.costs

        def add(chosen: Choices, ids: Int64s, rates: RatesOfPart) -> Int64s:
            after = targets(ids, chosen, *sent.value)
            return np.stack(brokers_by_hour(chosen, after, costs, *rates))

        before, after = self._sum(add, 2)
        return before, after

    def with_cheapest_leaders(self, weights: Int64s) -> Int64s:
        """The load of each broker in each hour if each partition has its cheapest leader at these weights."""
        sent, costs = self.engine.send(weights), self.costs

        def add(chosen: Choices, _: Int64s, rates: RatesOfPart) -> Int64s:
            return carried_with_cheapest(chosen, costs, sent.value, *rates)[None]

        carried: Int64s = self._sum(add, 1)[0]
        return carried

    def by_partition(self) -> HourlyInput:
        """Loads of all partitions that have a choice, and of brokers without them, here: for few partitions."""
        none = np.empty(0, np.int64)
        found = self.rows(none, 1.0, none, none.astype(np.int32))
        return HourlyInput(self.hours, found.block.ids, found.loads, found.fixed)

    def heaviest(self, most: int) -> Int64s:
        """Ids of the partitions with a choice that have the largest loads, the heaviest first."""
        slots, costs, starts = self.slots, self.costs, self.starts

        def pick(batches: Batches) -> Batches:
            for piece, table in tables(batches):
                chosen, ids = _chosen(table, slots, costs, int(starts[piece]))
                yield answer_row(heaviest(ids[chosen.free], chosen.loads[chosen.free], most))

        parts: list[tuple[Int64s, Int64s]] = list(answers(self.pieces.map(pick, ANSWER_TYPE)))
        ids, loads = (np.concatenate(column) for column in zip(*parts, strict=True))
        return heaviest(ids, loads, most)[0]

    def rows(self, ids: Int64s, share: float, changed: Int64s, to: Int32s) -> HourlyRows:
        """Loads of some partitions that have a choice: of ``ids``, ascending, and of all this share, ``in_sample``.

        ``changed``, ascending, get the leaders ``to``.
        """
        sent, costs, hours = self.engine.send((ids, changed, to)), self.costs, len(self.hours)

        def find(chosen: Choices, numbers: Int64s, rates: Rates) -> HourlyRows:
            wanted, changing, leaders = sent.value
            picked = np.isin(numbers, wanted) | in_sample(numbers, share)
            after = targets(numbers, chosen, changing, leaders)
            return rows_by_hour(chosen, numbers, after, picked, costs, hours, rates)

        return HourlyRows.joined(list(self._each(find)))

    def _sum(self, add: Callable[[Choices, Int64s, RatesOfPart], Int64s], count: int) -> Int64s:
        """The sum of what ``add`` makes of each part."""
        shape = (count, len(self.slots.ids), len(self.hours))

        def add_all(chosen: Choices, ids: Int64s, rates: Rates) -> Int64s:
            total = np.zeros(shape, np.int64)
            for part in rates:
                total += add(chosen, ids, part)
            return total

        total = np.zeros(shape, np.int64)
        for sums in self._each(add_all):
            total += sums
        return total

    def _each(self, work: Callable[[Choices, Int64s, Rates], _Answer]) -> Iterator[_Answer]:
        """What ``work`` makes of each piece: of its partitions, their ids, and their loads by hour part by part."""
        slots, costs, starts, count = self.slots, self.costs, self.starts, len(self.hours)

        def run(batches: Batches) -> Batches:
            for piece, table, parts in _joined(batches):
                chosen, ids = _chosen(table, slots, costs, int(starts[piece]))
                yield answer_row(work(chosen, ids, _rates(table, parts, count)))

        together = self.pieces.union(self.hourly.pieces).grouped(max(1, len(starts) - 1), "piece")
        yield from answers(together.map(run, ANSWER_TYPE))


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


def _rates(table: pa.Table, parts: list[bytes], count: int) -> Rates:
    """One part at a time: the loads by hour of a piece can take more memory than a worker has."""
    seen = np.zeros(table.num_rows, np.bool_)
    for part in map(from_bytes, parts):
        rows, produce, consume = hourly_rates(table, part, count)
        yield rows, produce, consume
        seen[rows] = True
    refuse_missing(table, seen)
