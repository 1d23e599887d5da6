"""Partitions of a problem with their loads and their moves as arrays, and what is wrong with them.

Brokers are indices in the order of their ids; one past the last means none, and fills up lists. Loads are whole
hundredths of a byte/s, together at most 2**53, so that sums are exact in doubles, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellwether.core.settings.objective import WHOLE
from bellwether_load.plan.problem import NO_BROKER, ProblemHeader
from bellwether_load.verify.checks import Faults

PROBLEM = "partitions of the problem"
LOADS = "loads"
MOVES = "moves name partitions"
FACTS = "moves tell the facts"
ORDERS = "orders"
ELIGIBLE = "leaders are eligible"
STAY = "what must stay stays"
FORCED = "what must move moves"
ORDERED = "leaders come first"

MOST = 2**53
"""Of all loads together."""
MOST_RATE = 2**45
"""Bytes/s that no partition can carry."""
MOST_REPLICAS = 20

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_FILL = -(2**40)


def total(at: Ints, values: Ints, length: int) -> Ints:
    """Sums by index, exactly; none is left out."""
    return np.bincount(at.ravel(), values.ravel(), length + 1)[:length].astype(np.int64)


def keys_of(*tables: Any) -> list[Ints]:
    """Topic, topic id and partition of all rows as numbers in the same order."""
    named, found = [], []
    for table in tables:
        columns = [table.column(name).combine_chunks() for name in ("topic", "topic_id")]
        columns = [column if hasattr(column, "indices") else column.dictionary_encode() for column in columns]
        topic, topic_id = (column.indices.to_numpy(zero_copy_only=False).astype(np.int64) for column in columns)
        words, ids = (column.dictionary.to_pylist() for column in columns)
        pairs, of = np.unique(topic * max(len(ids), 1) + topic_id, return_inverse=True)
        named.append([(words[pair // len(ids)], ids[pair % len(ids)]) for pair in pairs.tolist()])
        found.append((of.ravel(), table.column("partition").to_numpy().astype(np.int64)))
    rank = {pair: at for at, pair in enumerate(sorted(set().union(*named)))}
    numbers = [np.array([rank[pair] for pair in pairs], np.int64) for pairs in named]
    return [(number[of] << 32) + index for number, (of, index) in zip(numbers, found, strict=True)]


class Table:
    """Rows of partitions with their keys, which must ascend. ``check``: gets what is wrong."""

    def __init__(self, table: Any, keys: Ints, check: str, faults: Faults) -> None:
        self.table, self.keys, self._check, self._faults = table, keys, check, faults
        step = np.diff(keys, prepend=keys[:1] - 1)
        self.wrong(step == 0, "occurs twice")
        self.wrong(step < 0, "comes after the partition that follows it, out of order")

    def __len__(self) -> int:
        return len(self.keys)

    def name(self, row: int) -> str:
        """Topic and partition."""
        return f"{self.table.column('topic')[row].as_py()}-{self.table.column('partition')[row].as_py()}"

    def wrong(self, rows: Bools, text: str, check: str = "", **of: Any) -> None:
        """Add a fault for each of these rows: its name and a text, in which the columns and ``of`` each row can be
        named."""

        def say(row: int) -> str:
            shown = {name: self.table.column(name)[row].as_py() for name in self.table.column_names}
            return f"{self.name(row)} {text.format(**shown, **{name: column[row] for name, column in of.items()})}"

        self._faults.rows(check or self._check, rows, say)

    def numbers(self, name: str) -> Ints:
        """A column of whole numbers."""
        found: Ints = self.table.column(name).to_numpy().astype(np.int64)
        return found

    def rates(self, name: str, at: Ints) -> tuple[NDArray[np.float64], Bools]:
        """Numbers of a column, which may be null, in these rows; and where they are not. Row -1 is null."""
        column = self.table.column(name)
        return np.append(column.to_numpy(), 0.0)[at], np.append(column.is_valid().to_numpy(), False)[at]

    def lists(self, name: str) -> Ints:
        """A column of lists as a matrix."""
        array = self.table.column(name).combine_chunks()
        lengths = array.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
        self.wrong(lengths > MOST_REPLICAS, f"has {{count}} {name}, more than {MOST_REPLICAS}", count=lengths)
        found = np.full((len(array), min(max(1, int(lengths.max(initial=0))), MOST_REPLICAS)), _FILL)
        spot = np.arange(lengths.sum()) - np.repeat(lengths.cumsum() - lengths, lengths)
        kept, row = spot < found.shape[1], np.repeat(np.arange(len(array)), lengths)
        found[row[kept], spot[kept]] = array.flatten().to_numpy(zero_copy_only=False)[kept]
        return found

    def places(self, wanted: Ints) -> Ints:
        """The row of each wanted key, -1 for those that are not there."""
        at = np.searchsorted(self.keys, wanted)
        return np.where(np.append(self.keys, -(2**62))[at] == wanted, at, -1)


@dataclass
class Rates:
    """Of each partition whole bytes/s in and out, and whether they are measured. ``place``: of each row of the loads
    its partition, or -1."""

    produce: Ints
    consume: Ints
    known: Bools
    consumed: Bools
    place: Ints


def rates_of(loads: Table, wanted: Table, statistic: str) -> Rates:
    """The rates of the wanted partitions; what other rows say is of no concern."""
    at, found = loads.places(wanted.keys), list[Any]()
    for name in ("produce", "consume"):
        rate, known = loads.rates(name, at)
        valid = (rate >= 0) & (rate <= MOST_RATE)  # NaN is neither
        said = f"has a {name}_{statistic.lower()} of {{rate:g}}: bytes/s from 0 to 2**45 are wanted"
        wanted.wrong(~valid & (known if name == "consume" else at >= 0), said, LOADS, rate=rate)
        found += [np.rint(np.where(known & valid, rate, 0)).astype(np.int64), known]  # halves to the even number
    place = np.full(len(loads) + 1, -1)
    place[at] = np.arange(len(at))
    produce, known, consume, consumed = found
    return Rates(produce, consume, known, consumed, place[:-1])


@dataclass
class Rows:
    """A row for each partition. ``takers``: replicas on open brokers in the ISR, in their places; ``may``: which of
    them a plan may make the leader. ``after``, ``order``: leader and replicas after the plan, if it is ``moving``."""

    table: Table
    ids: Ints
    open: Bools
    replicas: Ints
    takers: Ints
    may: Bools
    leader: Ints
    held: Bools
    rates: Rates
    load: Ints
    after: Ints
    order: Ints
    moving: Bools

    def __len__(self) -> int:
        return len(self.leader)

    @property
    def brokers(self) -> int:
        """How many there are."""
        return len(self.ids)

    @property
    def stays(self) -> Bools:
        """Partitions that a plan may not move."""
        nobody: Bools = np.logical_not(np.any(self.may, axis=1))
        return nobody

    @property
    def forced(self) -> Bools:
        """Partitions whose leader must change."""
        leads = np.any(self.may & (self.replicas == self.leader[:, None]), axis=1)
        found: Bools = ~self.stays & ~leads
        return found

    @property
    def eligible(self) -> Ints:
        """Who may lead each partition; its leader alone if it stays, none if that is closed."""
        found = np.where(self.may, self.replicas, self.brokers)
        found[:, 0] = np.where(self.stays & self.open[self.leader], self.leader, found[:, 0])
        return found

    def base(self, follow: Ints) -> Ints:
        """What following costs each broker."""
        return total(self.replicas, np.repeat(follow, self.replicas.shape[1]), self.brokers)


def rows_of(problem: ProblemHeader, table: Table, rates: Rates, faults: Faults) -> Rows | None:
    """The partitions of a problem as arrays; None where they make no sense."""
    listed, asked = sorted(problem.brokers, key=lambda b: b.id), problem.objective
    ids, none, racks = np.array([b.id for b in listed], np.int64), len(listed), asked.preferred_racks
    replicas, isr = (_indices(table.lists(name), ids) for name in ("replicas", "isr"))
    leader = _indices(table.numbers("leader"), ids)
    _form(table, replicas, isr, leader, none)
    if faults.any(PROBLEM):
        return None
    open_ = np.array([*(b.open for b in listed), False])
    takers = np.where(open_[replicas] & (replicas[:, :, None] == isr[:, None, :]).any(axis=2), replicas, none)
    places = [racks.index(b.rack) if b.rack in racks else len(racks) for b in listed]
    rank = np.array([*places, len(racks) + 1])[takers]
    held = np.array(table.table.column("held").to_numpy() != "", np.bool_)
    may = (takers < none) & (rank == rank.min(axis=1, keepdims=True)) & (rates.known & ~held)[:, None]
    count = (replicas < none).sum(axis=1)
    load = WHOLE * (rates.produce * (count - 1) + rates.consume * asked.consumption)
    most = (load + WHOLE * rates.produce * count).sum(dtype=np.float64)
    if most > MOST:
        faults.add(LOADS, f"they add up to {most:.3g} hundredths of a byte/s, more than 2**53")
        return None
    after = leader.copy(), replicas.copy(), np.zeros(len(table), np.bool_)
    return Rows(table, ids, open_, replicas, takers, may, leader, held, rates, load, *after)


def _indices(given: Ints, ids: Ints) -> Ints:
    """Brokers as indices; one further than none for those that are not known."""
    at = np.minimum(np.searchsorted(ids, given), len(ids) - 1)
    found = np.where(ids[at] == given, at, len(ids) + ((given != _FILL) & (given != NO_BROKER)))
    return found.astype(np.int32)


def _form(table: Table, replicas: Ints, isr: Ints, leader: Ints, none: int) -> None:
    """Whether partitions make sense, each alone and all together."""
    first = np.sort(np.unique(table.keys >> 32, return_index=True)[1])
    topics, topic_ids = (table.table.column(name).take(first).to_pylist() for name in ("topic", "topic_id"))
    named = [bool(a and b and (a + b).isprintable()) for a, b in zip(topics, topic_ids, strict=True)]
    for said, odd in (
        ("has an empty name or topic id, or one that cannot be printed", [not of for of in named]),
        ("has another topic id than the topic's partitions before it", _again(topics)),
        ("has a topic id that belongs to another topic", _again(topic_ids)),
    ):
        table.wrong(np.isin(np.arange(len(table)), first[np.array(odd, np.bool_)]), said)
    held = table.table.column("held")
    strange = [word for word in held.unique().to_pylist() if not word.isprintable()]
    table.wrong(np.isin(held.to_numpy(), strange), "is held for a reason that cannot be printed")
    ordered = np.sort(replicas, axis=1)
    twice = ((np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] != none)).any(axis=1)
    outside: Any = ((isr != none) & ~(isr[:, :, None] == replicas[:, None, :]).any(axis=2)).any(axis=1)
    stranger = (leader != none) & ~np.any(replicas == leader[:, None], axis=1)
    table.wrong(table.numbers("partition") < 0, "has a negative index")
    table.wrong(twice | (ordered[:, 0] == none), "has the replicas {replicas}: at least one is required, each once")
    table.wrong(np.any(replicas > none, axis=1), "has the replicas {replicas}, of which problem.json lists not all")
    table.wrong(outside, "has the ISR {isr}, which is not among its replicas {replicas}")
    table.wrong(stranger, "is led by {leader}, which is not among its replicas {replicas}")


def _again(words: list[str]) -> list[bool]:
    first: dict[str, int] = {}
    return [first.setdefault(word, at) < at for at, word in enumerate(words)]


def apply_moves(rows: Rows, moves: Table, faults: Faults) -> None:
    """Lead and order the partitions as the moves say, where these may be."""
    at, ids, none = rows.table.places(moves.keys), np.append(rows.ids, [NO_BROKER, NO_BROKER]), rows.brokers
    moves.wrong(at < 0, "with topic id {topic_id} is no partition of the problem")
    matrices = [_indices(moves.lists(name), rows.ids) for name in ("replicas", "order")]
    if faults.any(MOVES):
        return
    matrices.append(rows.replicas[at])
    width = max(of.shape[1] for of in matrices)
    stated, order, given = (np.pad(of, ((0, 0), (0, width - of.shape[1])), constant_values=none) for of in matrices)
    leader, to, stays = rows.leader[at], _indices(moves.numbers("to_leader"), rows.ids), rows.stays[at]
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
    rows.after[at[fine]], rows.moving[at] = to[fine], True
    rows.order[at[fine]] = order[fine][:, : rows.order.shape[1]]
    rows.table.wrong(rows.forced & ~rows.moving, "stays with {leader}, which may not lead it", FORCED)
    later = ~rows.stays & ~rows.forced & ~rows.moving & (rows.leader != rows.replicas[:, 0])
    rows.table.wrong(later, "is led by {leader}, not first in {replicas}, permanently", ORDERED)
