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
    alone = Fraction(0)
    for row in kept:
        cheapest, least = _choices(case, row, weights, weight, floor)
        if cheapest is None:
            return max(alone, weights.threshold or alone)
        total += cheapest * row.load
        if least is not None and least > alone:
            alone = least
    found = Fraction(total, size) if size else Fraction(0)
    if weights.threshold is not None:
        found = min(found, weights.threshold)
    return max(found, alone)


def _choices(
    case: LossCase, row: LossRow, weights: LossWeights, weight: Mapping[int, int], floor: Mapping[int, int]
) -> tuple[int | None, Fraction | None]:
    """The least weight of a leader with its heir, None if no heir is below the threshold; and the least relative load
    of an heir, None where there need not be one."""
    if row.stays is not None:
        home = case.domains.get(row.stays)
        heir = next((b for b in row.takers if b != row.stays and case.domains[b] != home), None)
        there = home is not None and heir is not None
        return weight.get(row.stays, 0) + (weights.lost.get(home, {}).get(heir, 0) if there else 0), None  # type: ignore[arg-type]
    cheapest: int | None = None
    least: Fraction | None = None
    without = False
    limit = weights.threshold
    for leader in row.may:
        home = case.domains[leader]
        heirs = [b for b in row.takers if b != leader and case.domains[b] != home] if home is not None else []
        without |= not heirs
        of = weights.lost.get(home, {}) if home is not None else {}
        costs = [] if heirs else [0]
        for heir in heirs:
            carried = Fraction(floor[heir] + row.load, case.capacity[heir])
            if least is None or carried < least:
                least = carried
            if limit is None or carried < limit:
                costs.append(of.get(heir, 0))
        if costs and (cheapest is None or weight[leader] + min(costs) < cheapest):
            cheapest = weight[leader] + min(costs)
    return cheapest, None if without else least


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
