"""Levels: the brokers below the busiest ones."""

from __future__ import annotations

from bellwether_load.balancing.levels import levelled
from testkit.loads.small_problems import block, brokers, carried


def test_brokers_below_one_that_a_heavy_partition_decides_are_balanced_too():
    of = brokers(4)
    heavy, light = (10_000, [0, 1], 0), [(100, [2, 3], 2)] * 99 + [(100, [2, 3], 3)] * 61
    whole = block(4, [heavy, *light])
    found = levelled(whole, of, None)
    assert found.levels[0].load == found.levels[0].floor == 100
    assert max(carried(of, whole, found.block.leader)[2:]) == 8_000
