"""What was measured of partitions, in the measure of balancing, kept small."""

from __future__ import annotations

import tracemalloc
from array import array
from datetime import UTC, datetime

import pytest

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.settings.objective import Objective
from bellwether_load.plan.measured_loads import LARGEST_INDEX, LoadAccumulator, PackedLoads

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def key(index: int, topic: str = "t") -> PartitionKey:
    return PartitionKey(topic, index)


def measured(*rows: tuple[PartitionKey, tuple[int, ...], int, int], **weights: int) -> LoadAccumulator:
    found = LoadAccumulator(Objective(**weights), {3: 50})
    for row in rows:
        found.add(*row)
    return found


def test_leading_costs_what_is_taken_handed_on_and_consumed_less_what_following_costs():
    loads = measured((key(0), (1, 2, 3), 10, 5)).loads(NOON)
    assert loads.partitions[key(0)] == 10 + 2 * 10 + 5 - 10


def test_every_replica_follows_as_far_as_limits_are_concerned():
    loads = measured((key(0), (1, 2, 3), 10, 5), (key(1), (2,), 7, 0)).loads(NOON)
    assert loads.following == {1: 10, 2: 17, 3: 10}


def test_weights_are_percent_and_a_fraction_of_a_byte_counts_as_one():
    loads = measured((key(0), (1, 2), 3, 0), replication_weight=50, follow_weight=0).loads(NOON)
    assert loads.partitions[key(0)] == 5  # 3 + 1.5
    assert loads.following == {1: 0, 2: 0}


def test_capacities_and_the_moment_go_with_the_loads():
    loads = measured((key(0), (1,), 1, 0)).loads(NOON)
    assert (loads.capacities, loads.measured_at, loads.awaited) == ({3: 50}, NOON, False)


def test_what_was_not_measured_is_not_there():
    loads = measured((key(2), (1,), 4, 0)).loads(NOON).partitions
    assert [loads.get(key(i)) for i in range(4)] == [None, None, 0, None]  # one replica hands nothing on
    assert loads.get(key(0, "other"), 7) == 7
    assert loads.get(key(-1), 7) == 7
    assert (list(loads), len(loads)) == ([key(2)], 1)
    with pytest.raises(KeyError):
        loads[key(0)]


def test_it_reads_like_any_mapping():
    loads = PackedLoads({"t": array("q", [5, -1, 6])})
    assert dict(loads) == {key(0): 5, key(2): 6}
    assert key(1) not in loads


@pytest.mark.parametrize("index", [-1, LARGEST_INDEX + 1])
def test_an_index_that_no_partition_has_takes_no_memory(index: int):
    with pytest.raises(ValueError, match=f"{index} is not a partition index"):
        measured((key(index), (1,), 1, 0))


def test_a_partition_takes_twelve_bytes():
    found = LoadAccumulator(Objective(), {})
    tracemalloc.start()
    try:
        for topic in range(20):
            for index in range(100):
                found.add(key(index, f"topic-{topic}"), (1, 2, 3), 1000 + index, 0)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.loads(NOON).partitions) == 2_000
    assert kept < 24_000
