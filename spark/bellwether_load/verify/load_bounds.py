"""Lower bound on the largest load, as an exact fraction.

Weak duality, in short: with weights w on open brokers, sum(w * load) <= T * sum(w * capacity) for the largest relative
load T; and the left side is at least sum(w * base) + sum(load(p) * smallest w of those that may lead p). Where at most
K leaders may change, each change may cost a weight m as well, and K * m is taken off the sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bellwether.core.stored_documents import MAX_INT64
from bellwether_load.plan.checks import highest
from bellwether_load.plan.partition_rows import Int32s, Ints, Rows, total


@dataclass(frozen=True)
class Weights:
    """Weights by broker and of a changed leader, of which there are at most ``most``."""

    of: Ints
    change: int = 0
    most: int = 0


class Bounds:
    """Bounds for the partitions that an open broker leads or will lead: their ``load``, who ``may`` lead them, and
    their ``home``, none if their leader may not lead them.

    ``size``: capacity of each broker; ``base``: what following costs it; ``fixed``: what it carries in any case, with
    partitions that it leads and no other may lead.
    """

    def __init__(self, rows: Rows) -> None:
        none = rows.brokers
        self.size, self.open, self.base = rows.size, rows.open[:none], rows.base
        self.rows = np.flatnonzero((rows.eligible < none).any(axis=1))
        self.load, self.may = rows.load[self.rows], rows.eligible[self.rows]
        self.home, self.sole = rows.home[self.rows], rows.sole[self.rows]
        self.fixed = self.base + rows.led(rows.sole)

    def least_moved(self, before: Ints, top: Fraction) -> int:
        """What any plan with that maximum must move at least, rounded up."""
        over = (int(before[b]) - top * int(self.size[b]) for b in np.flatnonzero(self.open))
        return -(-sum((o for o in over if o > 0), Fraction(0)) // 1)

    def cheapest(self, weights: Weights) -> Int32s:
        """The leader of each partition that weighs least, the present one if a change is not worth its weight."""
        may, weight = self.may, np.append(weights.of, MAX_INT64)[self.may]
        best = may[np.arange(len(may)), weight.argmin(axis=1)]
        of = np.append(weights.of, 0)
        gain = of[self.home] - of[best]
        worth = (self.load > 0) & (gain > weights.change // np.maximum(self.load, 1))
        return np.where((self.home < len(self.size)) & ~worth, self.home, best)

    def dual(self, weights: Weights, settled: Mapping[int, Fraction] | None = None) -> Fraction:
        """The bound that weights prove by duality.

        ``settled`` brokers have at most these relative loads, and the bound is one for the busiest of the others, of
        which one must have a weight.
        """
        settled = settled or {}
        leader = self.cheapest(weights)
        carried, of = self.base + total(leader, self.load, len(self.size)), weights.of.tolist()
        paid: Fraction | int = sum(w * load for w, load in zip(of, carried.tolist(), strict=True))
        paid += weights.change * (int((leader != self.home).sum()) - weights.most)
        paid -= sum((of[b] * int(self.size[b]) * limit for b, limit in settled.items()), Fraction(0))
        capacity = sum(w * int(self.size[b]) for b, w in enumerate(of) if b not in settled)
        return max(Fraction(paid, capacity), Fraction(0))

    def alone(self, low: Fraction, settled: Mapping[int, Fraction]) -> tuple[Fraction, int | None]:
        """The largest that the leader of one partition carries at least, if that is above ``low``, and its row here; of
        partitions with a choice that no settled broker may lead."""
        none = len(self.size)
        fixed, size = np.append(self.fixed, 0), np.append(self.size, 1)
        needs = np.where(self.may < none, (fixed[self.may] + self.load[:, None]) / size[self.may], np.inf).min(
            axis=1, initial=np.inf
        )
        needs[self.sole | np.isin(self.may, list(settled)).any(axis=1)] = -1.0
        found: tuple[Fraction, int | None] = (low, None)
        for row in np.flatnonzero(needs >= max(needs.max(initial=0.0), float(low)) * (1 - 1e-12)).tolist():
            may = [b for b in self.may[row].tolist() if b < none]
            least = min(Fraction(int(fixed[b] + self.load[row]), int(size[b])) for b in may)
            if least > found[0]:
                found = least, row
        return found

    def bound(self, dual: Fraction, settled: Mapping[int, Fraction] | None = None) -> Fraction:
        """The largest of ``dual``, of what brokers carry in any case, and of the minimum load of a partition's leader.

        Of brokers that are not settled, and of partitions that only these may lead.
        """
        free = [b for b in np.flatnonzero(self.open).tolist() if b not in (settled or {})]
        return self.alone(max(dual, highest(self.fixed[free], self.size[free])), settled or {})[0]
