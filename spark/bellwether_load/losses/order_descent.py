"""Choose orders of replicas so that the worst loss of a broker and of a rack is low: descent of a smooth maximum.

Each partition gets, sweep after sweep, the leader and next replica that lower the sum of exp(sharpness * (load / goal -
1)) most, over all survivors of all losses and over the normal case. A column is a survivor of a loss; changes that are
made together share no column, and no broker where leaders change. One change costs the same however many losses there
are: a leader counts alike in all of them but one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bellwether_load.balancing.blocks import Bools, Floats, Int32s, Int64s
from bellwether_load.balancing.descent import first_of_each
from bellwether_load.losses.loss_input import LossInput
from bellwether_load.losses.loss_loads import carried

_SHARPNESS = (30.0, 120.0, 400.0, 1_200.0, 4_000.0)
"""Of the smooth maximum, stage by stage; the first where leaders change."""
_SWEEPS, _UNDOING = 30, 100
_MODES = (True, False)
_FEW = 1e-5
"""Share of partitions that change with which a stage ends: on uneven brokers the few that are heavy decide."""
_LARGEST = 60.0
"""Most that an exponent can be."""
_GAIN, _ELECTION = 1e-2, 4.0
"""Of an average partition's share in the sum: what another order, and another leader, must lower it by."""


@dataclass
class HourLimits:
    """Loads by hour that leaders keep to: ``loads`` of partitions, ``place`` the row of each partition in it,
    ``carried`` and ``most`` of each broker."""

    loads: NDArray[np.float32]
    place: Int64s
    carried: Floats
    most: Floats

    def fits(self, rows: Int64s, to: Int32s) -> Bools:
        """Whether each partition can be led there."""
        after = self.carried[to] + self.loads[self.place[rows]]
        found: Bools = np.all(after <= self.most[to], axis=1)
        return found

    def move(self, rows: Int64s, origin: Int32s, to: Int32s) -> None:
        """Lead these partitions by others."""
        loads = self.loads[self.place[rows]]
        np.subtract.at(self.carried, origin, loads)
        np.add.at(self.carried, to, loads)


