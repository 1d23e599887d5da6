"""Apply the moves of a plan to the partitions of its problem, where these may be, and say what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellwether_load.plan.checks import Faults
from bellwether_load.plan.partition_rows import Bools, Int32s, Rows, Table, indices
from bellwether_load.plan.problem import NO_BROKER

MOVES = "moves name partitions"
FACTS = "moves tell the facts"
ORDERS = "orders"
ELIGIBLE = "leaders are eligible"
STAY = "what must stay stays"
FORCED = "what must move moves"
ORDERED = "leaders come first"


@dataclass(frozen=True)
class Applied:
    """Leader and replicas of each partition after a plan; ``moving``: whether the plan names it."""

    leader: Int32s
    order: Int32s
    moving: Bools


def apply_moves(rows: Rows, moves: Table, faults: Faults) -> Applied | None:
    """The partitions as the moves lead and order them, where these may be; None where they name unknown ones."""
    at, ids, none = rows.table.places(moves.keys), np.append(rows.ids, [NO_BROKER, NO_BROKER]), rows.brokers
    moves.wrong(at < 0, "with topic id {topic_id} is no partition of the problem")
    matrices = [moves.brokers(name, rows.ids) for name in ("replicas", "order")]
    if faults.any(MOVES):
        return None
    matrices.append(rows.replicas[at])
    width = max(of.shape[1] for of in matrices)
    stated, order, given = (np.pad(of, ((0, 0), (0, width - of.shape[1])), constant_values=none) for of in matrices)
    leader, to, stays = rows.leader[at], indices(moves.numbers("to_leader"), rows.ids), rows.stays[at]
    known, held = rows.rates.known[at], rows.table.table.column("held").take(at)
    for name, found, wrong in (
        ("replicas", rows.table.table.column("replicas").take(at), (stated != given).any(axis=1)),
        ("from_leader", ids[leader], moves.numbers("from_leader") != ids[leader]),
        ("load", rows.load[at], moves.numbers("load") != rows.load[at]),
    ):
        moves.wrong(wrong, f"has {name} {{{name}}}, in the problem {{found}}", FACTS, found=found)
    odd = (order[:, 0] != to) | (np.sort(order, axis=1) != np.sort(given, axis=1)).any(axis=1)
    moves.wrong(odd, "has the order {order}, expected {to_leader} and then the others of {replicas}", ORDERS)
    same = ~odd & (to == leader) & (order == given).all(axis=1)
    moves.wrong(same, "moves nothing: {to_leader} leads it, and the order is the same", ORDERS)
    for said, of in (
        ("is held ({held})", rows.held[at]),
        ("has no load", ~known & ~rows.held[at]),
        ("has no candidate", known & ~rows.held[at]),
    ):
        moves.wrong(stays & of, f"{said} and must stay as it is", STAY, held=held)
    able = (rows.may[at] & (rows.replicas[at] == to[:, None])).any(axis=1)
    may = [[int(b) for b in ids[of] if b != NO_BROKER] for of in rows.eligible[at]] if (~able).any() else []
    moves.wrong(~stays & ~able, "goes to {to_leader}, and only {may} may lead it", ELIGIBLE, may=may)
    fine = able & ~odd
    found = Applied(rows.leader.copy(), rows.replicas.copy(), np.zeros(len(rows), np.bool_))
    found.leader[at[fine]], found.moving[at] = to[fine], True
    found.order[at[fine]] = order[fine][:, : found.order.shape[1]]
    rows.table.wrong(rows.forced & ~found.moving, "stays with {leader}, which may not lead it", FORCED)
    later = ~rows.stays & ~rows.forced & ~found.moving & (rows.leader != rows.replicas[:, 0])
    rows.table.wrong(later, "is led by {leader}, not first in {replicas}, permanently", ORDERED)
    return found
