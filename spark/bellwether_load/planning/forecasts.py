"""Load of each broker by hour of the week: sums of a piece's partitions, and the busiest broker-hour of all sums.

In whole numbers, by the rules of the files' documentation, as the other loads of a plan are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bellwether_load.plan.forecast import BrokerHour, Forecast
from bellwether_load.planning.blocks import Int32s, Int64s
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.choices import Choices, Costs, Refused

Number = TypeVar("Number", np.int64, np.float64)
_NEAR = 1e-12
PARTITIONS_TOGETHER = 4_096
"""Partitions whose hours are worked on at a time: some megabytes, which caches hold."""


def hourly_rates(partitions: pa.Table, loads: pa.Table, hours: int) -> Iterator[tuple[Int64s, Int64s, Int64s]]:
    """Rows of the partitions of which ``loads`` has rates, and these: bytes/s in and out, a column an hour; some at a
    time.

    Refused names a partition whose rates are not valid.
    """
    keys = ["topic_id", "partition"]
    known = partitions.select(keys).append_column("row", pa.array(np.arange(partitions.num_rows)))
    bare = loads.select(keys).append_column("at", pa.array(np.arange(loads.num_rows)))
    found = known.join(bare, keys, join_type="inner").sort_by("at")
    every, places = (found.column(name).to_numpy() for name in ("row", "at"))
    for start in range(0, len(every), PARTITIONS_TOGETHER):
        rows, at = (column[start : start + PARTITIONS_TOGETHER] for column in (every, places))
        together = at[-1] - at[0] == len(at) - 1
        rates = loads.slice(at[0], len(at)) if together else loads.take(pa.array(at))
        produce, consume = (_matrix(rates.column(name), hours) for name in ("produce", "consume"))
        if min(produce.min(), consume.min()) < 0 or max(produce.max(), consume.max()) > 2**45:
            wrong = ((produce < 0) | (produce > 2**45) | (consume < 0) | (consume > 2**45)).any(axis=1)
            fault = f"its rates by hour must be {hours} numbers from 0 to 2**45"
            _refuse(partitions, int(rows[int(wrong.argmax())]), fault)
        yield rows, produce, consume


def refuse_missing(partitions: pa.Table, seen: NDArray[np.bool_]) -> None:
    """Refused names a partition that has a load and whose rates by hour were not ``seen``."""
    missing = partitions.column("produce").is_valid().to_numpy() & ~seen
    if missing.any():
        _refuse(partitions, int(missing.argmax()), "has a load and none by hour")


def brokers_by_hour(
    found: Choices, target: Int32s, costs: Costs, rows: Int64s, produce: Int64s, consume: Int64s
) -> tuple[Int64s, Int64s]:
    """The load of each broker in each hour, with the leaders before a plan and with its ``target`` leaders."""
    load, base = loads_by_hour(found, costs, rows, produce, consume)
    before, after = (sums_by_hour(leader[rows], load, found.brokers) for leader in (found.leader, target))
    return base + before, base + after


def loads_by_hour(
    found: Choices, costs: Costs, rows: Int64s, produce: Int64s, consume: Int64s
) -> tuple[Int64s, Int64s]:
    """What leading each partition costs more than following in each hour, and what following costs each broker."""
    replicas = found.replicas[rows]
    rf = (replicas < found.brokers).sum(axis=1)
    follow = costs.follow * produce
    load = (costs.produce + costs.replication * (rf - 1))[:, None] * produce + costs.consume * consume - follow
    return load, sums_by_hour(replicas, follow, found.brokers)


def forecast(brokers: Brokers, hours: Sequence[int], before: Int64s, after: Int64s) -> Forecast:
    """The busiest open broker in its busiest hour, before and after. ``hours``: of the week, a column each."""
    return Forecast(len(hours), _busiest(brokers, hours, before), _busiest(brokers, hours, after))


def _busiest(brokers: Brokers, hours: Sequence[int], carried: Int64s) -> BrokerHour:
    relative = np.where(brokers.open[:, None], carried / brokers.capacity[:, None], -1.0)
    near = np.argwhere(relative >= relative.max() * (1 - _NEAR)).tolist()
    # Doubles may call two loads equal that are not.
    load, b, hour = max((Fraction(int(carried[b, h]), int(brokers.capacity[b])), -b, -h) for b, h in near)
    return BrokerHour(int(brokers.ids[-b]), int(hours[-hour]), float(load))


def _matrix(lists: pa.ChunkedArray, hours: int) -> Int64s:
    """A row for each list; 0 for null. A list of another length becomes -1."""
    array = pa.concat_arrays(lists.chunks)
    there = array.is_valid().to_numpy(zero_copy_only=False)
    fit = there & (np.nan_to_num(array.value_lengths().to_numpy(zero_copy_only=False)) == hours)
    if fit.all():
        rates: Int64s = array.flatten().to_numpy(zero_copy_only=False).reshape(-1, hours)
        return rates
    matrix = np.zeros((len(array), hours), np.int64)
    matrix[there & ~fit] = -1
    matrix[fit] = array.filter(pa.array(fit)).flatten().to_numpy(zero_copy_only=False).reshape(-1, hours)
    return matrix


def sums_by_hour(at: NDArray[np.integer], values: NDArray[Number], brokers: int) -> NDArray[Number]:
    """Exact sums of rows by broker: ``at`` has the broker or the brokers of each row, padded with ``brokers``."""
    count, width = len(at), at.shape[1] if at.ndim > 1 else 1
    ones = np.ones(count * width, np.int64)
    where = csr_array((ones, at.ravel(), np.arange(0, count * width + 1, width)), shape=(count, brokers + 1))
    found: NDArray[Number] = (where.T @ values)[:brokers]
    return found


def _refuse(partitions: pa.Table, row: int, why: str) -> None:
    raise Refused(f"{partitions.column('topic')[row].as_py()}-{partitions.column('partition')[row].as_py()}: {why}")
