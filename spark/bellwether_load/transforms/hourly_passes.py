"""Reads all partitions and their loads by hour of the week, which stay where they are: each call is one pass.

In: partitions with their rates, and the same loads by hour, both in pieces. Out: sums by broker and hour, and the loads
of some partitions. Called by ``jobs.making``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bellwether_load.engines.frames import Batches, Engine, Frame
from bellwether_load.planning.blocks import Int32s, Int64s
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.choices import Choices, Costs, Slots, choices
from bellwether_load.planning.forecasts import brokers_by_hour, hourly_rates, refuse_missing
from bellwether_load.planning.hourly import HourlyPrices
from bellwether_load.planning.hourly_parts import (
    ROWS_TOGETHER,
    HourlyRows,
    HourlySums,
    Rates,
    SumsAsked,
    rows_of_piece,
    sums_of_piece,
)
from bellwether_load.planning.tables import from_bytes
from bellwether_load.transforms.moves import targets
from bellwether_load.transforms.packing import ANSWER_TYPE, answer_rows, answers, tables
from bellwether_load.transforms.pieces import BOTH, by_piece


@dataclass(frozen=True)
class HourlyLoads:
    """Loads by hour, in pieces of kind ``loads``; ``hours`` are those of the week that each list has."""

    hours: tuple[int, ...]
    pieces: Frame


@dataclass(frozen=True)
class HourlyPasses:
    """``pieces``: partitions with their rates; ``both``: with their loads by hour, too, a part each. ``starts``: the
    first id of each piece, and behind them how many there are. Implements ``planning.hourly_rounds.Passes``."""

    engine: Engine
    pieces: Frame
    both: Frame
    hours: tuple[int, ...]
    slots: Slots
    brokers: Brokers
    costs: Costs
    starts: Int64s

    @classmethod
    def over(
        cls,
        engine: Engine,
        pieces: Frame,
        hourly: HourlyLoads,
        slots: Slots,
        brokers: Brokers,
        costs: Costs,
        starts: Int64s,
    ) -> HourlyPasses:
        """That read these pieces and their loads by hour."""
        both = pieces.union(hourly.pieces).grouped(max(1, len(starts) - 1), "piece")
        return cls(engine, pieces, both, hourly.hours, slots, brokers, costs, starts)

    def heaviest(self, most: int) -> Int64s:
        """See ``Passes``."""
        slots, costs, starts = self.slots, self.costs, self.starts

        def pick(batches: Batches) -> Batches:
            for piece, table in tables(batches):
                chosen, ids = _chosen(table, slots, costs, int(starts[piece]))
                yield from answer_rows(_heaviest(ids[chosen.free], chosen.loads[chosen.free], most))

        parts: list[tuple[Int64s, Int64s]] = list(answers(self.pieces.map(pick, ANSWER_TYPE).batches()))
        ids, loads = (np.concatenate(column) for column in zip(*parts, strict=True))
        return _heaviest(ids, loads, most)[0]

    def rows(self, ids: Int64s, changed: Int64s, to: Int32s) -> HourlyRows:
        """See ``Passes``."""
        sent, costs, hours = self.engine.send((ids, changed, to)), self.costs, len(self.hours)

        def find(chosen: Choices, numbers: Int64s, rates: Rates) -> Iterator[HourlyRows]:
            wanted, changing, leaders = sent.value
            after = targets(numbers, chosen, changing, leaders)
            return rows_of_piece(chosen, numbers, after, np.isin(numbers, wanted), costs, hours, rates)

        found = self._each(find).streamed(len(ids) // ROWS_TOGETHER + 1, "number")
        return HourlyRows.joined(ids, (len(self.slots.ids), hours), answers(found))

    def sums(self, prices: HourlyPrices, fixed: Int64s, changed: Int64s, to: Int32s) -> HourlySums:
        """See ``Passes``."""
        sent, costs, brokers = self.engine.send((SumsAsked(prices, fixed), changed, to)), self.costs, self.brokers

        def add(chosen: Choices, numbers: Int64s, rates: Rates) -> Iterator[HourlySums]:
            asked, changing, leaders = sent.value
            after = targets(numbers, chosen, changing, leaders)
            yield sums_of_piece(chosen, numbers, after, costs, brokers, asked, rates)

        return HourlySums.total(fixed, answers(self._each(add).batches()))

    def by_broker(self, changed: Int64s, to: Int32s) -> tuple[Int64s, Int64s]:
        """Load of each broker in each hour before and after; ``changed``, ascending, get the leaders ``to``."""
        sent, costs, shape = self.engine.send((changed, to)), self.costs, (2, len(self.slots.ids), len(self.hours))

        def add(chosen: Choices, numbers: Int64s, rates: Rates) -> Iterator[Int64s]:
            after = targets(numbers, chosen, *sent.value)
            total = np.zeros(shape, np.int64)
            for part in rates:
                total += np.stack(brokers_by_hour(chosen, after, costs, *part))
            yield total

        before, after = sum(answers(self._each(add).batches()), np.zeros(shape, np.int64))
        return before, after

    def _each(self, work: Callable[[Choices, Int64s, Rates], Iterator[object]]) -> Frame:
        """What ``work`` makes of each piece: of its partitions, their ids, and their loads by hour part by part."""
        slots, costs, starts, count = self.slots, self.costs, self.starts, len(self.hours)

        def run(batches: Batches) -> Batches:
            for piece, table, parts in by_piece(batches, BOTH):
                chosen, ids = _chosen(table, slots, costs, int(starts[piece]))
                for number, answer in enumerate(
                    work(chosen, ids, _rates(table, parts, count)), start=int(starts[piece])
                ):
                    yield from answer_rows(answer, number)

        return self.both.map(run, ANSWER_TYPE)


def _heaviest(ids: Int64s, loads: Int64s, most: int) -> tuple[Int64s, Int64s]:
    """The ``most`` partitions with the largest loads, the heaviest first."""
    order = np.lexsort((ids, -loads))[:most]
    return ids[order], loads[order]


def _chosen(table: pa.Table, slots: Slots, costs: Costs, start: int) -> tuple[Choices, Int64s]:
    (batch,) = table.combine_chunks().to_batches()
    return choices(batch, slots, costs), np.arange(start, start + batch.num_rows, dtype=np.int64)


def _rates(table: pa.Table, parts: list[bytes], count: int) -> Rates:
    """One part at a time: the loads by hour of a piece can take more memory than a worker has."""
    seen = np.zeros(table.num_rows, np.bool_)
    for part in map(from_bytes, parts):
        for rows, produce, consume in hourly_rates(table, part, count):
            yield rows, produce, consume
            seen[rows] = True
    refuse_missing(table, seen)
