"""The settings of a rebalance: off and harmless by default, and when a plan is too old."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellwether.core.settings.policy import Policy
from bellwether.core.settings.rebalance import Approval, Rebalance, RebalanceWaves
from bellwether.simulation.memory_world import START


def test_a_policy_rebalances_nothing_unless_it_says_so():
    assert Policy(name="main").rebalance is None


def test_defaults_ask_person_and_move_little_at_time():
    made = Rebalance()
    assert (made.approval, made.schedule) == (Approval.MANUAL, None)
    assert made.waves == RebalanceWaves(partitions=500, pause_seconds=30)


@pytest.mark.parametrize(("seconds", "expired"), [(0, False), (3600, False), (3601, True), (-60, False)])
def test_plan_is_too_old_after_its_time_and_not_before(seconds: int, expired: bool):
    made = Rebalance(valid_seconds=3600)
    assert made.expired(START, START + timedelta(seconds=seconds)) is expired
