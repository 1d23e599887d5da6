from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bellwether_load.losses import loss_bounds
from bellwether_load.losses.loss_bounds import LossProof
from bellwether_load.losses.loss_input import LossInput, domains
from bellwether_load.losses.loss_loads import busiest, losses, worst
from bellwether_load.losses.order_descent import OrderDescent
from bellwether_load.verify.losses import loss_bound
from testkit.loads.loss_cases import judged, loss_case, lowest


@pytest.mark.parametrize("seed", range(8))
def test_no_plan_is_below_the_bound(seed: int) -> None:
    case = loss_case(seed, 5 if seed % 2 else 6, 4, rough=bool(seed % 2), heavy=1.5)
    limit = busiest(case, case.leader) * Fraction(1001, 1000)
    for kind in case.domains:
        proof = LossProof(case, kind, limit)
        least = lowest(case, kind, limit)
        assert least is not None
        assert proof.best(case.leader, case.takers).value <= least
        dice = np.random.default_rng(seed)
        some = dice.integers(0, 5, (int(case.domains[kind].max()) + 1, case.brokers))
        survives = case.open & (case.domains[kind][None, :] != np.arange(len(some))[:, None])
        room = dice.integers(0, 3, case.brokers) * case.open
        for factor in (None, 8, 9, 10, 11):
            threshold = None if factor is None else least * Fraction(factor, 10)
            assert proof.bound(some * survives, case.open * 1, threshold).value <= least
            assert proof.bound(some * 0, room, threshold).value <= least


@pytest.mark.parametrize("seed", range(12))
def test_the_verifier_finds_the_same_bound(seed: int) -> None:
    case = loss_case(seed, 6, 40, rough=bool(seed % 2))
    limit = busiest(case, case.leader) * Fraction(1001, 1000)
    for kind in case.domains:
        proof = LossProof(case, kind, limit)
        best = proof.best(case.leader, case.takers)
        for factor in (0, 7, 8, 9, 10, 11):
            bound = proof.bound(best.lost, best.normal, best.value * Fraction(factor, 10)) if factor else best
            assert loss_bound(judged(case, kind, limit), bound.lost, bound.normal, bound.threshold) == bound.value


def test_full_brokers_bound_losses_that_idle_ones_hide(monkeypatch: pytest.MonkeyPatch) -> None:
    # Brokers 0 to 5 are all at the limit; 6 to 8 have as much room as these carry, but no replica of what these lead.
    full = [(a, b) for a in range(3) for b in range(3, 6)]
    takers = np.array([*(pair for a, b in full for pair in ((a, b), (b, a)) for _ in range(21)), (6, 7), (7, 8)])
    loads = np.array([*[1_000, *[10] * 20] * 18, 10, 10])
    count, takers = len(loads), takers.astype(np.int32)
    equal = np.full(9, 100, np.int64), np.ones(9, np.bool_), np.zeros(9, np.int64)
    racks = domains(["a"] * 3 + ["b"] * 3 + ["c"] * 3)
    case = LossInput(*equal, loads, takers, takers < 9, takers[:, 0].copy(), np.zeros(count, np.bool_), racks)
    monkeypatch.setattr(LossProof, "_guesses", lambda *_: iter([(1 - np.eye(9, dtype=np.int64), equal[2])]))
    limit = busiest(case, case.leader)
    hidden, found = (
        LossProof(case, "broker", limit, tight).best(case.leader, takers) for tight in (None, np.repeat([1, 0], [6, 3]))
    )
    assert hidden.value < limit
    assert limit * Fraction(127, 100) < found.value < limit * Fraction(128, 100)  # a partition of 1,000 falls to 3,600
    assert loss_bound(judged(case, "broker", limit), found.lost, found.normal, found.threshold) == found.value


def test_a_proof_of_some_losses_is_nearly_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    case = loss_case(1, 30, 300, heavy=0.05)
    alike = (~np.eye(30, dtype=bool)).astype(np.int64)
    monkeypatch.setattr(LossProof, "_guesses", lambda *_: iter([(alike, np.zeros(30, np.int64))]))
    proof = LossProof(case, "broker", busiest(case, case.leader))
    every = proof.best(case.leader, case.takers)
    monkeypatch.setattr(loss_bounds, "_STATED", 5 * 30)
    some = proof.best(case.leader, case.takers)
    assert (np.count_nonzero(every.lost), np.count_nonzero(some.lost)) == (30 * 29, 5 * 29)
    assert some.value >= every.value * Fraction(99, 100)


@pytest.mark.parametrize("seed", [2, 3])
def test_heavy_partitions_bound_what_divisible_ones_do_not(seed: int) -> None:
    case = loss_case(seed, 6, 4, heavy=2.0)
    limit = busiest(case, case.leader)
    proof, least = LossProof(case, "broker", limit), lowest(case, "broker", limit)
    assert least is not None
    assert proof.best(case.leader, case.takers).value >= least * Fraction(999, 1000)


@pytest.mark.parametrize("seed", range(4))
def test_chosen_orders_come_close_to_the_bound(seed: int) -> None:
    case = loss_case(seed, 9, 500)
    limit = busiest(case, case.leader)
    bounds = {kind: LossProof(case, kind, limit).best(case.leader, case.takers) for kind in case.domains}
    descent = OrderDescent(case, case.takers, {kind: float(bound.value) for kind, bound in bounds.items()}, limit)
    descent.run(leaders=False)
    descent.run(leaders=True)
    leader, second, _ = descent.result()
    order = np.where((second < case.brokers)[:, None], case.ordered(second, leader), case.takers)
    assert busiest(case, leader) <= limit
    for kind, bound in bounds.items():
        top = worst(losses(case, kind, leader, order))
        assert top is not None
        assert bound.value <= top.load <= bound.value * Fraction(104, 100)
        before = worst(losses(case, kind, case.leader, case.takers))
        assert before is not None
        assert top.load < before.load


def test_orders_alone_change_no_leader() -> None:
    case = loss_case(1, 9, 300)
    descent = OrderDescent(case, case.takers, dict.fromkeys(case.domains, 1.0), busiest(case, case.leader))
    descent.run(leaders=False)
    leader, _, rows = descent.result()
    assert (leader == case.leader).all()
    assert len(rows)
