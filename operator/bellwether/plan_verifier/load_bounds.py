"""Lower bound on the largest load, and the balance before and after a plan, as exact fractions.

Weak duality, in short: with weights w on open brokers, sum(w * load) <= T * sum(w * capacity) for the largest relative
load T; and the left side is at least sum(w * base) + sum(load(p) * smallest w of those that may lead p). Where at most
K leaders may change, each change may cost a weight m as well, and K * m is taken off the sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from bellwether.plan_verifier.partition_sums import Sums
from bellwether.plan_verifier.plan_documents import Broker


@dataclass(frozen=True)
class Balance:
    """How load lies on the open brokers: exact, in hundredths of a byte/s per unit of capacity."""

    max: Fraction
    mean: Fraction
    spread: Fraction


def balance(brokers: Sequence[Broker], sums: Sums, led: Mapping[int, int]) -> Balance:
    """The balance of who leads what. There must be an open broker."""
    free = [b for b in brokers if b.open]
    most = max(Fraction(sums.base[b.id] + led[b.id], b.capacity) for b in free)
    mean = Fraction(sum(sums.base[b.id] + led[b.id] for b in free), sum(b.capacity for b in free))
    return Balance(most, mean, most / mean - 1 if mean else Fraction(0))


def dual_bound(
    brokers: Sequence[Broker], sums: Sums, weights: Mapping[int, int], change: int = 0, most: int = 0
) -> Fraction:
    """The bound of these weights: whole numbers of open brokers, 0 or more, not all 0.

    ``change``: weight of a changed leader, of which there are at most ``most``.
    """
    total = sum(weights.get(b.id, 0) * sums.base[b.id] for b in brokers if b.open) - change * most
    weight = {b.id: weights.get(b.id, 0) for b in brokers if b.open}
    eligible, start = sums.eligible, 0
    for load, home, end in zip(sums.loads, sums.homes, sums.ends, strict=True):
        if load or change:
            least = load * min([weight[b] for b in eligible[start:end]]) + change
            total += min(least, load * weight[home]) if home in weight else least
        start = end
    return max(Fraction(total, sum(weight[b.id] * b.capacity for b in brokers if b.open)), Fraction(0))


def item_bound(brokers: Sequence[Broker], sums: Sums, floor: Fraction) -> Fraction:
    """The largest of ``floor`` and, for each partition, the minimum load of its leader."""
    size = {b.id: b.capacity for b in brokers}
    base = sums.base
    high, low = floor.numerator, floor.denominator
    eligible, start = sums.eligible, 0
    for load, end in zip(sums.loads, sums.ends, strict=True):
        first = eligible[start]
        # One broker that would stay below the best bound so far settles it.
        if (base[first] + load) * low > high * size[first]:
            least = min(Fraction(base[b] + load, size[b]) for b in eligible[start:end])
            if least * low > high:
                high, low = least.numerator, least.denominator
        start = end
    return Fraction(high, low)


def largest_item(brokers: Sequence[Broker], sums: Sums) -> Fraction:
    """The largest load / capacity of a partition that two or more may lead."""
    size = {b.id: b.capacity for b in brokers}
    smallest = min(size.values(), default=1)
    high, low = 0, 1
    eligible, start = sums.eligible, 0
    for load, end in zip(sums.loads, sums.ends, strict=True):
        # Even the smallest broker must make it larger than the largest so far.
        if end - start > 1 and load * low > high * smallest:
            least = min(size[b] for b in eligible[start:end])
            if load * low > high * least:
                high, low = load, least
        start = end
    return Fraction(high, low)


def least_moved(brokers: Sequence[Broker], sums: Sums, top: Fraction) -> int:
    """What any plan with that maximum must move at least, rounded up."""
    over = (sums.base[b.id] + sums.led_before[b.id] - top * b.capacity for b in brokers if b.open)
    return -(-sum((o for o in over if o > 0), Fraction(0)) // 1)
