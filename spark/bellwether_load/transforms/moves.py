"""Moves of a plan from the chosen leaders: old and new order and leader of each changed partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bellwether_load.balancing.blocks import Int32s
from bellwether_load.balancing.choices import Choices
from bellwether_load.transforms.problem_partitions import KEYS, encoded, joined

_BROKERS = pa.list_(pa.int32())
_MOVE = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("replicas", _BROKERS),
        ("order", _BROKERS),
        ("from_leader", pa.int32()),
        ("to_leader", pa.int32()),
        ("load", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Moves:
    """Moves of a plan, in order."""

    table: pa.Table

    @cached_property
    def _leading(self) -> pa.Table:
        """Those that change a leader."""
        return self.table.filter(pc.not_equal(self.table.column("from_leader"), self.table.column("to_leader")))

    @property
    def leaders(self) -> int:
        """How many change a leader."""
        return len(self._leading)

    @property
    def reordered(self) -> int:
        """How many change only the order."""
        return len(self.table) - self.leaders

    @property
    def load(self) -> int:
        """The load of the leaders that change."""
        return pc.sum(self._leading.column("load")).as_py() or 0

    def lines(self) -> Iterator[bytes]:
        """What the plan's digest hashes (docs/load/files.md)."""
        for batch in self.table.to_batches(65_536):
            texts = [batch.column(name).cast(pa.string()) for name in KEYS]
            yield from encoded([*texts, joined(batch.column("order"))])


def moves(batch: pa.RecordBatch, found: Choices, leaders: Int32s, second: Int32s) -> Moves:
    """The moves that give all partitions these ``leaders``; orders whose first is not the leader change, too.

    ``second``: who comes next after the leader, the number of brokers where the others keep their order.
    """
    kept = (leaders != found.leader) | (leaders != found.replicas[:, 0]) | (second < found.brokers)
    kept &= leaders < found.brokers
    at = np.flatnonzero(kept & ~found.stays)
    ids = np.append(found.ids, -1).astype(np.int32)
    replicas, chosen = found.replicas[at], leaders[at]
    # A stable sort puts the new leader first, the next one second, and leaves the others as they were.
    rank = np.where(replicas == chosen[:, None], 0, np.where(replicas == second[at, None], 1, 2))
    rank[replicas == found.brokers] = 3
    first = np.argsort(rank, axis=1, kind="stable")
    columns = [
        *(batch.column(name).take(pa.array(at)) for name in KEYS),
        _lists(replicas, ids, found.brokers),
        _lists(np.take_along_axis(replicas, first, axis=1), ids, found.brokers),
        *map(pa.array, (ids[found.leader[at]], ids[chosen], found.loads[at])),
    ]
    return Moves(pa.Table.from_arrays(columns, schema=_MOVE))


def _lists(matrix: Int32s, ids: NDArray[np.int32], brokers: int) -> pa.ListArray:
    there = matrix < brokers
    offsets = np.concatenate([[0], there.sum(axis=1).cumsum()]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids[matrix[there]]))
