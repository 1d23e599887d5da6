"""What a certificate promises, for any small problem: true plans pass, false claims do not, and the bound is one."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bellwether.core.model.cluster import PartitionKey
from bellwether_load.plan.problem import BrokerInput, Problem
from testkit.loads.plan_verification import load_problems, rechecked
from testkit.loads.small_planner import (
    Loads,
    again,
    bound,
    carried,
    led,
    level,
    loads,
    move_of,
    optimum,
    planned,
    problem,
    slot,
    weigh,
)

Posed = tuple[Problem, dict[PartitionKey, tuple[float, float | None]]]


@st.composite
def weights_for(draw: st.DrawFn, posed: Problem) -> dict[int, int]:
    """Any weights on the open brokers that are not all 0."""
    free = [b.id for b in posed.header.brokers if b.open]
    found = {b: draw(st.integers(0, 1000)) for b in free}
    assume(any(found.values()))
    return found


@given(load_problems())
def test_a_true_plan_passes(drawn: Posed) -> None:
    posed, known = drawn
    assert rechecked(posed, known, *planned(posed, known)).faults == ()


@given(st.data(), load_problems())
def test_a_valid_plan_passes_for_any_leaders_and_weights(data: st.DataObject, drawn: Posed) -> None:
    posed, known = drawn
    weighed = weigh(posed, known)
    leaders = [data.draw(st.sampled_from(w.eligible)) if w.free else w.slot.leader for w in weighed]
    weights = data.draw(weights_for(posed))
    assert rechecked(posed, known, *planned(posed, known, leaders, weights)).faults == ()


@given(st.data(), load_problems(most=5))
def test_no_plan_is_better_than_the_bound_of_any_weights(data: st.DataObject, drawn: Posed) -> None:
    posed, known = drawn
    weights, best = data.draw(weights_for(posed)), optimum(posed, known)
    plan, moves = planned(posed, known, weights=weights)
    report = rechecked(posed, known, plan, moves)
    figures = report.figures
    assert report.faults == ()
    assert bound(posed, weigh(posed, known), weights) <= best
    assert figures["dualBound"] <= figures["bound"]
    # Figures are rounded to doubles.
    assert figures["bound"] <= float(best) * (1 + 1e-12)


@given(st.data(), load_problems(most=5), st.none() | st.integers(0, 3), st.integers(0, 10**6))
def test_what_is_said_to_decide_bound_is_in_problem(
    data: st.DataObject, drawn: Posed, most: int | None, move_weight: int
) -> None:
    free, known = drawn
    posed = replace(free, header=replace(free.header, objective=replace(free.header.objective, max_moves=most)))
    move_weight = 0 if most is None else move_weight
    weights = data.draw(weights_for(posed))
    weighed = weigh(posed, known)
    leaders = [w.slot.leader if w.slot.leader in w.eligible or not w.free else w.eligible[0] for w in weighed]
    plan, moves = planned(posed, known, leaders, weights, move_weight)
    said = rechecked(posed, known, plan, moves).reasons
    assert said.startswith("The bound is 0") == (not plan.certificate.bound)
    loads = {f"{w.slot.topic}-{w.slot.partition}": w.load for w in weighed}
    assert all(loads[name] for name in re.findall(r"[a-z]+-\d+", said))
    assert said.endswith(".")


@given(st.data(), load_problems(most=5), st.integers(0, 4), st.integers(0, 10**8))
def test_no_plan_with_so_few_moves_is_better_than_the_bound_of_any_weights(
    data: st.DataObject, drawn: Posed, most: int, move_weight: int
) -> None:
    free, known = drawn
    terms = replace(free.header, objective=replace(free.header.objective, max_moves=most))
    posed = replace(free, header=terms)
    weights = data.draw(weights_for(posed))
    weighed = weigh(posed, known)
    # As few leaders change as can.
    leaders = [w.slot.leader if w.slot.leader in w.eligible else w.eligible[0] if w.free else -1 for w in weighed]
    leaders = [leader if w.free else w.slot.leader for w, leader in zip(weighed, leaders, strict=True)]
    report = rechecked(posed, known, *planned(posed, known, leaders, weights, move_weight))
    assert report.faults == ()
    best = optimum(posed, known)
    assert report.figures["dualBound"] == pytest.approx(float(bound(posed, weighed, weights, move_weight)), abs=1e-6)
    assert report.figures["bound"] <= float(best) * (1 + 1e-12)


@given(st.data(), load_problems(most=5))
def test_no_plan_that_keeps_settled_brokers_as_low_is_better_for_the_others_than_the_bound(
    data: st.DataObject, drawn: Posed
) -> None:
    posed, known = drawn
    free = {b.id: b.capacity for b in posed.header.brokers if b.open}
    settled = data.draw(st.lists(st.sampled_from(sorted(free)), unique=True, max_size=len(free) - 1))
    rest = set(free) - set(settled)
    weights = data.draw(weights_for(posed))
    assume(any(weights[b] for b in rest))
    weighed = weigh(posed, known)
    leaders = [data.draw(st.sampled_from(w.eligible)) if w.free else w.slot.leader for w in weighed]
    plan, moves = planned(posed, known, leaders)
    limit = data.draw(st.sampled_from([plan.certificate.bound, plan.after.max]))
    claim = level(posed, weighed, settled, limit, weights)
    certified = replace(plan, certificate=replace(plan.certificate, levels=(claim,)))
    found = rechecked(posed, known, certified, moves).faults
    total = carried(posed, weighed, leaders)
    over = any(total[b] > Fraction(limit) * free[b] * Fraction(1002, 1000) for b in settled)
    assert bool(found) == over
    forged = replace(claim, bound=claim.bound * 1.01 + 1)
    refused = replace(plan, certificate=replace(plan.certificate, levels=(forged,)))
    said = rechecked(posed, known, refused, moves).faults
    assert any(f.startswith(f"levels: level 2: {'broker' if over else 'bound is'}") for f in said)
    for other in itertools.product(*(w.eligible or (-1,) for w in weighed)):
        total = carried(posed, weighed, other)
        if all(total[b] <= Fraction(limit) * free[b] for b in settled):
            busiest = max(Fraction(total[b], free[b]) for b in rest)
            assert float(busiest) >= claim.bound * (1 - 1e-12)


@given(st.data(), load_problems())
def test_the_moved_load_is_never_below_what_must_move(data: st.DataObject, drawn: Posed) -> None:
    posed, known = drawn
    weighed = weigh(posed, known)
    leaders = [data.draw(st.sampled_from(w.eligible)) if w.free else w.slot.leader for w in weighed]
    plan, _ = planned(posed, known, leaders)
    assert plan.moved.load >= plan.moved.lower_bound


@given(st.data(), load_problems())
def test_other_weights_are_refused_unless_they_prove_the_same(data: st.DataObject, drawn: Posed) -> None:
    posed, known = drawn
    plan, moves = planned(posed, known)
    weights = data.draw(weights_for(posed))
    forged = replace(plan, certificate=replace(plan.certificate, weights=weights))
    honest, _ = planned(posed, known, weights=weights)
    same = honest.certificate.bound == pytest.approx(plan.certificate.bound, rel=1e-9, abs=0)
    assert rechecked(posed, known, forged, moves).passed == same


@given(load_problems(), st.floats(0, 10))
def test_another_bound_is_refused(drawn: Posed, factor: float) -> None:
    posed, known = drawn
    plan, moves = planned(posed, known)
    assume(plan.certificate.bound > 0)
    assume(abs(factor - 1) > 1e-8)
    raised = plan.certificate.bound * factor
    forged = replace(plan, certificate=replace(plan.certificate, bound=raised))
    assert any(f.startswith("bound: ") for f in rechecked(posed, known, forged, moves).faults)


@given(load_problems(), st.sampled_from(["before", "after"]), st.floats(1e-6, 1e6))
def test_another_figure_is_refused(drawn: Posed, name: str, more: float) -> None:
    posed, known = drawn
    plan, moves = planned(posed, known)
    first, *others = plan.brokers
    said = getattr(first, name)
    forged = replace(plan, brokers=(replace(first, **{name: said + more + said * more}), *others))
    assert not rechecked(posed, known, forged, moves).passed


@given(st.data(), load_problems())
def test_another_leader_is_refused_even_with_a_digest_that_fits(data: st.DataObject, drawn: Posed) -> None:
    posed, known = drawn
    plan, moves = planned(posed, known)
    weighed = {w.slot.key: w for w in weigh(posed, known)}
    candidates = [m for m in moves if len(m.replicas) > 1]
    assume(candidates)
    move = data.draw(st.sampled_from(candidates))
    to = data.draw(st.sampled_from([b for b in move.replicas if b != move.to_leader]))
    forged = tuple(move_of(weighed[m.key].slot, to, m.load) if m.key == move.key else m for m in moves)
    report = rechecked(posed, known, again(plan, forged), forged)
    if report.passed:  # then it is a true plan, too, with the very same claims
        leaders = {m.key: m.to_leader for m in forged}
        other = [leaders.get(p.key, p.leader) for p in posed.partitions]
        honest, _ = planned(posed, known, other, plan.certificate.weights)
        assert honest.moved == plan.moved
        assert honest.after.max == pytest.approx(plan.after.max, rel=1e-9)
        assert [b.after for b in honest.brokers] == pytest.approx([b.after for b in plan.brokers], rel=1e-9)
    assert not rechecked(posed, known, plan, forged).passed


@given(st.data(), load_problems())
def test_a_move_more_or_less_is_refused(data: st.DataObject, drawn: Posed) -> None:
    posed, known = drawn
    plan, moves = planned(posed, known)
    assume(moves)
    at = data.draw(st.integers(0, len(moves) - 1))
    for forged in (moves[:at] + moves[at + 1 :], moves[: at + 1] + moves[at:]):
        assert not rechecked(posed, known, again(plan, forged), forged).passed


@given(st.data(), load_problems())
def test_other_loads_are_refused(data: st.DataObject, drawn: Posed) -> None:
    posed, known = drawn
    assume(known)
    plan, moves = planned(posed, known)
    key = data.draw(st.sampled_from(sorted(known)))
    produce, consume = known[key]
    changed = data.draw(st.sampled_from([(produce + 2, consume), (produce, (consume or 0) + 2), None]))
    other = {k: v for k, v in known.items() if k != key} | ({key: changed} if changed else {})
    assert not rechecked(posed, other, plan, moves).passed


@given(load_problems(), load_problems())
def test_the_plan_of_another_problem_is_refused(one: Posed, other: Posed) -> None:
    assume(one != other)
    plan, moves = planned(*one)
    honest, _ = planned(*other)
    assert rechecked(*other, plan, moves).passed == (plan.problem_digest == honest.problem_digest)


def test_good_weights_come_within_one_item_of_the_best_plan() -> None:
    posed = problem(*(slot(i, (1 + i % 3, 1 + (i + 1) % 3), leader=1 + i % 3) for i in range(9)))
    known: Loads = loads(posed, *(100.0 * (i + 1) for i in range(9)))
    plan, _ = planned(posed, known)
    assert (plan.certificate.bound, float(optimum(posed, known))) == (4500.0, 4600.0)
    assert plan.gap == pytest.approx(plan.after.max / 4500 - 1)


def test_weights_on_relievable_brokers_alone_give_a_higher_bound() -> None:
    alone = [slot(i, (1, 2)) for i in range(2)]
    posed = problem(*alone, slot(2, (3,), topic="logs"), brokers=3)
    known = loads(posed, 5.0, 100.0, 100.0)
    weighed = weigh(posed, known)
    assert bound(posed, weighed, {1: 1, 2: 1}) > bound(posed, weighed, {1: 1, 2: 1, 3: 1})


def test_a_bound_that_counted_ineligible_replicas_would_be_loose() -> None:
    brokers = (BrokerInput(1), BrokerInput(2), BrokerInput(3, open=False, why="Sick"))
    posed = problem(slot(0, (1, 3)), slot(1, (1, 3)), brokers=brokers)
    known = led(posed, 50.0, 50.0)
    plan, moves = planned(posed, known, weights={1: 1})
    assert rechecked(posed, known, plan, moves).passed
    assert Fraction(plan.certificate.bound) == optimum(posed, known) == 2 * 50 * 2
