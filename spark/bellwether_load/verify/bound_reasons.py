"""Why a verified bound is not lower: the brokers that cannot go lower, what they must carry, their heaviest partitions.

In: the bounds of a problem and the weights of a plan. Out: values, and the same as text. Nothing is taken from the
plan's own words. Shown by ``verify-plan``, status and page.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from bellwether.core.stored_documents import MAX_INT64
from bellwether_load.verify.load_bounds import Bounds, Weights

MOST_NAMED = 6
"""Brokers that a text names; of more it names the first ones and their number."""
MOST_PARTITIONS = 5
"""Partitions that are named."""

FOLLOWING, STAYS, NO_OTHER, NO_MOVE = "following", "must stay", "no other broker may lead it", "needs a further move"
ANYWHERE = "too heavy for any broker"

_PARTS = {
    FOLLOWING: "is following",
    STAYS: "are leaders that must stay",
    NO_OTHER: "are leaders that no other broker may have",
    NO_MOVE: "are leaders that would need further moves",
}


@dataclass(frozen=True, slots=True)
class HeavyPartition:
    """A partition that the proving brokers keep: why, and at least which share of the bound it is on its broker."""

    name: str
    brokers: tuple[int, ...]
    load: int
    share: float
    why: str


@dataclass(frozen=True)
class BoundReasons:
    """Why no plan has a lower maximum than the bound.

    ``brokers`` cannot go lower, taken together; ``opened`` counts the open brokers. ``parts``: of what they must carry,
    the shares of following, of partitions that must stay, of those that no other broker may lead, and of those that
    only a further move could take away. ``alone``: the bound is that of the first of ``partitions``, on any broker.
    ``most_moves``: the cap, if the bound rests on it.
    """

    brokers: tuple[int, ...]
    opened: int
    parts: Mapping[str, float]
    partitions: tuple[HeavyPartition, ...] = ()
    alone: bool = False
    most_moves: int | None = None

    @property
    def text(self) -> str:
        """The reasons in two or three sentences."""
        if not self.brokers:
            return "The bound is 0: nothing that is measured must stay on any broker."
        if self.alone:
            one = self.partitions[0]
            best = f"broker {self.brokers[0]}, the best one for it,"
            rest = "" if one.share > 0.995 else f" The rest is what {best} carries in any case."
            return f"{one.name} alone needs {_percent(one.share)} of the bound, whichever broker leads it.{rest}"
        cap = "" if self.most_moves is None else f"With {self.most_moves:,} changed leaders "
        if len(self.brokers) == self.opened and not self.parts:
            return f"All {self.opened:,} open brokers prove the bound: it is their mean."
        said = f"{cap}{proving_brokers(self.brokers, self.opened, start=not cap)} cannot go lower"
        parts = [f"{_percent(share)} {_PARTS[kind]}" for kind, share in self.parts.items() if share >= 0.005]
        said += f": of what {'it' if len(self.brokers) == 1 else 'they'} must carry, {_listed(parts)}."
        heavy = [p for p in self.partitions[:3] if p.share >= 0.1]
        if heavy:
            said += f" {heavy[0].name} alone needs {_percent(heavy[0].share)} of the bound"
            said += "".join(f", {p.name} {_percent(p.share)}" for p in heavy[1:]) + "."
        return said


def bound_reasons(bounds: Bounds, weights: Weights, dual: Fraction, bound: Fraction) -> BoundReasons:
    """What decides a bound: ``weights``, whose bound is ``dual``, or a single broker or partition if that is lower."""
    size, fixed = bounds.size, bounds.fixed
    if not bound:
        return BoundReasons((), len(size), {})
    if bound > dual:
        held = [b for b in size if Fraction(fixed[b], size[b]) == bound]
        return _of_brokers(bounds, Weights({held[0]: 1}), bound) if held else _of_partition(bounds, bound)
    even = len({weights.of.get(b) for b in size}) == 1
    if even and not weights.change and weights.threshold is None:
        return BoundReasons(tuple(sorted(size)), len(size), {})
    return _of_brokers(bounds, weights, bound)


def proving_brokers(brokers: Sequence[int], opened: int, *, start: bool = True) -> str:
    """Brokers as a subject: all of a few, the number and the first ones of many."""
    word = "roker" if len(brokers) == 1 else "rokers"
    word = ("B" if start else "b") + word
    if len(brokers) <= MOST_NAMED:
        return f"{word} {_listed([str(b) for b in brokers])}"
    first = ", ".join(map(str, brokers[:3]))
    return f"{len(brokers):,} of {opened:,} open brokers ({first}, …) together"


def _of_partition(bounds: Bounds, bound: Fraction) -> BoundReasons:
    """The partition that alone needs the bound, on each broker that may lead it."""
    size = bounds.size
    for at, (load, _, may) in enumerate(bounds.partitions()):
        needs = {b: Fraction(bounds.fixed[b] + load, size[b]) for b in may}
        if min(needs.values()) == bound:
            best = tuple(b for b in may if needs[b] == bound)
            share = load / float(bound * size[best[0]])
            found = HeavyPartition(bounds.sums.name(at), tuple(may), load, share, ANYWHERE)
            return BoundReasons(best, len(size), {}, (found,), alone=True)
    raise ValueError("no broker and no partition has that bound")


def _of_brokers(bounds: Bounds, weights: Weights, bound: Fraction) -> BoundReasons:
    """What brokers with these weights must carry."""
    size, able = bounds.size, bounds.able(weights.threshold)
    light = min(able.values(), default=MAX_INT64)
    weight = {b: weights.of.get(b, 0) for b in size}
    totals = {FOLLOWING: sum(w * bounds.base[b] for b, w in weight.items()), STAYS: 0, NO_OTHER: 0, NO_MOVE: 0}
    heaviest: list[tuple[float, int, tuple[int, ...], str]] = []
    divisor, smallest = float(bound), min(size.values())
    for at, (load, home, eligible) in enumerate(bounds.partitions()):
        may: Sequence[int] = [b for b in eligible if load <= able.get(b, load)] if load > light else ()
        may = may or eligible
        least = min([weight[b] for b in may])
        stays = home in may and load * weight[home] <= load * least + weights.change
        price = weight[home] if stays else least
        if not load * price:
            continue
        why = STAYS if len(eligible) == 1 and stays else NO_OTHER if least else NO_MOVE
        totals[why] += load * price
        if len(heaviest) == MOST_PARTITIONS and load < heaviest[0][0] * divisor * smallest:
            continue
        on = (home,) if why != NO_OTHER else tuple(sorted(b for b in may if weight[b]))
        insort(heaviest, (load / (divisor * max(size[b] for b in on)), -at, on, why))
        del heaviest[:-MOST_PARTITIONS]
    whole = sum(totals.values()) or 1
    sums = bounds.sums
    return BoundReasons(
        tuple(sorted(b for b, w in weight.items() if w)),
        len(size),
        {kind: total / whole for kind, total in totals.items() if total},
        tuple(HeavyPartition(sums.name(-at), on, sums.loads[-at], share, why) for share, at, on, why in heaviest[::-1]),
        most_moves=weights.most if weights.change else None,
    )


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share < 0.995 or share >= 0.9995 else "over 99 %"
