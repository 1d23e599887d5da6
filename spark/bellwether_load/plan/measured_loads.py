"""Measured loads of partitions and brokers, weighted by the objective: the input of load limits.

In: partitions with their replicas and measured bytes/s; the policy's objective. Out: ``Loads``, in the same unit that
rebalancing uses. Pure. Called by the reader of a store; hundreds of thousands of partitions take a few megabytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TypeVar, overload

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.loads import Loads
from bellwether.core.settings.objective import Objective

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


class LoadAccumulator:
    """Collects the loads of partitions, and sums the load of brokers as followers."""

    def __init__(self, objective: Objective, capacities: Mapping[int, int]) -> None:
        self._objective = objective
        self._capacities = capacities
        self._topics: dict[str, array[int]] = {}
        self._following: dict[int, int] = {}

    def add(self, key: PartitionKey, replicas: tuple[int, ...], produced: int, consumed: int) -> None:
        """Add a partition: its replicas, and bytes/s in and out. Raises ValueError for an invalid index."""
        if not 0 <= key.partition <= LARGEST_INDEX:
            raise ValueError(f"{key.partition} is not a partition index")
        values = self._topics.get(key.topic_id)
        if values is None:
            values = self._topics[key.topic_id] = array("q")
        if key.partition >= len(values):
            values.extend([_UNKNOWN] * (key.partition + 1 - len(values)))
        values[key.partition] = _whole(self._objective.leading(produced, consumed, len(replicas)))
        follow = self._objective.following(produced)
        for broker in replicas:
            self._following[broker] = self._following.get(broker, 0) + follow

    def loads(self, measured_at: datetime) -> Loads:
        """The collected loads, as of the time that the plan was made for."""
        following = {broker: _whole(carried) for broker, carried in sorted(self._following.items())}
        return Loads(PackedLoads(self._topics), dict(self._capacities), following, measured_at)


def _whole(hundredths: int) -> int:
    """Bytes/s, rounded up: a small load must not be taken for an unmeasured one."""
    return -(-hundredths // 100)
