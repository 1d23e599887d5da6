"""Lower bound on the worst loss of a broker or of a rack, from weights by lost domain and broker, in one pass.

Weak duality with the normal case as a limit: weights w on survivors b of losses s, and n on brokers while none is lost,
give sum(w * load after s) + sum(n * load) <= T * sum(w * capacity) + sum(n * limit). The left side is at least what
following costs, and for each partition its load times the least that a leader and its heir weigh: a leader counts in
every loss but that of its own domain, its heir in that one. T is also at least what the heir of one heavy partition
carries, whichever broker leads it: as no broker may exceed its limit, none can be below what the others leave.
Below a ``threshold``, heavy partitions have fewer heirs: either a plan is not below it, or the higher bound holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from bellwether.core.stored_documents import MAX_INT64

Domain = int | str


class LossRow(NamedTuple):
    """A partition: its load, who may take over (in order), which of them may be made the leader, and the leader if it
    must stay as it is, -1 for none; None if leader and order can be chosen."""

    load: int
    takers: Sequence[int]
    may: Sequence[int]
    stays: int | None


@dataclass(frozen=True)
class LossCase:
    """Open brokers with their capacity, what following costs them, and the domain of every broker that is lost as a
    whole (None: never). ``limit``: relative load that no open broker exceeds while none is lost."""

    capacity: Mapping[int, int]
    base: Mapping[int, int]
    domains: Mapping[int, Domain | None]
    limit: Fraction


@dataclass(frozen=True)
class LossWeights:
    """Whole numbers, 0 or more: of survivors by lost domain and broker, and of brokers while none is lost."""

    lost: Mapping[Domain, Mapping[int, int]]
    normal: Mapping[int, int] = field(default_factory=dict)
    threshold: Fraction | None = None


def wrong_weights(case: LossCase, weights: LossWeights) -> str:
    """What is wrong with them, in words; empty if nothing is."""
    known = {domain for domain in case.domains.values() if domain is not None}
    for domain, of in weights.lost.items():
        if domain not in known:
            return f"{domain!r} is no domain that can be lost"
        for broker in of:
            if broker not in case.capacity or case.domains.get(broker) == domain:
                return f"broker {broker!r} does not survive the loss of {domain!r}, or is no open broker"
    if any(broker not in case.capacity for broker in weights.normal):
        return "the normal case has a weight of a broker that is not open"
    every = [weight for of in (*weights.lost.values(), weights.normal) for weight in of.values()]
    if any(type(weight) is not int or not 0 <= weight <= MAX_INT64 for weight in every):
        return "weights must be whole numbers, 0 or more"
    return ""


def loss_bound(case: LossCase, rows: Iterable[LossRow], weights: LossWeights) -> Fraction:
    """No plan whose normal load keeps to the limit has a lower worst loss. Raises ValueError for wrong weights."""
    if wrong := wrong_weights(case, weights):
        raise ValueError(wrong)
    kept = list(rows)
    floor = _floors(case, kept)
    weight = dict.fromkeys(case.domains, 0) | dict(weights.normal)
    for of in weights.lost.values():
        for broker, value in of.items():
            weight[broker] += value
    size = sum(value * case.capacity[b] for of in weights.lost.values() for b, value in of.items())
    total = sum(weight[b] * case.base[b] for b in case.capacity)
    total -= sum(value * (case.limit * case.capacity[b] // 1) for b, value in weights.normal.items())
    alone, out = Fraction(0), False
    for row in kept:
        if row.stays is not None:
            total += row.load * _fixed_weight(case, row, weights, weight)
            continue
        heirs = [(b, _heirs(case, row, b)) for b in row.may]
        alone = max(alone, _least(case, row, floor, heirs, alone))
        cheapest = _cheapest(case, row, weights, weight, floor, heirs)
        out |= cheapest is None
        total += row.load * (cheapest or 0)
    found = Fraction(total, size) if size else Fraction(0)
    if weights.threshold is not None:
        found = weights.threshold if out else min(found, weights.threshold)
    return max(found, alone)


def _heirs(case: LossCase, row: LossRow, leader: int) -> list[int]:
    """Who may lead the partition once its leader's domain is lost; none if that is never lost."""
    home = case.domains[leader]
    return [] if home is None else [b for b in row.takers if b != leader and case.domains[b] != home]


def _fixed_weight(case: LossCase, row: LossRow, weights: LossWeights, weight: Mapping[int, int]) -> int:
    """The weight of the leader of a partition that stays as it is, and of the first of its heirs."""
    leader = row.stays
    if leader is None or leader not in case.domains:
        return 0
    heirs, home = _heirs(case, row, leader), case.domains[leader]
    return weight[leader] + (weights.lost.get(home, {}).get(heirs[0], 0) if heirs and home is not None else 0)


def _least(
    case: LossCase, row: LossRow, floor: Mapping[int, int], heirs: Sequence[tuple[int, list[int]]], alone: Fraction
) -> Fraction:
    """The least relative load of an heir, 0 where there need not be one, or where one stays below ``alone``."""
    high, low = alone.numerator, alone.denominator
    for _, of in heirs:
        # One heir that would stay below the best bound so far decides; fractions are slow.
        if not of or any((floor[b] + row.load) * low <= high * case.capacity[b] for b in of):
            return Fraction(0)
    return min((Fraction(floor[b] + row.load, case.capacity[b]) for _, of in heirs for b in of), default=Fraction(0))


def _cheapest(
    case: LossCase, row: LossRow, weights: LossWeights, weight: Mapping[int, int], floor: Mapping[int, int],
    heirs: Sequence[tuple[int, list[int]]],
) -> int | None:  # fmt: skip
    """The least weight of a leader with its heir; None if no heir is below the threshold."""
    found: list[int] = []
    limit = weights.threshold
    for leader, of in heirs:
        home = case.domains[leader]
        costs = weights.lost.get(home, {}) if home is not None else {}
        fits = of
        if limit is not None:
            high, low = limit.numerator, limit.denominator
            fits = [b for b in of if (floor[b] + row.load) * low < high * case.capacity[b]]
        if fits or not of:
            found.append(weight[leader] + min((costs.get(b, 0) for b in fits), default=0))
    return min(found, default=None)


def _floors(case: LossCase, rows: Sequence[LossRow]) -> dict[int, int]:
    """What each open broker carries at least while none is lost, without any one partition that another leads."""
    fixed = {b: case.base[b] for b in case.capacity}
    total = sum(fixed.values())
    for row in rows:
        if row.stays is None:
            total += row.load
        elif row.stays in fixed:
            fixed[row.stays] += row.load
            total += row.load
    limits = {b: case.limit * size // 1 for b, size in case.capacity.items()}
    every = sum(limits.values())
    return {b: max(fixed[b], total - (every - limits[b])) for b in case.capacity}
