"""Each thing that a plan must not do or claim, and the words in which it is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bellwether.core.settings.objective import Objective
from bellwether.core.waves.approved_plan import RebalanceMove
from bellwether_load.plan.problem import NO_BROKER, BrokerInput, PartitionInput, Problem, ProblemHeader
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.verify.plan_verifier import Report
from testkit.loads.plan_verification import rechecked
from testkit.loads.small_planner import Loads, again, loads, move_of, planned, problem, slot
from testkit.messages import assert_wording

BROKERS = (BrokerInput(1, "a"), BrokerInput(2, "b"), BrokerInput(3, "c"), BrokerInput(4, "c", open=False, why="Sick"))


def posed_with(*slots: PartitionInput, objective: Objective | None = None) -> tuple[Problem, Loads]:
    """Three open brokers and one that is closed; partition i carries 100 * (i + 1) bytes/s."""
    made = problem(*slots, brokers=BROKERS, objective=objective)
    return made, loads(made, *(100.0 * (i + 1) for i in range(len(slots))))


def usual(objective: Objective | None = None) -> tuple[Problem, Loads]:
    """Six partitions, all led by broker 1."""
    return posed_with(*(slot(i) for i in range(6)), objective=objective)


def refusal(posed: Problem, known: Loads, plan: RebalancePlan, moves: Sequence[RebalanceMove]) -> str:
    report = rechecked(posed, known, plan, moves)
    assert not report.passed
    return "\n".join(report.faults)


def forge(*moves: RebalanceMove, of: tuple[Problem, Loads] | None = None) -> str:
    """The refusal of a plan that has these moves, and a digest that fits them, and else claims what is true of none."""
    posed, known = of or usual()
    plan, _ = planned(posed, known, [p.leader for p in posed.partitions])
    return refusal(posed, known, again(plan, moves), moves)


def test_a_true_plan_passes_every_check() -> None:
    posed, known = usual()
    report = rechecked(posed, known, *planned(posed, known))
    assert (report.passed, report.faults, len(report.checks)) == (True, (), 22)


def test_a_plan_that_moves_nothing_passes_with_its_gap() -> None:
    posed, known = usual()
    report = rechecked(posed, known, *planned(posed, known, [1] * 6))
    assert report.passed
    assert report.figures["gap"] > 0.3


def test_an_empty_problem_has_a_plan() -> None:
    posed, known = posed_with()
    assert rechecked(posed, known, *planned(posed, known)).faults == ()


# Moves


MOVES = {
    "of another topic": (move_of(slot(0, topic="logs"), 2, 1),),
    "of a topic that was made again": (move_of(slot(2), 2, 300 * 300)._replace(topic_id="new"),),
    "beyond the last partition": (move_of(slot(6), 2, 1),),
    "twice": (move_of(slot(2), 2, 60_000),) * 2,
    "out of order": (move_of(slot(2), 2, 60_000), move_of(slot(1), 2, 40_000)),
}


@pytest.mark.parametrize("moves", MOVES.values(), ids=MOVES)
def test_a_move_of_no_partition_or_out_of_order_is_named(moves: tuple[RebalanceMove, ...]) -> None:
    assert_wording(forge(*moves))


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("replicas", (1, 3, 2), "orders-0 has replicas [1, 3, 2], in the problem [1, 2, 3]"),
        ("replicas", (1, 2), "orders-0 has replicas [1, 2], in the problem [1, 2, 3]"),
        ("from_leader", 3, "orders-0 has from_leader 3, in the problem 1"),
        ("load", 20_001, "orders-0 has load 20001, in the problem 20000"),
        ("order", (3, 2, 1), "orders-0 has the order [3, 2, 1], expected 2 and then the others of [1, 2, 3]"),
        ("order", (2, 1), "orders-0 has the order [2, 1], expected"),
        ("order", (2, 1, 3, 4), "orders-0 has the order [2, 1, 3, 4], expected"),
        ("order", (2, 1, 1), "orders-0 has the order [2, 1, 1], expected"),
        ("order", (), "orders-0 has the order [], expected"),
    ],
)
def test_a_move_that_is_not_the_partitions_is_named_by_field(field: str, value: object, said: str) -> None:
    assert said in forge(move_of(slot(0), 2, 20_000)._replace(**{field: value}))


def test_a_leader_that_is_no_replica_is_refused() -> None:
    move = RebalanceMove("orders", "id-of-orders", 0, (1, 2), (3, 1, 2), 1, 3, 10_000)
    said = forge(move, of=posed_with(slot(0, (1, 2))))
    assert_wording(said)


@pytest.mark.parametrize(
    ("one", "to", "load", "racks"),
    [
        pytest.param(slot(0, (1, 4)), 4, 10_000, (), id="on a closed broker"),
        pytest.param(slot(0, (1, 2, 3), isr=(1, 3)), 2, 20_000, (), id="outside the ISR"),
        pytest.param(slot(0, (1, 2, 3)), 3, 20_000, ("z", "b"), id="outside the preferred rack"),
    ],
)
def test_a_leader_that_may_not_lead_is_refused(one: PartitionInput, to: int, load: int, racks: tuple[str, ...]) -> None:
    assert_wording(forge(move_of(one, to, load), of=posed_with(one, objective=Objective(preferred_racks=racks))))


@pytest.mark.parametrize(
    ("one", "rate", "why"),
    [
        (slot(0, held="Displaced"), 100.0, "is held (Displaced)"),
        (slot(0), None, "has no load"),
        (slot(0, isr=()), 100.0, "has no candidate"),
    ],
)
def test_what_must_stay_is_not_moved(one: PartitionInput, rate: float | None, why: str) -> None:
    posed, _ = posed_with(one)
    known = {} if rate is None else loads(posed, rate)
    assert_wording(forge(move_of(one, 2, 0), of=(posed, known)))


@pytest.mark.parametrize("one", [slot(0, (4, 1, 2)), slot(0, (1, 2), leader=NO_BROKER)], ids=["closed", "leaderless"])
def test_what_no_eligible_broker_leads_must_move(one: PartitionInput) -> None:
    posed, known = posed_with(one)
    plan, moves = planned(posed, known)
    assert rechecked(posed, known, plan, moves).passed
    assert_wording(refusal(posed, known, again(plan, ()), ()))


def test_a_leader_that_stays_must_come_first() -> None:
    posed, known = posed_with(slot(0, (1, 2), leader=2), slot(1, (1, 2)))
    plan, moves = planned(posed, known)
    assert (len(moves), moves[0].moves_leader, plan.moved.reordered) == (1, False, 1)
    assert rechecked(posed, known, plan, moves).passed
    assert_wording(refusal(posed, known, again(plan, ()), ()))


def test_a_move_that_moves_nothing_is_refused() -> None:
    assert_wording(forge(move_of(slot(3), 1, 80_000)))


def test_the_cap_holds_but_for_what_must_move() -> None:
    posed, known = usual(Objective(max_moves=1))
    assert_wording(refusal(posed, known, *planned(posed, known, [1, 1, 1, 1, 2, 3])))
    assert rechecked(posed, known, *planned(posed, known, [1, 1, 1, 1, 1, 3])).passed
    forced, rates = posed_with(slot(0, (4, 1)), slot(1, (4, 2)), slot(2), objective=Objective(max_moves=1))
    assert rechecked(forced, rates, *planned(forced, rates, [1, 2, 1])).passed
    assert_wording(refusal(forced, rates, *planned(forced, rates, [1, 2, 3])))


# Digests and identity


def test_moves_that_the_digest_does_not_name_are_refused() -> None:
    posed, known = usual()
    plan, moves = planned(posed, known)
    assert "plan digest: the plan says" in refusal(posed, known, plan, moves[1:])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"cluster_id": "another"}, "clusterId is 'memory-cluster' in the plan and 'another' in the problem"),
        ({"policy": "kafka/other"}, "policy is 'kafka/main' in the plan and 'kafka/other' in the problem"),
        ({"objective": Objective(max_moves=99)}, "objective.max_moves is 'None' in the plan and '99' in the problem"),
    ],
)
def test_the_plan_of_another_cluster_policy_or_objective_is_refused(changed: dict[str, object], said: str) -> None:
    posed, known = usual()
    plan, moves = planned(posed, known)
    terms: ProblemHeader = replace(posed.header, **changed)  # type: ignore[arg-type]
    assert f"made for this problem: {said}" in refusal(replace(posed, header=terms), known, plan, moves)


# The problem itself


@pytest.mark.parametrize(
    ("slots", "said"),
    [
        ([slot(0), slot(0)], "orders-0 occurs twice"),
        ([slot(1), slot(0)], "orders-0 comes after the partition that follows it, out of order"),
        ([slot(0, (1, 9))], "orders-0 has the replicas [1, 9], of which problem.json lists not all"),
        ([slot(0, (1, 1))], "orders-0 has the replicas [1, 1]"),
        ([slot(0, (1, 2), isr=(3,))], "orders-0 has the ISR [3]"),
        ([slot(0, (1, 2), leader=3)], "orders-0 is led by 3, which is not among its replicas"),
        ([slot(-1)], "orders--1 "),
        ([slot(0)._replace(replicas=(), isr=())], "orders-0 has the replicas []"),
        ([slot(0), slot(1)._replace(topic_id="other")], "orders-1 has another topic id than the topic's"),
        ([slot(0), slot(0, topic="payments")._replace(topic_id="id-of-orders")], "belongs to another topic"),
        ([slot(0, topic="a\tb")], "cannot be printed"),
        ([slot(0, held="x\n")], "held for a reason that cannot be printed"),
    ],
)
def test_a_problem_that_makes_no_sense_is_refused_by_partition(slots: list[PartitionInput], said: str) -> None:
    sound, known = posed_with(slot(0))
    plan, moves = planned(sound, known)
    assert said in refusal(replace(sound, partitions=tuple(slots)), known, plan, moves)


def test_without_an_open_broker_there_is_no_plan() -> None:
    posed, known = usual()
    plan, moves = planned(posed, known)
    terms = replace(posed.header, brokers=tuple(replace(b, open=False) for b in BROKERS))
    assert "no broker is open" in refusal(replace(posed, header=terms), known, plan, moves)


# What is claimed


def with_weights(weights: dict[int, int]) -> Report:
    posed, known = usual()
    plan, moves = planned(posed, known)
    return rechecked(posed, known, replace(plan, certificate=replace(plan.certificate, weights=weights)), moves)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({1: 1, 4: 1}, "broker 4 has a weight and is closed"),
        ({1: 1, 9: 1}, "broker 9 has a weight and is no broker of the problem"),
        ({1: 0, 2: 0}, "all are 0: they prove nothing"),
        ({}, "all are 0: they prove nothing"),
    ],
)
def test_weights_that_are_none_are_refused_by_broker(weights: dict[int, int], said: str) -> None:
    assert said in "\n".join(with_weights(weights).faults)


def test_weights_that_prove_less_are_refused_by_the_bound() -> None:
    found = with_weights({3: 1})
    assert [c.name for c in found.checks if not c.passed] == ["bound"]


def test_weights_of_another_scale_prove_the_same() -> None:
    assert with_weights({1: 7_000, 2: 7_000, 3: 7_000}).passed == with_weights({1: 1, 2: 1, 3: 1}).passed is True


def test_a_brokers_load_that_is_not_so_is_refused_by_broker() -> None:
    plan, moves = planned(*usual())
    forged = replace(plan, brokers=(*plan.brokers[:2], replace(plan.brokers[2], after=1.0), *plan.brokers[3:]))
    assert_wording(refusal(*usual(), forged, moves))


@pytest.mark.parametrize("change", [{"id": 9}, {"rack": "z"}, {"capacity": 1}, {"open": False}])
def test_a_plan_for_other_brokers_is_refused(change: dict[str, object]) -> None:
    plan, moves = planned(*usual())
    forged = replace(plan, brokers=(replace(plan.brokers[0], **change), *plan.brokers[1:]))  # type: ignore[arg-type]
    assert_wording(refusal(*usual(), forged, moves))


def test_what_brokers_carry_in_any_case_is_part_of_the_bound_whatever_the_weights() -> None:
    posed, known = posed_with(slot(0, (1, 2), leader=NO_BROKER, held="Displaced"))
    plan, moves = planned(posed, known, weights={3: 1})
    assert (plan.certificate.bound, plan.after.max, plan.gap) == (100, 100, 0)
    assert rechecked(posed, known, plan, moves).passed


def test_many_faults_of_a_kind_are_counted_and_few_listed() -> None:
    posed, known = posed_with(*(slot(i, (4, 1)) for i in range(40)))
    said = refusal(posed, known, again(planned(posed, known)[0], ()), ()).splitlines()
    noted = [line for line in said if line.startswith("what must move moves")]
    assert len(noted) == 6
    assert_wording(noted[-1])
