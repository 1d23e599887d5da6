"""Read the measured loads of a run from a store: the cost of leading each partition, packed.

In: a store, the name of a problem and of the loads that were measured for it, the policy's objective. Out:
``core.model.loads.Loads``, or a StoreError that names the file. Rows are streamed; the result takes a few megabytes for
hundreds of thousands of partitions. Called by ``plan_store``.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeVar, overload

import pyarrow as pa

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.loads import Loads
from bellwether.core.settings.objective import Objective
from bellwether_load.plan.problem import ProblemHeader
from bellwether_load.store.columns import batches, rows
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import plan_files, problem_files
from bellwether_load.store.plans.load_hours import load_files, load_rows
from bellwether_load.store.store_errors import StoreDamaged
from bellwether_load.verify.checks import Faults
from bellwether_load.verify.load_rows import LOADS, LoadRows

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
    stored = LoadRows(load_rows(folder, load_files(folder), objective.statistic), faults, objective.statistic)
    path = f"{problem_files.FOLDER}/{name}/{problem_files.PARTITIONS}"
    topics: dict[str, array[int]] = defaultdict(lambda: array("q"))
    following = Counter[int]()
    for topic, topic_id, index, replicas in (row for batch in batches(store, path, _SCHEMA) for row in rows(batch)):
        load = stored.of((topic, topic_id, index))
        if faults.any(LOADS):
            raise StoreDamaged(f"{folder}: {faults.of(LOADS)[0]}")
        if load is None:
            continue
        if not 0 <= index <= LARGEST_INDEX:
            raise StoreDamaged(f"{store.where(path)}: topic id {topic_id}: {index} is not a partition index")
        values = topics[topic_id]
        values.extend([_UNKNOWN] * (index + 1 - len(values)))
        values[index] = _whole(objective.leading(load.produce, load.consume, len(replicas)))
        following.update(dict.fromkeys(replicas, objective.following(load.produce)))
    carried = {broker: _whole(load) for broker, load in sorted(following.items())}
    return Loads(PackedLoads(topics), dict(capacities), carried, terms.made_at)


def _whole(hundredths: int) -> int:
    """Bytes/s, rounded up: a small load must not be taken for an unmeasured one."""
    return -(-hundredths // 100)
