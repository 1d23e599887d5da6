"""Find what decides a verified bound: the brokers that cannot go lower, and the heaviest partitions that they keep.

In: the sums and weights of a plan. Out: a ``BoundProof``. Called by ``plan_verifier`` once the bound is recomputed, so
nothing in it is taken from the plan's own words.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from fractions import Fraction

from bellwether_load.verify.bound_proof import ANYWHERE, NO_MOVE, NO_OTHER, STAYS, BoundProof, ProvingPartition
from bellwether_load.verify.load_bounds import able_below
from bellwether_load.verify.partition_sums import Sums
from bellwether_load.verify.plan_documents import LARGEST, Plan, Problem

MOST_PARTITIONS = 5
"""Partitions that are named."""


def bound_proof(
    problem: Problem,
    plan: Plan,
    sums: Sums,
    fixed: Mapping[int, int],
    weights: Mapping[int, int],
    dual: Fraction,
    bound: Fraction,
) -> BoundProof:
    """What decides a bound: ``weights``, whose bound is ``dual``, or a single broker or partition if that is lower.

    ``fixed``: what brokers carry in any case.
    """
    opened = [b for b in problem.brokers if b.open]
    size = {b.id: b.capacity for b in opened}
    if not bound:
        return BoundProof((), len(opened), {})
    if bound > dual:
        held = [b for b in size if Fraction(fixed[b], size[b]) == bound]
        if not held:
            return _by_partition(sums, fixed, size, bound)
        return _of_brokers(sums, {held[0]: 1}, 0, size, {}, bound)
    even = len({weights.get(b) for b in size}) == 1
    if even and not plan.certificate.move_weight and plan.certificate.threshold is None:
        return BoundProof(tuple(sorted(size)), len(size), {})
    threshold = plan.certificate.threshold
    able = {} if threshold is None else able_below(problem.brokers, fixed, Fraction(threshold), {})
    most = None if not plan.certificate.move_weight else max(problem.max_moves or 0, sums.forced)
    return _of_brokers(sums, weights, plan.certificate.move_weight, size, able, bound, most)


def _by_partition(sums: Sums, fixed: Mapping[int, int], size: Mapping[int, int], bound: Fraction) -> BoundProof:
    """The partition that alone needs the bound, on each broker that may lead it."""
    start = 0
    for at, (load, end) in enumerate(zip(sums.loads, sums.ends, strict=True)):
        may = tuple(sums.eligible[start:end])
        start = end
        if min(Fraction(fixed[b] + load, size[b]) for b in may) == bound:
            best = tuple(b for b in may if Fraction(fixed[b] + load, size[b]) == bound)
            found = ProvingPartition(sums.name(at), may, load, load / float(bound * size[best[0]]), ANYWHERE)
            return BoundProof(best, len(size), {}, (found,), alone=True)
    raise ValueError("no broker and no partition has that bound")


def _of_brokers(
    sums: Sums,
    weights: Mapping[int, int],
    move: int,
    size: Mapping[int, int],
    able: Mapping[int, int],
    bound: Fraction,
    most_moves: int | None = None,
) -> BoundProof:
    """What brokers with these weights must carry."""
    light = min(able.values(), default=LARGEST)
    weight = {b: weights.get(b, 0) for b in size}
    totals = {"following": sum(w * sums.base[b] for b, w in weight.items()), STAYS: 0, NO_OTHER: 0, NO_MOVE: 0}
    heaviest: list[tuple[float, int, tuple[int, ...], str]] = []
    divisor, smallest, start = float(bound), min(size.values()), 0
    for at, (load, home, end) in enumerate(zip(sums.loads, sums.homes, sums.ends, strict=True)):
        may: Sequence[int] = sums.eligible[start:end]
        sole, start = end - start == 1, end
        if load > light:
            may = [b for b in may if load <= able.get(b, load)] or may
        least = min([weight[b] for b in may])
        stays = home in may and load * weight[home] <= load * least + move
        price = weight[home] if stays else least
        if not load * price:
            continue
        why = STAYS if sole and stays else NO_OTHER if least else NO_MOVE
        totals[why] += load * price
        if len(heaviest) == MOST_PARTITIONS and load < heaviest[0][0] * divisor * smallest:
            continue
        on = (home,) if why != NO_OTHER else tuple(sorted(b for b in may if weight[b]))
        entry = (load / (divisor * max(size[b] for b in on)), -at, on, why)
        if len(heaviest) < MOST_PARTITIONS or entry > heaviest[0]:
            insort(heaviest, entry)
            del heaviest[:-MOST_PARTITIONS]
    whole = sum(totals.values()) or 1
    return BoundProof(
        tuple(sorted(b for b, w in weight.items() if w)),
        len(size),
        {kind: total / whole for kind, total in totals.items() if total},
        tuple(
            ProvingPartition(sums.name(-at), on, sums.loads[-at], share, why)
            for share, at, on, why in reversed(heaviest)
        ),
        most_moves=most_moves,
    )
