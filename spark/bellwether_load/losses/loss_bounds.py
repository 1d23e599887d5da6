"""Bound on the worst loss of one kind, and the weights that prove it.

In: a case and the limit of the normal case. Out: whole weights by lost domain and broker, and the exact bound that they
give (``verify.losses`` says why it holds). Weights come from what a balanced plan must carry and from a plan's own
loads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter, mul

import numpy as np

from bellwether_load.balancing.blocks import Bools, Floats, Int32s, Int64s
from bellwether_load.losses.loss_input import LossInput
from bellwether_load.losses.loss_loads import Carried, carried, relative
from bellwether_load.plan.plan_losses import HEAVIEST

_WHOLE = 1_000_000
"""The largest weight."""
_ROUGH = 255
"""The largest weight of room: times a load, it is no more than 64 bits hold."""
_STATED = 100_000
"""Weights that a proof may have, of whole losses: all those of 1,000 brokers would be 16 MB of a plan."""
_CLOSE = 1.0002
"""How close a threshold that no plan is below is found."""
_SHARPNESS = (200.0, 600.0, 2_000.0)
_value = attrgetter("value")
Room = tuple[Int64s, int]
"""Weights of all brokers, and 0; and how much they can be below their limits together, each as often as it weighs."""


@dataclass(frozen=True)
class LossBound:
    """No plan within the limit has a lower worst loss than ``value``. ``lost``: (domains, brokers), ``normal``:
    (brokers), whole numbers; ``threshold``: relative load below which the weights count only possible heirs. With a
    threshold and no weight of a loss, ``normal`` says whose room below the limit counts."""

    value: Fraction
    lost: Int64s
    normal: Int64s
    threshold: Fraction | None = None


class LossProof:
    """Bounds of one kind of loss. ``limit``: relative load that no open broker exceeds while none is lost. ``tight``:
    weights of brokers that prove how low the busiest one can be, if they are known."""

    def __init__(self, case: LossInput, kind: str, limit: Fraction, tight: Int64s | None = None) -> None:
        self.case, self.kind = case, kind
        self._domain = case.domains[kind]
        self._pairs = case.pairs
        self.limits = np.array([int(limit * int(size)) for size in case.capacity], np.int64) * case.open
        fixed = ~case.free
        rest = np.where(fixed, case.leader, case.brokers)
        self._heirs = case.heirs(kind, case.leader, case.takers)
        self._fixed = carried(case, kind, rest.astype(np.int32), np.where(fixed, self._heirs, case.brokers))
        self._there = case.open & (self._domain[None, :] != np.arange(len(self._fixed.fallen))[:, None])
        self._loads = case.loads[self._pairs.row]
        self._heaviest = np.argsort(-self._loads, kind="stable")[:HEAVIEST]
        home = np.append(self._domain, len(self._fixed.fallen))[self._pairs.leader]
        self._column = home * np.int32(case.brokers + 1) + self._pairs.heir[kind]
        self._every = self._room(case.open.astype(np.int64))
        rough = [] if tight is None else [np.rint(tight * (_ROUGH / max(1, tight.max()))).astype(np.int64)]
        self._normals = [np.zeros(case.brokers, np.int64), *rough]

    def best(self, leader: Int32s, takers: Int32s) -> LossBound:
        """The highest bound that is found, with a plan that comes close to it."""
        now = carried(self.case, self.kind, leader, self.case.heirs(self.kind, leader, takers))
        loads = relative(self.case, self.kind, now)
        found = max((self.bound(*_heaviest(*whole)) for whole in self._guesses(now, loads)), key=_value)
        # A double, as files have it.
        top = float(loads.max(initial=0.0))
        for normal in self._normals:
            found = max(found, self._impossible(normal, float(found.value), top), key=_value)
        return found

    def _impossible(self, normal: Int64s, low: float, high: float) -> LossBound:
        """The highest threshold, or nearly so, that no plan is below."""
        room, lowest = self._room(normal) if normal.any() else self._every, Fraction(0)
        while high > low * _CLOSE:
            middle = (low + high) / 2
            if self.possible(Fraction(middle), room) is None:
                low, lowest = middle, Fraction(middle)
            else:
                high = middle
        return LossBound(lowest, np.zeros(self._there.shape, np.int64), normal, lowest or None)

    def _room(self, weight: Int64s) -> Room:
        """As brokers with these weights carry, in any plan, at least what each partition puts on its lightest one."""
        weight, pairs = np.append(weight, 0), self._pairs
        spare = sum(map(mul, weight.tolist(), (self.limits - self._fixed.normal).tolist()))
        least = np.where(pairs.valid, weight[pairs.leader], np.iinfo(np.int64).max).min(axis=1)
        return weight, spare - _dot(least, self._loads)

    def bound(self, lost: Int64s, normal: Int64s, threshold: Fraction | None = None) -> LossBound:
        """The bound of whole weights, exactly."""
        case, pairs = self.case, self._pairs
        weight = np.append(lost.sum(axis=0) + normal, 0)
        size = int((lost.sum(axis=0) * case.capacity).sum())
        total = sum(map(mul, weight.tolist(), self._fixed.normal.tolist()))
        total += _dot(lost.ravel(), self._fixed.fallen.ravel())
        total -= sum(map(mul, normal.tolist(), self.limits.tolist()))
        room = self._room(normal) if normal.any() and not lost.any() else self._every
        valid = pairs.valid if threshold is None else self.possible(threshold, room)
        if valid is None:
            return LossBound(threshold or Fraction(0), lost, normal, threshold)
        columns = np.pad(lost, ((0, 1), (0, 1))).ravel()
        costs = np.where(valid, weight[pairs.leader] + columns[self._column], np.iinfo(np.int64).max)
        total += _dot(costs.min(axis=1), self._loads)
        value = max(Fraction(total, size), Fraction(0)) if size else Fraction(0)
        return LossBound(value if threshold is None else min(value, threshold), lost, normal, threshold)

    def possible(self, threshold: Fraction, room: Room) -> Bools | None:
        """The alternatives that a plan below the threshold can have, as far as its heaviest partitions show; None if
        there is no such plan.

        Neither a leader above its limit nor an heir at the threshold is possible. What has one leader, or one heir,
        left makes more of the others impossible. And as heirs of several partitions may be no broker of each other's,
        each needs room of its own, together not more than there is.
        """
        case, none, rows = self.case, self.case.brokers, self._heaviest
        leader, heir = self._pairs.leader[rows], self._pairs.heir[self.kind][rows]
        load, domain = self._loads[rows], np.append(self._domain, -1)
        most = np.array([*(-(-threshold * int(size) // 1) - 1 for size in case.capacity), 2**62], np.int64)
        limits, (weight, spare) = np.append(self.limits, 2**62), room
        free = np.array([min(spare // w, 2**62) if w else 2**62 for w in weight.tolist()])
        valid = self._pairs.valid[rows]
        while True:
            sole = _sole(leader, valid, none)
            after = np.where(sole < none, _sole(heir, valid, none), none)
            normal = np.append(self._fixed.normal, 0) + np.bincount(sole, load, none + 1).astype(np.int64)
            fallen = np.pad(self._fixed.fallen, ((0, 1), (0, 1)))
            np.add.at(fallen, (domain[sole], after), load)
            led = normal[leader] + np.where(sole[:, None] == leader, 0, load[:, None])
            falls = fallen[domain[leader], heir] + np.where(after[:, None] == heir, 0, load[:, None])
            lowest = np.maximum(normal, limits - free)[heir]
            fits = valid & (led <= limits[leader]) & ((heir == none) | (lowest + falls <= most[heir]))
            if not fits.any(axis=1).all():
                return None
            if (fits == valid).all():
                break
            valid = fits
        below = np.where(heir == none, 0, np.maximum(limits[heir] + falls - most[heir], 0))
        needed = np.where(valid, below * weight[heir], 2**62).min(axis=1)
        taken, total = np.zeros(none + 1, np.bool_), 0
        for row in np.argsort(-needed, kind="stable")[: int((needed > 0).sum())]:
            of = heir[row][valid[row]]
            if not taken[of].any():
                taken[of], total = True, total + int(needed[row])
        if total > spare:
            return None
        every = self._pairs.valid.copy()
        every[rows] = valid
        return every

    def _guesses(self, now: Carried, loads: Floats) -> Iterator[tuple[Int64s, Int64s]]:
        """Weights without a program: all survivors of one loss alike, and the derivatives of smooth maxima."""
        none = np.zeros(self.case.brokers, np.int64)
        for domain in np.argsort(-loads.max(axis=1), kind="stable")[:8]:
            lost = np.zeros(loads.shape, np.int64)
            lost[domain] = self._there[domain]
            yield lost, none
        for weight in (self.case.open.astype(np.int64), *self._normals[1:]):
            yield self._there * weight, none
        top = loads.max(initial=0.0)
        for sharpness in _SHARPNESS if top else ():
            steep = np.where(self._there, np.exp(sharpness * (loads / top - 1)), 0.0) / self.case.capacity
            above = np.minimum(sharpness * (now.normal / np.maximum(self.limits, 1) - 1), 0.0)
            yield _whole(steep, np.zeros(self.case.brokers))
            yield _whole(steep, np.exp(above) * self.case.open / self.case.capacity)


def _sole(brokers: Int32s, valid: Bools, none: int) -> Int32s:
    """By row the broker that all of its alternatives have, or none."""
    first = brokers[np.arange(len(brokers)), valid.argmax(axis=1)]
    return np.where((~valid | (brokers == first[:, None])).all(axis=1), first, none)


def _dot(weights: Int64s, loads: Int64s) -> int:
    """The sum of products, exactly: loads of a cluster are together at most 2**53."""
    parts = range(0, int(weights.max(initial=0)).bit_length(), 9)
    return sum(int((weights >> at & 511) @ loads) << at for at in parts)


def _heaviest(lost: Int64s, normal: Int64s) -> tuple[Int64s, Int64s]:
    """The weights of as many losses as a proof may state, and of brokers while none is lost in proportion."""
    few = np.argsort(-lost.sum(axis=1), kind="stable")[: max(1, _STATED // lost.shape[1])]
    found = np.zeros_like(lost)
    found[few] = lost[few]
    share = found.sum() / max(1, lost.sum())
    return found, np.rint(normal * share).astype(np.int64)


def _whole(lost: Floats, normal: Floats) -> tuple[Int64s, Int64s]:
    most = max(float(lost.max(initial=0.0)), 1e-300)
    scaled = [np.rint(np.minimum(of / most * _WHOLE, 2.0**40)).astype(np.int64) for of in (lost, normal)]
    return scaled[0], scaled[1]
