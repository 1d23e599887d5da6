"""Convert the partitions of a problem to arrays: loads, eligible brokers, fixed load of each broker.

In: a record batch of partitions with their measured rates. Out: arrays, and sums a broker. All in whole numbers, by the
rules of the files' documentation, so that every verifier of a plan computes the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bellwether.core.settings.objective import WHOLE
from bellwether.ports.errors import Terminal
from bellwether_load.balancing.blocks import Block, Bools, Int32s, Int64s, sums
from bellwether_load.plan.problem import ProblemHeader

LARGEST = 2**53
"""The most that all loads together may be: sums are exact up to it."""


class Refused(Terminal):
    """Invalid input; the message names the partition or the field."""


@dataclass(frozen=True)
class Choices:
    """All partitions as arrays, a row each, in the problem's order.

    ``replicas`` and ``eligible`` hold broker indices, padded with ``brokers``; ``leader`` is ``brokers`` where there is
    none. ``known``: has measured rates. ``consumed``: so has its consumption. ``held``: is held by name. ``stays``: is
    held, unknown, or without candidate. ``takers``: the replicas on open brokers in the ISR, each in its place.
    ``ids``: of the brokers, ascending.
    """

    replicas: Int32s
    takers: Int32s
    eligible: Int32s
    leader: Int32s
    loads: Int64s
    follows: Int64s
    known: Bools
    consumed: Bools
    held: Bools
    stays: Bools
    ids: Int64s

    def __len__(self) -> int:
        return len(self.loads)

    @property
    def brokers(self) -> int:
        """How many there are."""
        return len(self.ids)

    @property
    def out(self) -> Bools:
        """It has no leader and no eligible broker."""
        nobody: Bools = (self.eligible == self.brokers).all(axis=1)
        return nobody

    @cached_property
    def home(self) -> Int32s:
        """Its leader, or ``brokers`` where that one is not eligible."""
        may = (self.eligible == self.leader[:, None]).any(axis=1)
        return np.where(may, self.leader, self.brokers).astype(np.int32)

    @cached_property
    def fixed(self) -> Bools:
        """It has no choice and stays with its leader."""
        alone: Bools = (self.eligible < self.brokers).sum(axis=1) == 1
        return alone & (self.home < self.brokers)

    @property
    def free(self) -> Bools:
        """It may, or must, get another leader."""
        return ~self.fixed & ~self.out

    @property
    def base(self) -> Int64s:
        """What following costs each broker: all of its replicas."""
        follows = np.repeat(self.follows, self.replicas.shape[1])
        return sums(self.replicas.ravel(), follows, self.brokers + 1)[: self.brokers]

    def led(self, some: Bools | slice = slice(None)) -> Int64s:
        """What each broker leads of some partitions, or of all, before planning."""
        return sums(self.leader[some], self.loads[some], self.brokers + 1)[: self.brokers]

    @property
    def block(self) -> Block:
        """The partitions with a choice."""
        ids = np.flatnonzero(self.free)
        return Block.at_start(self.brokers, ids, self.loads[ids], self.eligible[ids], self.home[ids])


def choices(batch: pa.RecordBatch, terms: ProblemHeader) -> Choices:
    """The partitions of a problem with their rates, ``produce`` and ``consume``. Refused names an invalid value."""
    listed, costs = sorted(terms.brokers, key=lambda b: b.id), terms.objective
    ids, brokers, racks = np.array([b.id for b in listed], np.int64), len(listed), costs.preferred_racks
    places: Mapping[str | None, int] = {rack: at for at, rack in enumerate(racks)}
    replicas, isr = (_indices(batch.column(name), ids) for name in ("replicas", "isr"))
    rf = (replicas < brokers).sum(axis=1)
    leader = _index(batch.column("leader").to_numpy(zero_copy_only=False).astype(np.int64), ids)
    known = batch.column("produce").is_valid().to_numpy(zero_copy_only=False)
    consumed = batch.column("consume").is_valid().to_numpy(zero_copy_only=False)
    produce, consume = rates(batch)
    _refuse_inexact(batch, produce, consume, rf)
    follow, loads = WHOLE * produce, WHOLE * ((rf - 1) * produce + costs.consumption * consume)
    held = pc.not_equal(batch.column("held"), "").to_numpy(zero_copy_only=False)
    open_ = np.array([*(b.open for b in listed), False])
    order = np.array([*(places.get(b.rack, len(racks)) for b in listed), 0])
    able = open_[replicas] & (replicas[:, :, None] == isr[:, None, :]).any(axis=2)
    takers = np.where(able, replicas, brokers).astype(np.int32)
    rank = np.where(able, order[replicas], np.iinfo(np.int64).max)
    able &= rank == rank.min(axis=1, keepdims=True)
    eligible = np.where(able, replicas, brokers).astype(np.int32)
    stays = held | ~known | ~able.any(axis=1)
    eligible[stays] = brokers
    eligible[stays, 0] = leader[stays]
    return Choices(replicas, takers, eligible, leader, loads, follow, known, consumed, held, stays, ids)


def rates(batch: pa.RecordBatch) -> tuple[Int64s, Int64s]:
    """Bytes/s in and out, rounded half to even; 0 where unknown. Refused names an invalid rate."""
    return _whole(batch, "produce"), _whole(batch, "consume")


def _whole(batch: pa.RecordBatch, column: str) -> Int64s:
    found = batch.column(column).fill_null(0.0).to_numpy(zero_copy_only=False)
    wrong = ~np.isfinite(found) | (found < 0) | (found > 2.0**45)
    if wrong.any():
        at = int(wrong.argmax())
        raise Refused(
            f"{name_of(batch, at)}: its {column} rate is {found[at]}: rates are finite, not negative, and below 2**45"
        )
    whole: Int64s = np.rint(found).astype(np.int64)
    return whole


def _indices(lists: pa.ListArray, brokers: Int64s) -> Int32s:
    """Lists of broker ids as a matrix of indices, padded."""
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    ids = lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    matrix = np.full((len(lists), max(1, int(lengths.max(initial=0)))), len(brokers), np.int32)
    row = np.repeat(np.arange(len(lists)), lengths)
    column = np.arange(len(ids)) - np.repeat(lengths.cumsum() - lengths, lengths)
    matrix[row, column] = _index(ids, brokers)
    return matrix


def _index(ids: Int64s, brokers: Int64s) -> Int32s:
    """Broker ids as indices; -1 (no broker) as one past the last. Refused names an unknown id."""
    if not len(brokers):
        raise Refused("brokers: the problem lists none")
    at = np.minimum(np.searchsorted(brokers, ids), len(brokers) - 1)
    strange = (brokers[at] != ids) & (ids != -1)
    if strange.any():
        raise Refused(f"brokers: the partitions name broker {ids[strange][0]}, which the problem does not list")
    return np.where(ids == -1, len(brokers), at).astype(np.int32)


def _refuse_inexact(batch: pa.RecordBatch, produce: Int64s, consume: Int64s, rf: Int64s) -> None:
    most = WHOLE * (2.0 * rf * produce + 1.0 * consume)
    if most.sum() > LARGEST:
        raise Refused(
            f"loads: all partitions together are {most.sum() / WHOLE:.3g} bytes/s, more than the {LARGEST / WHOLE:.3g}"
            f" up to which sums are exact: check the rates, of which {name_of(batch, int(most.argmax()))} has the most"
        )


def name_of(batch: pa.RecordBatch | pa.Table, at: int) -> str:
    """A partition as messages name it."""
    return f"{batch.column('topic')[at].as_py()}-{batch.column('partition')[at].as_py()}"
