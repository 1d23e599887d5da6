"""Lower bound on the largest load, and the balance before and after a plan, as exact fractions.

Weak duality, in short: with weights w on open brokers, sum(w * load) <= T * sum(w * capacity) for the largest relative
load T; and the left side is at least sum(w * base) + sum(load(p) * smallest w of those that may lead p). Where at most
K leaders may change, each change may cost a weight m as well, and K * m is taken off the sum. A plan that is below a
threshold cannot have every leader: either it is not, or a higher bound holds.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from bellwether_load.verify.partition_sums import Sums
from bellwether_load.verify.plan_documents import LARGEST, Broker

_NONE: Mapping[int, Fraction] = {}
_ABLE: Mapping[int, int] = {}


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
    brokers: Sequence[Broker],
    sums: Sums,
    weights: Mapping[int, int],
    change: int = 0,
    most: int = 0,
    settled: Mapping[int, Fraction] = _NONE,
    able: Mapping[int, int] = _ABLE,
    threshold: Fraction | None = None,
) -> Fraction:
    """The bound of these weights: whole numbers of open brokers, 0 or more, not all 0.

    ``change``: weight of a changed leader, of which there are at most ``most``. ``settled`` brokers have at most
    these relative loads, and the bound is one for the busiest of the others, of which one must have a weight. ``able``:
    the heaviest partition that a broker may lead below the ``threshold``, see :func:`able_below`.
    """
    light = min(able.values(), default=LARGEST)
    total = sum(weights.get(b.id, 0) * sums.base[b.id] for b in brokers if b.open) - change * most
    weight = {b.id: weights.get(b.id, 0) for b in brokers if b.open}
    size = {b.id: b.capacity for b in brokers}
    eligible, start = sums.eligible, 0
    eligible_weights = list(map(weight.__getitem__, eligible))
    for load, home, end in zip(sums.loads, sums.homes, sums.ends, strict=True):
        if load or change:
            choices, stays = eligible_weights[start:end], home in weight
            if load > light and (left := [b for b in eligible[start:end] if load <= able.get(b, load)]):
                choices, stays = [weight[b] for b in left], home in left
            least = load * min(choices) + change
            total += min(least, load * weight[home]) if stays else least
        start = end
    kept = sum((weight[b] * size[b] * limit for b, limit in settled.items()), Fraction(0))
    capacity = sum(w * size[b] for b, w in weight.items() if b not in settled)
    bound = max((total - kept) / capacity, Fraction(0))
    return bound if threshold is None else min(bound, threshold)


def able_below(
    brokers: Sequence[Broker], fixed: Mapping[int, int], threshold: Fraction, settled: Container[int]
) -> dict[int, int]:
    """The heaviest partition that each broker may lead if all that are not settled are below the threshold."""
    free = (b for b in brokers if b.open and b.id not in settled)
    return {b.id: -(-threshold * b.capacity // 1) - 1 - fixed[b.id] for b in free}


def fixed_loads(brokers: Sequence[Broker], sums: Sums) -> dict[int, int]:
    """What each broker carries in any case: its base, and the partitions that it leads and no other may lead."""
    found = {b.id: sums.base[b.id] for b in brokers}
    eligible, start = sums.eligible, 0
    for load, home, end in zip(sums.loads, sums.homes, sums.ends, strict=True):
        if end - start == 1 and home == eligible[start]:
            found[home] += load
        start = end
    return found


def item_bound(
    brokers: Sequence[Broker],
    sums: Sums,
    fixed: Mapping[int, int],
    floor: Fraction,
    settled: Mapping[int, Fraction] = _NONE,
) -> Fraction:
    """The largest of ``floor``, of what brokers carry in any case, and of the minimum load of a partition's leader.

    Of brokers that are not settled, and of partitions that only these may lead. ``fixed``: see :func:`fixed_loads`.
    """
    size = {b.id: b.capacity for b in brokers}
    held = (Fraction(fixed[b.id], b.capacity) for b in brokers if b.open and b.id not in settled)
    floor = max(floor, *held)
    high, low = floor.numerator, floor.denominator
    eligible, start = sums.eligible, 0
    for load, home, end in zip(sums.loads, sums.homes, sums.ends, strict=True):
        for b in eligible[start:end]:
            # One broker that would stay below the best bound so far decides; fractions are slow.
            if b in settled or (fixed[b] + load) * low <= high * size[b]:
                break
        else:
            may = eligible[start:end]
            if len(may) > 1 or home != may[0]:
                least = min(Fraction(fixed[b] + load, size[b]) for b in may)
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
