"""Read the measured loads of a run from a store: the cost of leading each partition, packed.

In: a store, the name of a problem and of the loads that were measured for it, the policy's objective. Out:
``core.model.loads.Loads``, or a StoreError that names the file. The result takes a few megabytes for hundreds of
thousands of partitions. Called by ``plan_store``.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar, overload

import numpy as np

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.loads import Loads
from bellwether.core.settings.objective import Objective
from bellwether_load.plan.partition_rows import Ints
from bellwether_load.plan.problem import ProblemHeader
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import plan_files, problem_files
from bellwether_load.store.plans.load_hours import with_loads
from bellwether_load.store.store_errors import StoreDamaged

T = TypeVar("T")

LARGEST_INDEX = 1_000_000
"""Kafka numbers a topic's partitions from 0 without gaps, and no cluster has as many."""

_UNKNOWN = -1


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
    folder, problem = store.below(f"{plan_files.LOADS}/{name}"), store.below(f"{problem_files.FOLDER}/{name}")
    rows = with_loads(folder, problem_files.read_partitions(problem), replace(terms, objective=objective))
    number, known = rows.table.numbers("partition"), np.flatnonzero(rows.rates.known)
    if known.size and (most := number[known].max()) > LARGEST_INDEX:
        raise StoreDamaged(f"{folder}: {most} is not a partition index")
    first = np.flatnonzero(np.diff(rows.table.keys[known] >> 32, prepend=-1))
    topic_ids = rows.table.table.column("topic_id").take(known[first]).to_pylist()
    topics: dict[str, array[int]] = {}
    for topic_id, of in zip(topic_ids, np.split(known, first[1:]), strict=False):
        values = np.full(int(number[of].max()) + 1, _UNKNOWN)
        values[number[of]] = _whole(rows.load[of])
        topics[topic_id] = array("q", values.tobytes())
    carried = dict(zip(rows.ids.tolist(), _whole(rows.base).tolist(), strict=True))
    return Loads(PackedLoads(topics), dict(capacities), carried, terms.made_at)


def _whole(hundredths: Ints) -> Ints:
    """Bytes/s, rounded up: a small load must not be taken for an unmeasured one."""
    return -(-hundredths // 100)
