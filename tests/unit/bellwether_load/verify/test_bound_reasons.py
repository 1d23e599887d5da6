"""What decides a bound, in a sentence about brokers, partitions and shares."""

from __future__ import annotations

from bellwether.core.settings.objective import Objective
from bellwether_load.plan.problem import BrokerInput, Problem
from testkit.loads.plan_verification import rechecked
from testkit.loads.small_planner import Loads, led, loads, planned, problem, slot
from testkit.messages import assert_wording


def reasons_of(posed: Problem, known: Loads, *args: object, **given: object) -> str:
    report = rechecked(posed, known, *planned(posed, known, *args, **given))  # type: ignore[arg-type]
    assert report.faults == ()
    return report.reasons


def test_one_broker_with_a_partition_that_must_stay() -> None:
    posed = problem(slot(0, (1, 2), held="Excluded"), *(slot(i, (1, 2)) for i in range(1, 5)), brokers=2)
    found = reasons_of(posed, led(posed, 94.0, *[1.0] * 4))
    assert_wording(found)


def test_a_partition_that_is_heavy_wherever_it_goes() -> None:
    posed = problem(*(slot(i, (1, 2)) for i in range(3)), brokers=2)
    found = reasons_of(posed, led(posed, 60.0, 20.0, 10.0))
    assert_wording(found)


def test_a_heavy_partition_and_what_its_broker_carries_in_any_case() -> None:
    # 300 of following on every broker, so that the heavy partition is not all of the bound.
    held = [slot(i, (b,)) for i, b in enumerate((1, 2), start=1)]
    posed = problem(slot(0, (1, 2)), *held, brokers=2)
    found = reasons_of(posed, led(posed, 50.0, 50.0, 50.0))
    assert_wording(found)


def test_brokers_that_alone_may_lead_what_they_lead() -> None:
    posed = problem(*(slot(i, (1, 2)) for i in range(4)), *(slot(i, (2, 3)) for i in range(4, 6)))
    found = reasons_of(posed, led(posed, *[100.0] * 4, 1.0, 1.0), weights={1: 1, 2: 1})
    assert_wording(found)


def test_following_counts_among_what_brokers_must_carry() -> None:
    posed = problem(slot(0, (1, 2), held="Excluded"), slot(1, (2, 1), held="Excluded"), slot(2, (3, 1)), brokers=3)
    found = reasons_of(posed, loads(posed, 100.0, 50.0, 1.0))
    assert "% is following and" in found


def test_the_mean_of_all_brokers() -> None:
    posed = problem(*(slot(i) for i in range(6)))
    found = reasons_of(posed, loads(posed, *[10.0] * 6), weights={1: 2, 2: 2, 3: 2})
    assert_wording(found)


def test_a_cap_keeps_leaders_that_could_move() -> None:
    posed = problem(*(slot(i, (1, 2)) for i in range(10)), brokers=2, objective=Objective(max_moves=2))
    load = 2 * 100 * 10
    found = reasons_of(posed, led(posed, *[10.0] * 10), [2, 2] + [1] * 8, weights={1: 1}, move_weight=load)
    assert_wording(found)


def test_many_brokers_are_counted() -> None:
    brokers = tuple(BrokerInput(b) for b in range(1, 11))
    posed = problem(*(slot(i, (i + 1,)) for i in range(8)), brokers=brokers)
    found = reasons_of(posed, led(posed, *[10.0] * 8), weights=dict.fromkeys(range(1, 9), 1))
    assert_wording(found)


def test_nothing_measured_proves_nothing() -> None:
    posed = problem(*(slot(i) for i in range(3)))
    assert_wording(reasons_of(posed, {}))