class OrderDescent:
    """``case``: with the leaders to begin with, ``takers``: with the orders. ``goals``: relative load by kind of loss
    that one would like to reach. ``limit``: of the normal case. ``home``: leaders of which at most ``most`` may change.
    """

    def __init__(
        self,
        case: LossInput,
        takers: Int32s,
        goals: Mapping[str, float],
        limit: Fraction,
        home: Int32s | None = None,
        most: int | None = None,
    ) -> None:
        self._case, self._pairs, leader = case, case.pairs, case.leader
        self.hours: HourLimits | None = None
        home = leader if home is None else home
        self._rows = self._pairs.row
        self._loads = case.loads[self._rows].astype(np.float64)
        self._goals = {kind: max(goal, 1e-300) for kind, goal in goals.items()}
        self._limits = np.maximum(np.array([float(limit * int(size)) for size in case.capacity]), 1e-300)
        self._before = home[self._rows]
        self._room = len(leader) if most is None else most - int((leader != home).sum())
        heirs = {kind: case.heirs(kind, leader, takers) for kind in case.domains}
        self.at = self._present(leader, heirs)
        self.start = self.at.copy()
        self._together = False
        found = {kind: carried(case, kind, leader, heir) for kind, heir in heirs.items()}
        first = next(iter(found.values()))
        self._normal = np.append(first.normal.astype(np.float64), 0.0)
        self._fallen = {kind: np.pad(of.fallen.astype(np.float64), ((0, 1), (0, 1))) for kind, of in found.items()}
        self._home = {kind: np.append(of, -1) for kind, of in case.domains.items()}

    @property
    def scores(self) -> dict[str, float]:
        """The worst loss of each kind as a multiple of its goal."""
        return {kind: self._worst(kind) / goal for kind, goal in self._goals.items()}

    @property
    def normal(self) -> float:
        """The highest load while none is lost, as a multiple of its limit."""
        return float((self._normal[:-1] / self._limits)[self._case.open].max(initial=0.0))

    def run(self, *, leaders: bool, stop: float = 1.0) -> None:
        """Descend until the goals are reached, or nothing is gained. ``leaders``: whether leaders may change, too."""
        least, kept = self._state()
        for self._together, sharpness in [(t, s) for t in _MODES for s in _SHARPNESS[0 if leaders else 1 :]]:
            for number in range(_SWEEPS):
                if max(self.scores.values()) <= stop and self.normal <= 1:
                    return
                moved = self._sweep(sharpness, number, leaders=False)
                moved += self._sweep(sharpness, number, leaders=True) if leaders else 0
                state, at = self._state()
                if state < least:
                    least, kept = state, at
                if moved <= _FEW * len(self._rows):
                    break
        back = np.flatnonzero(kept != self.at)
        self._apply(back, kept[back])

    def undo(self, stop: float = 1.0) -> None:
        """Give partitions back the leader and order that they had, the lightest first, as long as no worst loss gets
        higher, or above ``stop`` times its goal, and no broker exceeds its limit."""
        pairs, loads = self._pairs, self._loads
        tops = {kind: goal * max(self.scores[kind], stop) for kind, goal in self._goals.items()}
        lightest, limits = np.argsort(loads, kind="stable"), np.append(self._limits, 0.0)
        for leaders in [True, False] * _UNDOING:
            back = lightest[(self.at != self.start)[lightest]]
            now, then = (pairs.leader[back, at[back]] for at in (self.at, self.start))
            such = (now != then) == leaders
            back, now, then = back[such], now[such], then[such]
            fits = np.ones(len(back), np.bool_)
            if leaders:
                fits &= self._normal[then] + loads[back] <= limits[then]
                fits &= self._changes(back, self.start[back]) <= max(self._room, 0)
                if self.hours:
                    fits[fits] = self.hours.fits(self._rows[back[fits]], then[fits])
            for kind, top in tops.items():
                fits &= self._fits(kind, back, now, then, top)
            back = back[fits]
            back = back[self._apart(back, self.start[back], leaders=leaders)]
            if leaders:
                back = back[self._gain_apart(back)]
            if not len(back) and not leaders:
                break
            self._apply(back, self.start[back])

    def _gain_apart(self, back: Int64s) -> Bools:
        """Of changes in order, those of which no broker that gains something does so by an earlier one."""
        to = [of[back, self.start[back]] for of in (self._pairs.leader, *self._pairs.heir.values())]
        first = np.full(self._case.brokers + 1, len(back))
        for of in to:
            np.minimum.at(first, of, np.arange(len(back)))
        found: Bools = np.all([(first[of] == np.arange(len(back))) | (of == self._case.brokers) for of in to], axis=0)
        return found

    def _fits(self, kind: str, back: Int64s, now: Int32s, then: Int32s, top: float) -> Bools:
        """Whether no survivor of a loss gets above ``top`` if a partition is led and inherited as at the start."""
        home, heir, loads = self._home[kind], self._pairs.heir[kind], self._loads[back]
        size = np.append(self._case.capacity, 1) * top
        old, new = heir[back, self.at[back]], heir[back, self.start[back]]
        # With the same leader and heir nothing changes; an heir that led has the partition in all other losses.
        after = self._normal[new] + self._fallen[kind][home[then], new] + np.where(new == now, 0.0, loads)
        fits: Bools = ((old == new) & (now == then)) | (new == self._case.brokers) | (after <= size[new])
        some = np.flatnonzero((now != then) & fits)
        there = np.append(self._there(kind), np.zeros((len(self._fallen[kind]) - 1, 1), np.bool_), axis=1)
        rest = np.where(there, self._normal + self._fallen[kind][:-1], -np.inf)[:, then[some]]
        inherited = (np.arange(len(rest))[:, None] == home[now[some]]) & (old[some] == then[some])
        rest += np.where(inherited, 0.0, loads[some])
        fits[some] = (rest <= size[then[some]]).all(axis=0)
        return fits

    def _state(self) -> tuple[tuple[float, float], Int64s]:
        """How bad the present choice is, first what exceeds the limit; and the choice."""
        return (max(self.normal - 1, 0.0), sum(self.scores.values())), self.at.copy()

    def result(self) -> tuple[Int32s, Int32s, Int32s]:
        """Leader, next replica and, of partitions that keep both, the number of brokers in its place: for all."""
        none = self._case.brokers
        leader, second = self._case.leader.copy(), np.full(len(self._case.leader), none, np.int32)
        pairs, every = self._pairs, np.arange(len(self._rows))
        leader[self._rows] = pairs.leader[every, self.at]
        changed = pairs.leader[every, self.at] != pairs.leader[every, self.start]
        for heir in pairs.heir.values():
            changed |= heir[every, self.at] != heir[every, self.start]
        second[self._rows[changed]] = pairs.second[every, self.at][changed]
        return leader, second, self._rows[changed]

    def _present(self, leader: Int32s, heirs: Mapping[str, Int32s]) -> Int64s:
        """The alternative that each partition has."""
        pairs = self._pairs
        same = pairs.valid & (pairs.leader == leader[pairs.row][:, None])
        for kind, heir in heirs.items():
            same &= pairs.heir[kind] == heir[pairs.row][:, None]
        found: Int64s = np.argmax(same, axis=1)
        return found

    def _worst(self, kind: str) -> float:
        loads = (self._normal[None, :] + self._fallen[kind])[:-1, :-1] / self._case.capacity
        return float(loads[self._there(kind)].max(initial=0.0))

    def _there(self, kind: str) -> Bools:
        domain = self._case.domains[kind]
        there: Bools = self._case.open & (domain[None, :] != np.arange(len(self._fallen[kind]) - 1)[:, None])
        return there

    def _sweep(self, sharpness: float, number: int, *, leaders: bool) -> int:
        order = np.random.default_rng(int(sharpness) * 64 + number).permutation(len(self._rows))
        order = order[self._hot(sharpness, leaders=leaders)[order]]
        step = (4 if leaders else 16) * self._case.brokers
        starts = range(0, len(order), step)
        return sum(self._move(order[start : start + step], sharpness, leaders=leaders) for start in starts)

    def _hot(self, sharpness: float, *, leaders: bool) -> Bools:
        """Partitions whose columns are high enough that taking them away could gain something."""
        kinds, normal, _ = self._terms(sharpness)
        origin = self._pairs.leader[np.arange(len(self._rows)), self.at]
        most = normal[origin] if leaders else np.zeros(len(self._rows))
        for kind, (terms, sums, _) in kinds.items():
            most = most + terms[self._home[kind][origin], self._heir(kind)] + (sums[origin] if leaders else 0.0)
        return most > self._least(kinds, normal, leaders=leaders)

    def _heir(self, kind: str) -> Int32s:
        return self._pairs.heir[kind][np.arange(len(self._rows)), self.at]

    def _least(self, kinds: Mapping[str, tuple[Floats, Floats, Floats]], normal: Floats, *, leaders: bool) -> float:
        """What a change must gain."""
        total = sum(float(sums.sum()) for _, sums, _ in kinds.values()) + float(normal.sum())
        return (_ELECTION if leaders else _GAIN) * total / max(len(self._rows), 1)

    def _terms(self, sharpness: float) -> tuple[dict[str, tuple[Floats, Floats, Floats]], Floats, Floats]:
        """By kind the term of each column, their sum by broker, and the scale of a load; and those of the normal
        case."""
        found, scores = {}, self.scores
        if self._together:
            scores = dict.fromkeys(scores, max(scores.values()))
        for kind, goal in self._goals.items():
            # Each kind by its own worst, so that one that cannot be lowered does not hide the other.
            scale = np.append(sharpness / (self._case.capacity * max(goal * scores[kind], 1e-300)), 0.0)
            over = (self._normal[None, :] + self._fallen[kind]) * scale - sharpness
            terms = np.exp(np.minimum(over, _LARGEST))
            terms[:-1, :-1] *= self._there(kind)
            terms[-1, :] = terms[:, -1] = 0.0
            found[kind] = (terms, terms.sum(axis=0), scale)
        scale = np.append(sharpness / self._limits / max(self.normal, 1.0), 0.0)
        normal = np.exp(np.minimum(self._normal * scale - sharpness, _LARGEST))
        return found, normal * np.append(self._case.open, False), scale

    def _move(self, some: Int64s, sharpness: float, *, leaders: bool) -> int:
        pairs, now, here = self._pairs, self.at[some], np.arange(len(some))
        kinds, normal, normal_scale = self._terms(sharpness)
        moving = pairs.leader[some] != pairs.leader[some, now][:, None]
        usable = pairs.valid[some] & (moving if leaders else ~moving)
        usable[here, now] = False
        at, spot = np.nonzero(usable)
        rows, old = some[at], now[at]
        loads, origin, to = self._loads[rows], pairs.leader[rows, old], pairs.leader[rows, spot]
        added = np.zeros(len(at))
        if leaders:
            # The limit of the normal case is never exceeded: one broker gets one partition in a step.
            added[self._normal[to] + loads > np.append(self._limits, 0.0)[to]] = np.inf
            added += normal[origin] * np.expm1(-loads * normal_scale[origin])
            added += normal[to] * np.expm1(np.minimum(loads * normal_scale[to], _LARGEST))
        for kind, (terms, sums, scale) in kinds.items():
            heir = pairs.heir[kind]
            heirs = heir[rows, old], heir[rows, spot]
            added += self._change(kind, terms, sums, scale, origin, to, heirs, loads, leaders=leaders)
        least = self._least(kinds, normal, leaders=leaders)
        if leaders and self.hours:
            better = np.flatnonzero(added < -least)
            added[better[~self.hours.fits(self._rows[rows[better]], to[better])]] = np.inf
        change = np.full(usable.shape, np.inf)
        change[at, spot] = added
        best = change.argmin(axis=1)
        gain = -change[here, best]
        wanted = np.flatnonzero(gain > least)
        wanted = wanted[np.argsort(-gain[wanted], kind="stable")]
        wanted = wanted[self._apart(some[wanted], best[wanted], leaders=leaders)]
        if leaders:
            changes = self._changes(some[wanted], best[wanted])
            wanted = wanted[np.cumsum(np.maximum(changes, 0)) <= self._room]
        self._apply(some[wanted], best[wanted])
        return len(wanted)

    def _change(
        self, kind: str, terms: Floats, sums: Floats, scale: Floats, origin: Int32s, to: Int32s,
        heirs: tuple[Int32s, Int32s], loads: Floats, *, leaders: bool,
    ) -> Floats:  # fmt: skip
        """What each alternative adds to the terms of one kind of loss."""
        home, (old, new) = self._home[kind], heirs
        less, more = np.expm1(-loads * scale[old]), np.expm1(np.minimum(loads * scale[new], _LARGEST))
        if not leaders:
            moved = terms[home[origin], old] * less + terms[home[origin], new] * more
            return np.where(new == old, 0.0, moved)
        down = np.expm1(-loads * scale[origin])
        up = np.expm1(np.minimum(loads * scale[to], _LARGEST))
        found = sums[origin] * down + sums[to] * up
        same = (home[origin] == home[to]) & (old == new)
        # A leader that becomes the heir, or an heir that becomes the leader, has the partition in that loss as before.
        found -= np.where(new == origin, terms[home[to], origin] * down, 0.0)
        found -= np.where(old == to, terms[home[origin], to] * up, 0.0)
        found += np.where(same | (old == to), 0.0, terms[home[origin], old] * less)
        found += np.where(same | (new == origin), 0.0, terms[home[to], new] * more)
        return found

    def _apart(self, some: Int64s, best: Int64s, *, leaders: bool) -> NDArray[np.bool_]:
        """Of changes in order, those that share no broker (with other leaders) or column with an earlier one."""
        now, width = self.at[some], self._case.brokers + 1
        origin, to = self._pairs.leader[some, now], self._pairs.leader[some, best]
        apart = first_of_each(width, origin, to) if leaders else np.ones(len(some), np.bool_)
        for kind, home in self._home.items():
            old = home[origin].astype(np.int64) * width + self._pairs.heir[kind][some, now]
            new = home[to].astype(np.int64) * width + self._pairs.heir[kind][some, best]
            apart &= first_of_each((len(self._fallen[kind]) + 1) * width, old, new)
        return apart

    def _changes(self, some: Int64s, best: Int64s) -> Int64s:
        """How many more leaders change by each."""
        now, then = self._pairs.leader[some, self.at[some]], self._pairs.leader[some, best]
        found: Int64s = (then != self._before[some]).astype(np.int64) - (now != self._before[some])
        return found

    def _apply(self, some: Int64s, best: Int64s) -> None:
        self._room -= int(self._changes(some, best).sum())
        now, loads = self.at[some], self._loads[some]
        origin, to = self._pairs.leader[some, now], self._pairs.leader[some, best]
        if self.hours:
            led = np.flatnonzero(origin != to)
            self.hours.move(self._rows[some[led]], origin[led], to[led])
        np.subtract.at(self._normal, origin, loads)
        np.add.at(self._normal, to, loads)
        for kind, home in self._home.items():
            heir = self._pairs.heir[kind]
            np.subtract.at(self._fallen[kind], (home[origin], heir[some, now]), loads)
            np.add.at(self._fallen[kind], (home[to], heir[some, best]), loads)
        self.at[some] = best
