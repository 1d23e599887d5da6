"""Random cases of losses, as arrays and as the verifier's case, and the lowest worst loss by trying every plan."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np

from bellwether_load.balancing.blocks import Int32s
from bellwether_load.losses.loss_input import LossInput, domains
from bellwether_load.losses.loss_loads import busiest, losses, worst
from bellwether_load.verify.losses import LossCase


def loss_case(
    seed: int, brokers: int = 6, partitions: int = 40, *, racks: int = 3, heavy: float = 1.0, rough: bool = False
) -> LossInput:
    """Three replicas in racks of their own. ``rough``: any replicas, capacities, a closed broker, held partitions, and
    replicas out of the ISR."""
    random = np.random.default_rng(seed)
    rack = np.arange(brokers) % racks
    loads = np.rint(np.exp(random.normal(0, heavy, partitions)) * 1_000).astype(np.int64)
    follows = np.rint(loads * random.uniform(0, 0.5, partitions)).astype(np.int64)
    if rough:
        takers = np.stack([random.permutation(brokers)[:3] for _ in range(partitions)]).astype(np.int32)
    else:
        order = np.argsort(random.random((partitions, racks)), axis=1)[:, :3]
        takers = (order + racks * random.integers(0, brokers // racks, order.shape)).astype(np.int32)
    base = np.bincount(takers.ravel(), np.repeat(follows, 3), brokers).astype(np.int64)
    leader, open_ = takers[:, 0].copy(), np.ones(brokers, np.bool_)
    capacity = np.full(brokers, 100, np.int64)
    stays = np.zeros(partitions, np.bool_)
    if rough:
        capacity = random.choice([50, 100, 130], brokers).astype(np.int64)
        open_[-1] = seed % 2 == 0
        stays = (random.random(partitions) < 0.2) | (leader == brokers - 1)
        out = (random.random(takers.shape) < 0.15) | ~open_[takers]
        out[:, 0] &= ~open_[takers[:, 0]]
        takers = _packed(np.where(out, brokers, takers), brokers)
        stays |= (takers == brokers).all(axis=1)
    may = takers < brokers
    case = LossInput(capacity, open_, base, loads, takers, may, leader, stays, domains([f"rack-{r}" for r in rack]))
    return replace(case, stays=stays | ~(takers == leader[:, None]).any(axis=1))


def _packed(takers: Int32s, brokers: int) -> Int32s:
    """The padding at the end of each row."""
    order = np.argsort(takers == brokers, axis=1, kind="stable")
    return np.take_along_axis(takers, order, axis=1)


def judged(case: LossInput, kind: str, limit: Fraction) -> LossCase:
    """What the verifier works on."""
    domain = np.append(case.domains[kind], -1).astype(np.int64)
    limits = np.array([int(limit * int(size)) for size in case.capacity], np.int64) * case.open
    leader = np.where(case.free, -1, case.leader).astype(np.int32)
    sums = case.capacity, case.open, case.base, domain, case.loads
    return LossCase(*sums, case.takers, case.may & (case.takers < case.brokers), leader, limits)


def lowest(case: LossInput, kind: str, limit: Fraction) -> Fraction | None:
    """The lowest worst loss of a plan within the limit, by trying every leader and next replica; None if none is."""
    pairs, best = case.pairs, None
    for chosen in itertools.product(*(np.flatnonzero(valid).tolist() for valid in pairs.valid)):
        at = (np.arange(len(pairs.row)), list(chosen))
        leader, second = case.leader.copy(), np.full(len(case.leader), case.brokers, np.int32)
        leader[pairs.row], second[pairs.row] = pairs.leader[at], pairs.second[at]
        if busiest(case, leader) <= limit:
            order = np.where((second < case.brokers)[:, None], case.ordered(second, leader), case.takers)
            found = worst(losses(case, kind, leader, order))
            if found is not None and (best is None or found.load < best):
                best = found.load
    return best
