"""Blocks: partitions as arrays."""

from __future__ import annotations

import numpy as np

from bellwether_load.balancing.blocks import spread, sums
from testkit.loads.small_problems import block


def test_a_block_tells_what_each_broker_leads():
    assert block(3, [(10, [0, 1]), (5, [1, 2]), (7, [0, 2])]).led.tolist() == [17, 5, 0]


def test_sums_are_exact_for_loads_that_a_float_of_half_the_size_could_not_hold():
    large = 2**52
    assert sums(np.array([0, 0]), np.array([large, 1]), 1).tolist() == [large + 1]


def test_a_partition_whose_leader_may_not_lead_gets_one_of_the_eligible_at_first():
    found = block(4, [(1, [2, 3], None), (1, [1], None)])
    assert found.leader[0] in (2, 3)
    assert found.leader[1] == 1
    assert found.changed == 2


def test_first_choices_are_spread_over_the_eligible():
    assert np.bincount(block(5, [(1, [0, 1, 2], None)] * 3000).leader).min() > 900


def test_chance_is_the_same_everywhere_and_another_for_another_round():
    ids = np.arange(5)
    assert spread(ids, 1).tolist() == spread(ids, 1).tolist()
    assert spread(ids, 1).tolist() != spread(ids, 2).tolist()
    # Written down, so that a plan made elsewhere or by a later version is the same.
    assert [f"{x:.6f}" for x in spread(np.array([0, 1, 2]), 0)] == ["0.883311", "0.566562", "0.591190"]


def test_chance_does_not_follow_the_order_of_ids():
    found = spread(np.arange(10_000), 3)
    assert found.min() >= 0.0
    assert found.max() < 1.0
    assert abs(np.corrcoef(np.arange(10_000), found)[0, 1]) < 0.05
    assert abs(found.mean() - 0.5) < 0.01
