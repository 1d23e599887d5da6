"""What a plan claims of losses: loads after each loss, before and after the plan, and the lower bounds.

Weak duality with the normal case as a limit: weights w on survivors b of losses s, and n on brokers while none is lost,
give sum(w * load after s) + sum(n * load) <= T * sum(w * capacity) + sum(n * limit). The left side is at least what
following costs, and for each partition its load times the least that a leader and its heir weigh: a leader counts in
every loss but that of its own domain, its heir in that one.

Below a ``threshold`` the heaviest partitions have fewer leaders and heirs, or no plan is below it: ``_below`` says why.
The lower one of threshold and bound of what is left holds for every plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bellwether_load.plan.checks import Faults, close, highest
from bellwether_load.plan.partition_rows import Bools, Int32s, Ints, Rows, total
from bellwether_load.plan.plan_losses import HEAVIEST, PlanLoss, PlanLosses
from bellwether_load.verify.applied_moves import Applied

LOSSES = "losses"
_ANY, _MUCH = 2**62, 2**60


@dataclass(frozen=True)
class LossCase:
    """One kind of loss. ``domain``: of each broker, and of none; -1 if it is never lost. ``takers``: who may take over
    each partition, in order; ``may``: which of them may be made its leader; ``leader``: that of a partition whose
    leader and order stay, -1 where they can be chosen. ``limits``: load of brokers while none is lost, at most."""

    size: Ints
    open: Bools
    base: Ints
    domain: Ints
    load: Ints
    takers: Int32s
    may: Bools
    leader: Int32s
    limits: Ints


def first_outside(domain: Ints, leader: Int32s, takers: Int32s) -> Int32s:
    """The first broker in each order that is not lost with the leader; none where there is none."""
    none, lost = len(domain) - 1, domain[leader]
    outside = (takers < none) & (domain[takers] != lost[:, None]) & (takers != leader[:, None]) & (lost >= 0)[:, None]
    found = takers[np.arange(len(takers)), outside.argmax(axis=1)]
    return np.where(outside.any(axis=1), found, none)


def judge_losses(
    rows: Rows,
    applied: Applied,
    losses: PlanLosses,
    carried: tuple[Ints, Ints],
    limit: Fraction,
    faults: Faults,
) -> None:
    """Compare all that a plan claims of losses. ``carried``: load of each broker before and after it; ``limit``: the
    highest relative load after it."""
    none, open_, size, ids = rows.brokers, rows.open[:-1], rows.size, {b.id: at for at, b in enumerate(rows.listed)}
    able = (applied.order[:, :, None] == rows.takers[:, None, :]).any(axis=2)
    orders = rows.takers, np.where(able, applied.order, none)
    fixed = np.where(rows.stays | ((rows.takers < none).sum(axis=1) < 2), applied.leader, -1)
    limits = np.array([min(int(limit * b.capacity), _MUCH) * b.open for b in rows.listed], np.int64)
    for loss in losses.kinds:
        named = [str(b.id) if loss.kind == "broker" else b.rack or "" for b in rows.listed]
        names = {name: at for at, name in enumerate(sorted({*named} - {""}))}
        domain = np.array([*(names.get(name, -1) for name in named), -1])
        there = open_ & (domain[:-1] != np.arange(len(names))[:, None])
        sizes = np.broadcast_to(size, there.shape)
        for at, (when, said) in enumerate((("before", loss.before), ("after", loss.after))):
            leader = (rows.leader, applied.leader)[at]
            heir = first_outside(domain, leader, orders[at])
            falls = np.where(heir < none, domain[leader] * none + heir, len(names) * none)
            loads = carried[at] + total(falls, rows.load, len(names) * none).reshape(-1, none)
            most = highest(loads[there], sizes[there])
            faults.figure(LOSSES, f"{loss.kind} {when}: load is ", said.load, most)
            spot = names.get(said.lost, -1), ids.get(said.broker, -1)
            if min(spot) < 0 or not there[spot] or not close(int(loads[spot]) / int(size[spot[1]]), most):
                what = f"the loss of {said.lost} is not the worst for broker {said.broker}"
                faults.add(LOSSES, f"{loss.kind} {when}: {what}")
        if (weights := _weights(loss, names, ids, there, open_, faults)) is not None:
            case = LossCase(size, open_, rows.base, domain, rows.load, rows.takers, rows.may, fixed, limits)
            found = loss_bound(case, *weights, None if loss.threshold is None else Fraction(loss.threshold))
            faults.figure(LOSSES, f"{loss.kind}: bound is ", loss.bound, found)


def _weights(
    loss: PlanLoss, names: Mapping[str, int], ids: Mapping[int, int], there: Bools, open_: Bools, faults: Faults
) -> tuple[Ints, Ints] | None:
    """The weights of survivors by lost domain and broker, and of brokers while none is lost; None if they are wrong."""
    found, known = np.zeros((len(names) + 1, len(ids)), object), np.vstack([there, open_])
    for name, of in (*loss.lost_weights.items(), ("", loss.normal_weights)):
        for broker, weight in of.items():
            at = names.get(name, -1) if name else len(names), ids.get(broker, -1)
            if min(at) < 0 or not known[at]:
                what = f"does not survive the loss of {name!r}" if name else "has a weight while none is lost"
                faults.add(LOSSES, f"{loss.kind}: broker {broker} {what}, or is no open broker")
                return None
            found[at] = weight
    if found.sum() >= _ANY:
        faults.add(LOSSES, f"{loss.kind}: weights add up to more than 2**62")
        return None
    return found[:-1].astype(np.int64), found[-1].astype(np.int64)


def loss_bound(case: LossCase, lost: Ints, normal: Ints, threshold: Fraction | None = None) -> Fraction:
    """No plan whose normal load keeps to the limit has a lower worst loss. Weights are whole numbers, together below
    2**62: ``lost`` by domain and broker, ``normal`` by broker."""
    valid, room = _alternatives(case), normal if normal.any() and not lost.any() else case.open.astype(np.int64)
    if threshold is not None and not _below(case, valid, threshold, room):
        return threshold
    weight, falls = np.append(lost.sum(axis=0) + normal, 0), np.pad(lost, ((0, 1), (0, 1)))
    leader, heir = _pairs(case.takers, len(case.size))
    costs = np.where(valid, weight[leader] + falls[case.domain[leader], heir], _ANY)
    stays = weight[case.leader] + falls[case.domain[case.leader], first_outside(case.domain, case.leader, case.takers)]
    least = np.where(case.leader < 0, costs.min(axis=1), stays)
    size = _dot(lost.sum(axis=0), case.size)
    paid = _dot(weight[:-1], case.base) - _dot(normal, case.limits) + _dot(least, case.load)
    found = max(Fraction(paid, size), Fraction(0)) if size else Fraction(0)
    return found if threshold is None else min(found, threshold)


def _dot(weights: Ints, loads: Ints) -> int:
    return int((weights.astype(object) * loads).sum())


def _pairs(takers: Int32s, none: int) -> tuple[Int32s, Int32s]:
    """Each leader with each heir, and with none, that partitions with these takers could have, a column each."""
    width = takers.shape[1]
    heirs = np.pad(takers, ((0, 0), (0, 1)), constant_values=none)
    return np.repeat(takers, width + 1, axis=1), np.tile(heirs, width)


def _alternatives(case: LossCase) -> Bools:
    """Which of these pairs each partition can have, if its leader and order can be chosen."""
    none, (leader, heir) = len(case.size), _pairs(case.takers, len(case.size))
    width = case.takers.shape[1]
    able = np.repeat(case.may & (case.leader < 0)[:, None], width + 1, axis=1)
    home = case.domain[leader]
    outside = (heir < none) & (case.domain[heir] != home) & (heir != leader) & (home >= 0)
    by_leader = outside.reshape(len(leader), width, width + 1)
    by_leader[:, :, -1] = ~by_leader.any(axis=2)  # no heir where there is none
    found: Bools = able & outside
    return found


def _below(case: LossCase, valid: Bools, threshold: Fraction, room: Ints) -> bool:
    """Leave the heaviest partitions what they can have in a plan below the threshold; False if there is no such plan.

    Out of the question are a leader above its limit and an heir at the threshold, with all that both have in any case:
    partitions that stay, those that have no other leader or heir left, and what the others leave if they are at their
    limits. Partitions whose heirs are apart each need a broker that much below its limit, together no more than all
    brokers are: as often as ``room`` says, the limits less what brokers carry where each partition counts least.
    """
    none, domain, fixed = len(case.size), case.domain, case.leader >= 0
    shape = (int(domain.max(initial=-1)) + 2, none + 1)
    leader = np.where(fixed, case.leader, none)
    heir = first_outside(domain, leader, case.takers)
    carried = np.append(case.base + total(leader, case.load, none), 0)
    fallen = np.zeros(shape, np.int64)
    np.add.at(fallen, (domain[leader], heir), case.load)
    often = np.append(room, 0)
    lightest = np.where(case.may & (case.takers < none), often[case.takers], _ANY).min(axis=1)
    spare = _dot(room, case.limits - case.base) - _dot(np.where(fixed, often[leader], lightest), case.load)
    most = np.array([*(min(-(-threshold * int(size) // 1) - 1, _MUCH) for size in case.size), _MUCH])
    limits = np.append(np.minimum(case.limits, _MUCH), _MUCH)
    free = np.array([max(min(spare // w, _MUCH), -_MUCH) if w else _MUCH for w in often.tolist()])
    rows = np.flatnonzero(~fixed)
    rows = rows[np.argsort(-case.load[rows], kind="stable")][:HEAVIEST]
    (leader, heir), load, left = _pairs(case.takers[rows], none), case.load[rows], valid[rows]
    every = np.arange(len(rows))
    while True:
        first = left.argmax(axis=1)
        alone, sole = leader[every, first], heir[every, first]
        one = (~left | (leader == alone[:, None])).all(axis=1)
        both = one & (~left | (heir == sole[:, None])).all(axis=1)
        normal, falls = carried + np.append(total(alone[one], load[one], none), 0), fallen.copy()
        np.add.at(falls, (domain[alone[both]], sole[both]), load[both])
        led = normal[leader] + np.where(one[:, None], 0, load[:, None])
        falling = falls[domain[leader], heir] + np.where(both[:, None] & (heir == sole[:, None]), 0, load[:, None])
        lowest = np.maximum(normal, np.where(often > 0, limits - free, 0))[heir]
        fits = left & (led <= limits[leader]) & ((heir == none) | (lowest + falling <= most[heir]))
        if not fits.any(axis=1).all():
            return False
        if (fits == left).all():
            break
        left = fits
    valid[rows] = left
    short = np.maximum(limits[heir] + falling - most[heir], 0).astype(object) * often[heir]
    needed = np.where(left, np.where(heir < none, short, 0), np.array(2**200, object)).min(axis=1)
    taken = set[int]()
    for row in sorted(every[needed > 0].tolist(), key=lambda row: (-needed[row], row)):
        heirs = set(heir[row][left[row]].tolist())
        if not taken & heirs:
            taken |= heirs
            spare -= needed[row]
    return bool(spare >= 0)
