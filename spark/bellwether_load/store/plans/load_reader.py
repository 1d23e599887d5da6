"""Read the measured loads of a run from a store: the cost of leading each partition, packed.

In: a store, the name of a problem and of the loads that were measured for it, the policy's objective. Out:
``core.model.loads.Loads``, or a StoreError that names the file. The result takes a few megabytes for hundreds of
thousands of partitions. Called by ``plan_store``.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import TypeVar, overload

import numpy as np
import pyarrow as pa

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.loads import Loads
from bellwether.core.settings.objective import WHOLE, Objective
from bellwether_load.plan.problem import ProblemHeader
from bellwether_load.store.columns import batches, table_of_batches
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import plan_files, problem_files
from bellwether_load.store.plans.load_hours import load_files, load_table
from bellwether_load.store.store_errors import StoreDamaged
from bellwether_load.verify.checks import Faults
from bellwether_load.verify.rows import LOADS, PROBLEM, Ints, Table, keys_of, rates_of

T = TypeVar("T")

LARGEST_INDEX = 1_000_000
"""Kafka numbers a topic's partitions from 0 without gaps, and no cluster has as many."""

_UNKNOWN = -1
_SCHEMA = pa.schema([*problem_files.PARTITION_FIELDS])


class PackedLoads(Mapping[PartitionKey, int]):
    """Integers by partition, stored as one array per topic: eight bytes each."""

    def __init__(self, topics: Mapping[str, array[int]]) -> None:
        self._topics = topics

    def __getitem__(self, key: PartitionKey) -> int:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    @overload
    def get(self, key: PartitionKey, /) -> int | None: ...
    @overload
    def get(self, key: PartitionKey, default: int | T, /) -> int | T: ...
    def get(self, key: PartitionKey, default: object = None, /) -> object:
        """The value of a partition. Called for every partition in every reconcile, so it raises no exception inside."""
        values = self._topics.get(key[0])
        if values is None or not 0 <= key[1] < len(values):
            return default
        found = values[key[1]]
        return default if found == _UNKNOWN else found

    def __iter__(self) -> Iterator[PartitionKey]:
        for topic_id, values in self._topics.items():
            yield from (PartitionKey(topic_id, i) for i, value in enumerate(values) if value != _UNKNOWN)

    def __len__(self) -> int:
        return sum(len(values) - values.count(_UNKNOWN) for values in self._topics.values())


def read_loads(
    store: Store, name: str, terms: ProblemHeader, objective: Objective, capacities: Mapping[int, int]
) -> Loads:
    """Loads that were measured for a problem with these ``terms``, weighted by ``objective``, as of its time.

    A partition without a load row is omitted. A load that no plan can use (not a number, negative, duplicate) raises
    StoreDamaged, and none is used.
    """
    folder, faults = store.below(f"{plan_files.LOADS}/{name}"), Faults()
    path = f"{problem_files.FOLDER}/{name}/{problem_files.PARTITIONS}"
    given = table_of_batches(batches(store, path, _SCHEMA), _SCHEMA)
    measured = load_table(folder, load_files(folder), objective.statistic)
    keys = keys_of(given, measured)
    partitions, loads = Table(given, keys[0], PROBLEM, faults), Table(measured, keys[1], LOADS, faults)
    rates = rates_of(loads, partitions, objective.statistic)
    number = partitions.numbers("partition")
    partitions.wrong(rates.known & ((number < 0) | (number > LARGEST_INDEX)), "is not a partition index")
    if wrong := [fault for name in (PROBLEM, LOADS) for fault in faults.of(name)]:
        raise StoreDamaged(f"{folder}: {wrong[0]}")
    rows = np.flatnonzero(rates.known)
    replicas, produce = given.column("replicas").take(rows).combine_chunks(), WHOLE * rates.produce[rows]
    count = replicas.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    leading = produce * (count - 1) + WHOLE * rates.consume[rows] * objective.consumption
    first = np.flatnonzero(np.diff(keys[0][rows] >> 32, prepend=-1))
    topics: dict[str, array[int]] = {}
    for topic_id, of in zip(
        given.column("topic_id").take(rows[first]).to_pylist(), np.split(np.arange(len(rows)), first[1:]), strict=False
    ):
        values = np.full(int(number[rows[of]].max()) + 1, _UNKNOWN)
        values[number[rows[of]]] = _whole(leading[of])
        topics[topic_id] = array("q", values.tobytes())
    brokers, at = np.unique(replicas.flatten().to_numpy(), return_inverse=True)
    following = np.zeros(len(brokers), np.int64)
    np.add.at(following, at, np.repeat(produce, count))
    carried = dict(zip(brokers.tolist(), _whole(following).tolist(), strict=True))
    return Loads(PackedLoads(topics), dict(capacities), carried, terms.made_at)


def _whole(hundredths: Ints) -> Ints:
    """Bytes/s, rounded up: a small load must not be taken for an unmeasured one."""
    return -(-hundredths // 100)
