"""Claims about capped plans, about the levels below the busiest brokers, and about what is not measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bellwether.core.settings.objective import Objective
from bellwether_load.plan.certificate import CertificateLevel
from bellwether_load.plan.problem import BrokerInput, Problem
from testkit.loads.plan_verification import rechecked
from testkit.loads.small_planner import Loads, led, level, loads, planned, problem, slot, weigh
from testkit.messages import assert_wording

BROKERS = (BrokerInput(1), BrokerInput(2), BrokerInput(3), BrokerInput(4, open=False, why="Sick"))


def usual() -> tuple[Problem, Loads]:
    """Six partitions, all led by broker 1, of 100 to 600 bytes/s."""
    posed = problem(*(slot(i) for i in range(6)), brokers=BROKERS)
    return posed, loads(posed, *(100.0 * (i + 1) for i in range(6)))


def test_consumption_that_is_not_measured_is_counted() -> None:
    posed = problem(*(slot(i, (1, 2)) for i in range(3)), brokers=2)
    known = loads(posed, 10.0, 10.0, consume=None) | loads(posed, 10.0)
    plan, moves = planned(posed, known)
    assert plan.without_consumption == 1
    assert rechecked(posed, known, plan, moves).passed
    said = "\n".join(rechecked(posed, known, replace(plan, without_consumption=0), moves).faults)
    assert_wording(said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"settled": (4,)}, "level 2 settles [4]: expected ids of open brokers"),
        ({"limit": 1.0}, "level 2 has the limit 1.0: expected one from"),
        ({"limit": 1e12}, "level 2 has the limit 1000000000000.0: expected one from"),
        ({"settled": (1, 2, 3)}, "level 2 has no weight on a broker that is not settled"),
        ({"weights": {1: 1}}, "level 2 has no weight on a broker that is not settled"),
        ({"weights": {9: 1}}, "broker 9 has a weight and is no broker of the problem"),
        ({"bound": 1e9}, "level 2: bound is 1000000000.0"),
    ],
)
def test_a_level_that_proves_nothing_or_claims_too_much_is_refused(change: dict[str, Any], said: str) -> None:
    posed, known = usual()
    plan, moves = planned(posed, known)
    sound = level(posed, weigh(posed, known), [1], plan.after.max, {2: 1, 3: 1})

    def faults(claim: CertificateLevel) -> str:
        certified = replace(plan, certificate=replace(plan.certificate, levels=(claim,)))
        return "\n".join(rechecked(posed, known, certified, moves).faults)

    assert faults(sound) == ""
    assert said in faults(replace(sound, **change))


def test_a_limit_below_what_settled_brokers_carry_is_refused() -> None:
    posed, known = usual()
    stays = [1] * 6
    plan, moves = planned(posed, known, stays)
    forged = level(posed, weigh(posed, known), [1], plan.certificate.bound, {1: 1, 2: 1, 3: 1})
    assert forged.bound > max(b.after for b in plan.brokers[1:3])  # a bound that this plan itself is below
    certified = replace(plan, certificate=replace(plan.certificate, levels=(forged,)))
    assert_wording("\n".join(rechecked(posed, known, certified, moves).faults))


def test_a_weight_of_moves_that_nothing_limits_is_refused() -> None:
    posed, known = usual()
    plan, moves = planned(posed, known)
    forged = replace(plan, certificate=replace(plan.certificate, move_weight=3))
    said = "\n".join(rechecked(posed, known, forged, moves).faults)
    assert_wording(said)


def test_a_limit_of_moves_raises_the_bound_to_what_so_few_moves_can_reach() -> None:
    unlimited = problem(*(slot(i, (1, 2)) for i in range(10)), brokers=2)
    posed = replace(unlimited, header=replace(unlimited.header, objective=Objective(max_moves=2)))
    known = led(posed, *[10.0] * 10)
    leaders = [2, 2] + [1] * 8
    load = 2 * 100 * 10  # produced, and sent to one follower, in hundredths
    plan, moves = planned(posed, known, leaders, weights={1: 1}, move_weight=load)
    assert (plan.certificate.bound, plan.gap) == (8 * load / 100, 0.0)
    assert rechecked(posed, known, plan, moves).passed
    assert planned(unlimited, known, leaders, weights={1: 1, 2: 1})[0].certificate.bound == 5 * load / 100
