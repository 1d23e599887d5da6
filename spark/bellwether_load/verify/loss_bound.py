"""Lower bound on the worst loss of a broker or of a rack, from weights by lost domain and broker, in one pass.

Weak duality with the normal case as a limit: weights w on survivors b of losses s, and n on brokers while none is lost,
give sum(w * load after s) + sum(n * load) <= T * sum(w * capacity) + sum(n * limit). The left side is at least what
following costs, and for each partition its load times the least that a leader and its heir weigh: a leader counts in
every loss but that of its own domain, its heir in that one.

Below a ``threshold`` the heaviest partitions have fewer leaders and heirs, or no plan is below it: ``_below`` says why.
The lower one of threshold and bound of what is left holds for every plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple, TypeVar

from bellwether.core.stored_documents import MAX_INT64
from bellwether_load.plan.plan_losses import HEAVIEST

Domain = int | str
Pair = tuple[int, int | None]
Key = TypeVar("Key")
_NOBODY: Sequence[int | None] = (None,)


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
    """Whole numbers, 0 or more: of survivors by lost domain and broker, and of brokers while none is lost. Of the room
    of brokers below the limit each counts as often as it weighs while none is lost, if no survivor has a weight; else
    once."""

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
    by_weight = any(weights.normal.values()) and not any(value for of in weights.lost.values() for value in of.values())
    room = weights.normal if by_weight else dict.fromkeys(case.capacity, 1)
    below = None if weights.threshold is None else _below(case, kept, weights.threshold, room)
    if below is None and weights.threshold is not None:
        return weights.threshold
    weight = dict.fromkeys(case.domains, 0) | dict(weights.normal)
    for of in weights.lost.values():
        for broker, value in of.items():
            weight[broker] += value
    size = sum(value * case.capacity[b] for of in weights.lost.values() for b, value in of.items())
    total = sum(weight[b] * case.base[b] for b in case.capacity)
    total -= sum(value * (case.limit * case.capacity[b] // 1) for b, value in weights.normal.items())
    for at, row in enumerate(kept):
        pairs = (below or {}).get(at) or _choices(case, row)
        paid = [weight[leader] + _weight(case, weights, leader, heir) for leader, heir in pairs]
        total += row.load * min(paid, default=0)
    found = max(Fraction(total, size), Fraction(0)) if size else Fraction(0)
    return found if weights.threshold is None else min(found, weights.threshold)


def _choices(case: LossCase, row: LossRow) -> list[Pair]:
    """Each leader that the partition can have with each heir, None for none; if it stays, its leader and first heir."""
    leader = row.stays
    if leader is None:
        return [(leader, heir) for leader in row.may for heir in _heirs(case, row, leader) or _NOBODY]
    return [(leader, next(iter(_heirs(case, row, leader)), None))] if leader in case.domains else []


def _weight(case: LossCase, weights: LossWeights, leader: int, heir: int | None) -> int:
    home = case.domains[leader]
    return 0 if home is None or heir is None else weights.lost.get(home, {}).get(heir, 0)


def _heirs(case: LossCase, row: LossRow, leader: int) -> list[int]:
    """Who may lead the partition once its leader's domain is lost; none if that is never lost."""
    home = case.domains[leader]
    return [] if home is None else [b for b in row.takers if b != leader and case.domains[b] != home]


def _below(
    case: LossCase, rows: Sequence[LossRow], threshold: Fraction, room: Mapping[int, int]
) -> dict[int, list[Pair]] | None:
    """What the heaviest partitions can have in a plan below the threshold; None if there is no such plan.

    Out of the question are a leader above its limit and an heir at the threshold, with all that both have in any case:
    partitions that stay, those that have no other leader or heir left, and what the others leave if they are at their
    limits. Partitions whose heirs are apart each need a broker that much below its limit, together no more than all
    brokers are: as often as ``room`` says, the limits less what brokers carry where each partition counts least.
    """
    limits = {b: int(case.limit * size // 1) for b, size in case.capacity.items()}
    most = {b: int(-(-threshold * size // 1)) - 1 for b, size in case.capacity.items()}
    fixed, fixed_falls = dict(case.base), dict[tuple[Domain | None, int | None], int]()
    spare = sum(room.get(b, 0) * (limit - case.base[b]) for b, limit in limits.items())
    for row in rows:
        for leader, heir in _choices(case, row) if row.stays is not None else ():
            _add(fixed, leader, row.load)
            _add(fixed_falls, (case.domains[leader], heir), row.load)
            spare -= row.load * room.get(leader, 0)
        if row.stays is None:
            spare -= row.load * min((room.get(leader, 0) for leader in row.may), default=0)
    free = {b: spare // weight for b, weight in room.items() if weight}
    chosen = (at for at, row in enumerate(rows) if row.stays is None)
    left = {at: _choices(case, rows[at]) for at in sorted(chosen, key=lambda at: -rows[at].load)[:HEAVIEST]}
    while True:
        normal, falls, sole = dict(fixed), dict(fixed_falls), dict[int, int | None]()
        for at, pairs in left.items():
            (leader, heir), sole[at] = pairs[0], None
            if any(other != leader for other, _ in pairs):
                continue
            _add(normal, leader, rows[at].load)
            if all(other == heir for _, other in pairs):
                _add(falls, (case.domains[leader], heir), rows[at].load)
                sole[at] = heir
        above = dict[int, dict[Pair, int]]()
        for at, pairs in left.items():
            load, above[at] = rows[at].load, {}
            alone = len({leader for leader, _ in pairs}) == 1
            for leader, heir in pairs:
                if normal[leader] + (0 if alone else load) > limits[leader]:
                    continue
                if heir is None:
                    above[at][leader, heir] = 0
                    continue
                falling = falls.get((case.domains[leader], heir), 0) + (0 if sole[at] == heir else load)
                least = max(normal[heir], limits[heir] - free[heir]) if heir in free else normal[heir]
                if least + falling <= most[heir]:
                    above[at][leader, heir] = room.get(heir, 0) * max(limits[heir] + falling - most[heir], 0)
            if not above[at]:
                return None
        if all(len(above[at]) == len(pairs) for at, pairs in left.items()):
            break
        left = {at: list(of) for at, of in above.items()}
    needed, taken = {at: min(of.values()) for at, of in above.items()}, set[int | None]()
    for at in sorted((at for at in left if needed[at]), key=lambda at: -needed[at]):
        heirs = {heir for _, heir in left[at]}
        if not taken & heirs:
            taken |= heirs
            spare -= needed[at]
    return None if spare < 0 else left


def _add(sums: dict[Key, int], key: Key, load: int) -> None:
    sums[key] = sums.get(key, 0) + load
