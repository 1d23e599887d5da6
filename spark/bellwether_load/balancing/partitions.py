"""Partitions of a problem with their measured rates in, moves of a plan out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bellwether_load.balancing.blocks import Int32s, Int64s
from bellwether_load.balancing.choices import Choices, Refused, name_of, rates
from bellwether_load.plan.digest_lines import KEYS, partition_lines

COLUMNS = (*KEYS, "replicas", "isr", "leader", "held")


def with_loads(partitions: pa.Table, loads: pa.Table) -> tuple[pa.RecordBatch, Int64s]:
    """The partitions in their order, with ``produce`` and ``consume`` in bytes/s, null where unknown; and the partition
    of each row of the loads, -1 for one that is gone.

    Refused when partitions are not in order, or are there twice, or have two rows of loads.
    """
    _refuse_disorder(partitions)
    keys = ["topic_id", "partition"]
    twice = loads.group_by(keys).aggregate([([], "count_all")]).filter(pc.field("count_all") > 1)
    if twice.num_rows:
        raise Refused(f"loads: partition {twice['partition'][0]} of topic id {twice['topic_id'][0]} has two rows")
    numbered, measured = (
        t.select(keys).append_column(n, pa.array(np.arange(len(t))))
        for t, n in zip((partitions, loads), ("row", "at"), strict=True)
    )
    at = numbered.join(measured, keys, join_type="left outer").sort_by("row").column("at").combine_chunks()
    places = np.full(len(loads), -1)
    places[at.drop_null().to_numpy()] = np.flatnonzero(at.is_valid().to_numpy(zero_copy_only=False))
    columns = [partitions.column(name).combine_chunks() for name in COLUMNS]
    found = [loads.column(name).combine_chunks().take(at) for name in ("produce", "consume")]
    return pa.RecordBatch.from_arrays([*columns, *found], [*COLUMNS, "produce", "consume"]), places


def lines(batch: pa.RecordBatch) -> Iterator[str]:
    """What the problem's digest hashes."""
    known = batch.column("produce").is_null().to_numpy(zero_copy_only=False)
    return partition_lines(pa.table(batch), [pa.array(rate, mask=known) for rate in rates(batch)])


def _refuse_disorder(table: pa.Table) -> None:
    ordered: Any = pa.scalar(False)
    same: Any = pa.scalar(True)
    for name in KEYS:
        column = table.column(name).combine_chunks()
        before, after = column.slice(0, max(0, len(column) - 1)), column.slice(1)
        ordered = pc.or_(ordered, pc.and_(same, pc.less(before, after)))
        same = pc.and_(same, pc.equal(before, after))
    wrong = pc.index(ordered, False).as_py() if table.num_rows > 1 else -1
    if wrong >= 0:
        before, after = (name_of(table, wrong + more) for more in (0, 1))
        raise Refused(
            f"partitions: {after} comes after {before}: they must be sorted by topic, topic id and partition, and each"
            " be there once"
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
    columns = {
        "replicas": _lists(replicas, ids, found.brokers),
        "order": _lists(np.take_along_axis(replicas, first, axis=1), ids, found.brokers),
        "from_leader": ids[found.leader[at]],
        "to_leader": ids[chosen],
        "load": found.loads[at],
    }
    return Moves(pa.table({name: batch.column(name).take(pa.array(at)) for name in KEYS} | columns))


def _lists(matrix: Int32s, ids: NDArray[np.int32], brokers: int) -> pa.ListArray:
    there = matrix < brokers
    offsets = np.concatenate([[0], there.sum(axis=1).cumsum()]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids[matrix[there]]))
