from __future__ import annotations

from fractions import Fraction

import numpy as np

from bellwether_load.losses.loss_input import BROKER, RACK, LossInput, loss_input
from bellwether_load.losses.loss_loads import losses, worst
from bellwether_load.losses.loss_report import loss_report
from bellwether_load.plan.partition_rows import read_rows
from bellwether_load.plan.problem import BrokerInput, Problem
from testkit.loads.loss_cases import loss_case
from testkit.loads.small_planner import load_table, loads, partition_table, problem, slot

BROKERS = [BrokerInput(1, "a"), BrokerInput(2, "a"), BrokerInput(3, "b"), BrokerInput(4, "b")]


def case_of(posed: Problem, *rates: float) -> LossInput:
    known = load_table(posed, loads(posed, *rates))
    return loss_input(read_rows(posed.header, partition_table(posed.partitions), known))


def test_a_partition_falls_to_its_next_open_isr_member() -> None:
    brokers = [BrokerInput(1), BrokerInput(2, open=False, why="Sick"), BrokerInput(3), BrokerInput(4)]
    posed = problem(slot(0, (1, 2, 3, 4), isr=(1, 2, 4)), brokers=brokers)
    case = case_of(posed, 100.0)
    assert case.heirs(BROKER, case.leader, case.takers).tolist() == [3]


def test_an_heir_of_a_lost_rack_is_outside_of_it() -> None:
    case = case_of(problem(slot(0, (1, 2, 3)), brokers=BROKERS), 100.0)
    assert case.heirs(BROKER, case.leader, case.takers).tolist() == [1]
    assert case.heirs(RACK, case.leader, case.takers).tolist() == [2]


def test_the_survivor_carries_its_own_load_and_what_falls() -> None:
    posed = problem(slot(0, (1, 2)), slot(1, (2, 3)), slot(2, (3, 1)), brokers=3)
    case = case_of(posed, 100.0, 20.0, 30.0)
    found = {loss.domain: loss for loss in losses(case, BROKER, case.leader, case.takers)}
    # Leading costs P + P for one follower less the following; following costs P.
    assert found[0].broker == 1
    assert found[0].load == Fraction((100 + 20) * 100 + (20 + 100) * 100, 100)
    top = worst(list(found.values()))
    assert top is not None
    assert (top.domain, top.load) == (2, Fraction(260))


def test_partitions_without_another_replica_are_leaderless() -> None:
    posed = problem(slot(0, (1,)), slot(1, (2, 1)), brokers=2)
    case = case_of(posed, 100.0, 20.0)
    found = losses(case, BROKER, case.leader, case.takers)
    assert [loss.leaderless for loss in found] == [1, 0]


def test_a_report_names_the_partitions_whose_fall_decides() -> None:
    posed = problem(*(slot(i, (1, 2, 3)) for i in range(4)), slot(4, (3, 1, 2)), brokers=3)
    report = loss_report(case_of(posed, 10.0, 40.0, 30.0, 20.0, 5.0))
    assert report.deciding[BROKER][0] == [1, 2, 3]
    assert report.losses[BROKER][0].broker == 1


def test_other_orders_lower_the_worst_loss_and_keep_leaders() -> None:
    posed = problem(*(slot(i, (1, 2, 3)) for i in range(4)), slot(4, (2, 3, 1)), brokers=3)
    report = loss_report(case_of(posed, 10.0, 10.0, 10.0, 10.0, 10.0))
    top = worst(report.losses[BROKER])
    assert top is not None
    assert (top.load, report.reachable[BROKER], report.normal) == (150, 130, 130)
    assert report.reorders > 0


def test_losses_add_up_to_what_is_carried_without_the_lost() -> None:
    case = loss_case(3, 6, 30)
    for loss in losses(case, BROKER, case.leader, case.takers):
        assert loss.load >= Fraction(int(case.base.min()), 100)
        assert loss.broker != loss.domain
    assert np.unique([loss.domain for loss in losses(case, RACK, case.leader, case.takers)]).tolist() == [0, 1, 2]
