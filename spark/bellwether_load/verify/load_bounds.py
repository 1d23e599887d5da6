"""Lower bound on the largest load, as an exact fraction.

Weak duality, in short: with weights w on open brokers, sum(w * load) <= T * sum(w * capacity) for the largest relative
load T; and the left side is at least sum(w * base) + sum(load(p) * smallest w of those that may lead p). Where at most
K leaders may change, each change may cost a weight m as well, and K * m is taken off the sum. A plan that is below a
threshold cannot have every leader: either it is not, or a higher bound holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from bellwether.core.stored_documents import MAX_INT64
from bellwether_load.plan.problem import BrokerInput
from bellwether_load.verify.partition_sums import Sums


@dataclass(frozen=True)
class Weights:
    """Weights above 0 by broker and of a changed leader, of which there are at most ``most``, and a threshold."""

    of: Mapping[int, int]
    change: int = 0
    most: int = 0
    threshold: Fraction | None = None


class Bounds:
    """Bounds for the partitions of a problem.

    ``size``: capacity of each open broker; ``base``: what following costs every broker; ``fixed``: what each carries in
    any case, with the partitions that it leads and no other may lead.
    """

    def __init__(self, brokers: Sequence[BrokerInput], sums: Sums, base: Mapping[int, int]) -> None:
        self.size = {b.id: b.capacity for b in brokers if b.open}
        self.base = base
        self.sums = sums
        self.fixed = dict(base)
        for load, home, may in self.partitions():
            if len(may) == 1 and home == may[0]:
                self.fixed[home] += load

    def partitions(self) -> Iterator[tuple[int, int, Sequence[int]]]:
        """Load, leader (-1 if it may not lead) and eligible leaders of each partition."""
        sums, start = self.sums, 0
        for load, home, end in zip(sums.loads, sums.homes, sums.ends, strict=True):
            yield load, home, sums.eligible[start:end]
            start = end

    def least_moved(self, before: Mapping[int, int], top: Fraction) -> int:
        """What any plan with that maximum must move at least, rounded up."""
        over = (before[b] - top * size for b, size in self.size.items())
        return -(-sum((o for o in over if o > 0), Fraction(0)) // 1)

    def able(self, threshold: Fraction | None, settled: Collection[int] = ()) -> dict[int, int]:
        """The heaviest partition that each broker may lead if all that are not settled are below the threshold."""
        if threshold is None:
            return {}
        free = ((b, size) for b, size in self.size.items() if b not in settled)
        return {b: -(-threshold * size // 1) - 1 - self.fixed[b] for b, size in free}

    def dual(self, weights: Weights, settled: Mapping[int, Fraction] | None = None) -> Fraction:
        """The bound that weights prove by duality.

        ``settled`` brokers have at most these relative loads, and the bound is one for the busiest of the others, of
        which one must have a weight.
        """
        settled = settled or {}
        able = self.able(weights.threshold, settled)
        light, change = min(able.values(), default=MAX_INT64), weights.change
        weight = {b: weights.of.get(b, 0) for b in self.size}
        total = sum(w * self.base[b] for b, w in weight.items()) - change * weights.most
        sums, start = self.sums, 0
        eligible_weights = list(map(weight.__getitem__, sums.eligible))
        for load, home, end in zip(sums.loads, sums.homes, sums.ends, strict=True):
            if load or change:
                choices, stays = eligible_weights[start:end], home in weight
                if load > light and (left := [b for b in sums.eligible[start:end] if load <= able.get(b, load)]):
                    choices, stays = [weight[b] for b in left], home in left
                least = load * min(choices) + change
                total += min(least, load * weight[home]) if stays else least
            start = end
        kept = sum((weight[b] * self.size[b] * limit for b, limit in settled.items()), Fraction(0))
        capacity = sum(w * self.size[b] for b, w in weight.items() if b not in settled)
        bound = max((total - kept) / capacity, Fraction(0))
        return bound if weights.threshold is None else min(bound, weights.threshold)

    def bound(self, dual: Fraction, settled: Collection[int] = ()) -> Fraction:
        """The largest of ``dual``, of what brokers carry in any case, and of the minimum load of a partition's leader.

        Of brokers that are not settled, and of partitions that only these may lead.
        """
        size, fixed = self.size, self.fixed
        floor = max([dual, *(Fraction(fixed[b], size[b]) for b in size if b not in settled)])
        high, low = floor.numerator, floor.denominator
        for load, home, may in self.partitions():
            for b in may:
                # One broker that would stay below the best bound so far decides; fractions are slow.
                if b in settled or (fixed[b] + load) * low <= high * size[b]:
                    break
            else:
                if len(may) > 1 or home != may[0]:
                    least = min(Fraction(fixed[b] + load, size[b]) for b in may)
                    high, low = least.numerator, least.denominator
        return Fraction(high, low)
