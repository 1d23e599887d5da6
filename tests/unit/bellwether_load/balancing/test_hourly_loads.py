"""The forecast against what brokers really carried, minute by minute, where topics are busy at different times."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bellwether.core.settings.objective import Objective
from bellwether_load.balancing.blocks import Brokers
from bellwether_load.balancing.hourly_loads import HourlyLoads, forecast, loads_by_hour
from bellwether_load.histories.loads import UNKNOWN, filled
from bellwether_load.histories.samples import Floats
from testkit.loads.load_histories import measured, rates

PARTITIONS, BROKERS, HOURS = 24, 4, 6
COSTS = Objective()
OPEN = Brokers.of(
    np.arange(1, 1 + BROKERS),
    np.array([True, True, True, False]),
    np.array([100, 50, 200, 100]),
    *[np.zeros(4, np.int64)] * 2,
)


def traffic(kind: str) -> Floats:
    """Messages of each partition in each minute."""
    dice = np.random.default_rng(5)
    minute = np.arange(60 * HOURS)
    height = dice.lognormal(5, 0.7, PARTITIONS)[:, None]
    shift = {"in phase": 0, "three regions": np.arange(PARTITIONS) % 3 * 120, "jobs": np.arange(PARTITIONS) * 60}[kind]
    at = minute - np.atleast_1d(shift)[:, None]
    wave = 1 + 0.8 * np.cos(at * 2 * np.pi / len(minute))
    if kind == "jobs":
        wave = np.where(at // 60 % HOURS == 0, 10.0, 0.5)
    noise: Floats = np.rint(height * wave * dice.uniform(0.7, 1.3, (PARTITIONS, len(minute))))
    return noise


@pytest.mark.parametrize("kind", ["in phase", "three regions", "jobs"])
def test_the_busiest_hour_is_what_the_broker_carried_in_it(kind: str):
    sent, dice = traffic(kind), np.random.default_rng(9)
    replicas = np.array([dice.permutation(BROKERS)[:3] for _ in range(PARTITIONS)], np.int32)
    leader, target = replicas[:, 0], replicas[:, 1]
    known = measured(*(rates(row.astype(int).tolist(), each=1000) for row in sent))
    first = int(np.flatnonzero(known.produce_hours[0] != UNKNOWN)[0])
    hours = range(first, first + HOURS)
    produce = filled(known.produce_hours, hours, known.produce.p95)
    part = loads_by_hour(replicas, BROKERS, COSTS, np.arange(PARTITIONS), produce, np.zeros_like(produce))
    known_loads = HourlyLoads(tuple(hours), leader, lambda: iter([part]))
    sums = known_loads.by_broker(BROKERS, leader, target)
    seen = forecast(OPEN, tuple(hours), *sums)
    for said, leaders in ((seen.before, leader), (seen.after, target)):
        true = np.zeros((BROKERS, HOURS))
        for p, each in enumerate(sent.reshape(PARTITIONS, HOURS, 60).mean(axis=2) * 1000 / 60):
            true[leaders[p]] += 300 * each  # itself and two followers
            for follower in replicas[p][replicas[p] != leaders[p]]:
                true[follower] += 100 * each
        relative = true[:3] / OPEN.capacity[:3, None]
        assert said.load == pytest.approx(relative.max(), rel=0.001)
        assert relative[said.broker - 1, said.hour - first] == pytest.approx(relative.max(), rel=0.001)


def test_of_equal_broker_hours_the_first_is_named_and_closed_brokers_are_none():
    carried = np.array([[1, 2, 2], [1, 1, 1], [4, 4, 0], [9, 9, 9]])
    seen = forecast(OPEN, (7, 8, 9), carried, carried + 1)
    assert (seen.hours, seen.before.broker, seen.before.hour, seen.before.load) == (3, 1, 8, 0.02)
    assert (seen.after.broker, seen.after.hour, seen.after.load) == (2, 7, 0.04)


def test_loads_that_a_double_cannot_tell_apart_are_compared_exactly():
    carried = np.array([[2**60], [0], [2**61 + 1], [0]])
    assert float(Fraction(2**60, 100)) == float(Fraction(2**61 + 1, 200))
    assert forecast(OPEN, (0,), carried, carried).before.broker == 3
