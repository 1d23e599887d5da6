"""Reads all partitions and their loads by hour of the week, some thousands at a time: each call is one pass.

In: partitions with their rates, and the same loads by hour. Out: sums by broker and hour, and the loads of some
partitions. Called by ``jobs.compute_plan``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Int32s, Int64s
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.forecasts import brokers_by_hour, hourly_rates, refuse_missing
from bellwether_load.planning.hourly import HourlyPrices
from bellwether_load.planning.hourly_parts import HourlyRows, HourlySums, PartRates, rows_of_part, sums_of_part
from bellwether_load.planning.tables import routed
from bellwether_load.transforms.moves import targets
from bellwether_load.transforms.problem_partitions import Piece, ProblemPartitions


@dataclass(frozen=True)
class HourlyLoads:
    """Loads by hour: ``tables`` reads them all, some at a time. ``hours`` are those of the week that each list has."""

    hours: tuple[int, ...]
    tables: Callable[[], Iterator[pa.Table]]


@dataclass(frozen=True)
class HourlyPasses:
    """Implements ``planning.hourly_rounds.Passes``."""

    partitions: ProblemPartitions
    loads: HourlyLoads
    brokers: Brokers

    @property
    def hours(self) -> tuple[int, ...]:
        """See ``Passes``."""
        return self.loads.hours

    def rows(self, ids: Int64s, changed: Int64s, to: Int32s) -> HourlyRows:
        """See ``Passes``."""
        parts = (
            rows_of_part(found, numbers, after, np.isin(numbers, ids), self.partitions.costs, part)
            for (_, numbers, found), after, part in self._each(changed, to)
        )
        return HourlyRows.joined(ids, (len(self.brokers), len(self.hours)), parts)

    def sums(self, prices: HourlyPrices, fixed: Int64s, changed: Int64s, to: Int32s) -> HourlySums:
        """See ``Passes``."""
        parts = (
            sums_of_part(found, numbers, after, self.partitions.costs, self.brokers, prices, fixed, part)
            for (_, numbers, found), after, part in self._each(changed, to)
        )
        return HourlySums.total(fixed, parts)

    def by_broker(self, changed: Int64s, to: Int32s) -> tuple[Int64s, Int64s]:
        """Load of each broker in each hour before and after; ``changed``, ascending, get the leaders ``to``."""
        total = np.zeros((2, len(self.brokers), len(self.hours)), np.int64)
        for piece, after, part in self._each(changed, to):
            total += np.stack(brokers_by_hour(piece.choices, after, self.partitions.costs, *part))
        return total[0], total[1]

    def _each(self, changed: Int64s, to: Int32s) -> Iterator[tuple[Piece, Int32s, PartRates]]:
        """Parts of pieces: the piece, its leaders after the plan, and the rates of some of its partitions."""
        seen: dict[int, NDArray[np.bool_]] = {}
        last, piece, after = -1, None, np.empty(0, np.int32)
        for table in self.loads.tables():
            for number, loads in routed(table, self.partitions.borders):
                if piece is None or number != last:
                    last, piece = number, self.partitions.piece(number)
                    after = targets(piece.ids, piece.choices, changed, to)
                    seen.setdefault(number, np.zeros(len(piece.ids), np.bool_))
                for part in hourly_rates(piece.table, loads, len(self.hours)):
                    yield piece, after, part
                    seen[number][part[0]] = True
        for number in range(len(self.partitions.streams)):
            piece = self.partitions.piece(number)
            refuse_missing(piece.table, seen.get(number, np.zeros(len(piece.ids), np.bool_)))
