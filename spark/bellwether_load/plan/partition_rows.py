"""Partitions of a problem with their loads as arrays, and what is wrong with them. Read so by planner and verifier.

In: Arrow tables of partitions and of loads. Out: who may lead what, and what that costs. Brokers are indices in the
order of their ids; one past the last means none, and fills up lists. Loads are whole hundredths of a byte/s, together
at most 2**53, so that sums are exact in doubles, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from bellwether.core.settings.objective import WHOLE
from bellwether.core.stored_documents import InvalidDocument
from bellwether_load.plan.checks import Faults
from bellwether_load.plan.problem import NO_BROKER, BrokerInput, ProblemHeader

PROBLEM = "partitions of the problem"
LOADS = "loads"
MOST = 2**53
"""Of all loads together."""
MOST_RATE = 2**45
"""Bytes/s that no partition can carry."""
MOST_REPLICAS = 20

Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]
Bools = NDArray[np.bool_]


def total(at: NDArray[np.integer], values: Ints, length: int) -> Ints:
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

    def brokers(self, name: str, ids: Ints) -> Int32s:
        """A column of lists of brokers as a matrix of their indices."""
        lists = self.table.column(name).combine_chunks()
        lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
        self.wrong(lengths > MOST_REPLICAS, f"has {{count}} {name}, more than {MOST_REPLICAS}", count=lengths)
        there = np.arange(min(max(1, int(lengths.max(initial=0))), MOST_REPLICAS)) < lengths[:, None]
        found = np.full(there.shape, len(ids), np.int32)
        given = pc.list_slice(lists, 0, MOST_REPLICAS).flatten()
        found[there] = indices(given.to_numpy(zero_copy_only=False), ids)
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


@dataclass(frozen=True)
class Rows:
    """A row for each partition. ``listed``: brokers in the order of their ids. ``takers``: replicas on open brokers in
    the ISR, in their places; ``may``: which of them a plan may make the leader."""

    table: Table
    listed: Sequence[BrokerInput]
    ids: Ints
    open: Bools
    replicas: Int32s
    takers: Int32s
    may: Bools
    leader: Int32s
    held: Bools
    rates: Rates
    load: Ints

    def __len__(self) -> int:
        return len(self.leader)

    @property
    def brokers(self) -> int:
        """How many there are."""
        return len(self.ids)

    @property
    def size(self) -> Ints:
        """Their capacities."""
        return np.array([b.capacity for b in self.listed], np.int64)

    @cached_property
    def stays(self) -> Bools:
        """Partitions that a plan may not move."""
        nobody: Bools = np.logical_not(np.any(self.may, axis=1))
        return nobody

    @cached_property
    def eligible(self) -> Int32s:
        """Who may lead each partition; its leader alone if it stays, none if that is closed."""
        found = np.where(self.may, self.replicas, self.brokers).astype(np.int32)
        found[:, 0] = np.where(self.stays & self.open[self.leader], self.leader, found[:, 0])
        return found

    @cached_property
    def home(self) -> Int32s:
        """Its leader; none where that one may not lead."""
        leads = np.any(self.eligible == self.leader[:, None], axis=1)
        return np.where(leads, self.leader, self.brokers).astype(np.int32)

    @cached_property
    def sole(self) -> Bools:
        """No other broker than its leader may lead it."""
        alone: Bools = (self.eligible < self.brokers).sum(axis=1) == 1
        return alone & (self.home < self.brokers)

    @property
    def free(self) -> Bools:
        """It may, or must, get another leader."""
        found: Bools = ~self.sole & np.any(self.eligible < self.brokers, axis=1)
        return found

    @property
    def forced(self) -> Bools:
        """Partitions whose leader must change."""
        found: Bools = ~self.stays & (self.home == self.brokers)
        return found

    @cached_property
    def base(self) -> Ints:
        """What following costs each broker."""
        follow = np.repeat(WHOLE * self.rates.produce, self.replicas.shape[1])
        return total(self.replicas, follow, self.brokers)

    def led(self, some: Bools | slice = slice(None)) -> Ints:
        """What each broker leads of some partitions, or of all, before planning."""
        return total(self.leader[some], self.load[some], self.brokers)


def read_rows(problem: ProblemHeader, partitions: Any, loads: Any) -> Rows:
    """The partitions of a problem with their loads. InvalidDocument names the first that makes no sense."""
    faults, (keys, measured) = Faults(), keys_of(partitions, loads)
    table = Table(partitions, keys, PROBLEM, faults)
    rates = rates_of(Table(loads, measured, LOADS, faults), table, problem.objective.statistic)
    rows = None if faults.any() else rows_of(problem, table, rates, faults)
    if rows is None or faults.any():
        raise InvalidDocument(next(fault for name in (PROBLEM, LOADS) for fault in faults.of(name)))
    return rows


def rows_of(problem: ProblemHeader, table: Table, rates: Rates, faults: Faults) -> Rows | None:
    """The partitions of a problem as arrays; None where they make no sense."""
    listed, asked = sorted(problem.brokers, key=lambda b: b.id), problem.objective
    ids, none, racks = np.array([b.id for b in listed], np.int64), len(listed), asked.preferred_racks
    if not none:
        faults.add(PROBLEM, "problem.json lists no brokers")
        return None
    replicas, isr = (table.brokers(name, ids) for name in ("replicas", "isr"))
    leader = indices(table.numbers("leader"), ids)
    _form(table, replicas, isr, leader, none)
    if faults.any(PROBLEM):
        return None
    open_ = np.array([*(b.open for b in listed), False])
    able = open_[replicas] & (replicas[:, :, None] == isr[:, None, :]).any(axis=2)
    takers = np.where(able, replicas, none).astype(np.int32)
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
    return Rows(table, listed, ids, open_, replicas, takers, may, leader, held, rates, load)


def indices(given: Ints, ids: Ints) -> Int32s:
    """Brokers as indices; one further than none for those that are not known."""
    at = np.minimum(np.searchsorted(ids, given), len(ids) - 1).astype(np.int32)
    return np.where(ids[at] == given, at, np.int32(len(ids)) + (given != NO_BROKER))


def _form(table: Table, replicas: Int32s, isr: Int32s, leader: Int32s, none: int) -> None:
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
