"""Convert the partitions of a problem to arrays: loads, eligible brokers, fixed load of each broker.

In: a record batch of partitions with their measured rates. Out: arrays, and sums a broker. All in whole numbers, by the
rules of the files' documentation, so that every verifier of a plan computes the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Int32s, Int64s


class Refused(ValueError):
    """Invalid input; the message names the partition or the field."""


@dataclass(frozen=True)
class Costs:
    """Weights in percent: cost of a byte for the leader and for a follower."""

    produce: int
    replication: int
    consume: int
    follow: int


@dataclass(frozen=True)
class Slots:
    """The brokers as partitions see them. Arrays by index, ids ascending; ``rank``: place of the rack among those
    preferred, the same for all that are not."""

    ids: Int64s
    open: NDArray[np.bool_]
    rank: Int64s

    @classmethod
    def of(cls, ids: Sequence[int], open_: Sequence[bool], racks: Sequence[str | None], wanted: Sequence[str]) -> Slots:
        """From plain values; ids ascend."""
        places: Mapping[str | None, int] = {rack: at for at, rack in enumerate(wanted)}
        rank = [places.get(rack, len(wanted)) for rack in racks]
        return cls(np.array(ids, np.int64), np.array(open_, np.bool_), np.array(rank, np.int64))


@dataclass(frozen=True)
class Choices:
    """Partitions as arrays, a row each, in the batch's order.

    ``replicas`` and ``eligible`` hold broker indices, padded with ``brokers``; ``leader`` is ``brokers`` where there is
    none. ``known``: has measured rates. ``consumed``: so has its consumption. ``held``: is held by name. ``stays``: is
    held, unknown, or without candidate.
    """

    replicas: Int32s
    eligible: Int32s
    leader: Int32s
    loads: Int64s
    follows: Int64s
    known: NDArray[np.bool_]
    consumed: NDArray[np.bool_]
    held: NDArray[np.bool_]
    stays: NDArray[np.bool_]
    brokers: int

    @property
    def out(self) -> NDArray[np.bool_]:
        """It has no leader and no eligible broker."""
        nobody: NDArray[np.bool_] = (self.eligible == self.brokers).all(axis=1)
        return nobody

    @property
    def at_home(self) -> NDArray[np.bool_]:
        """Its leader is one of the eligible."""
        home: NDArray[np.bool_] = (self.eligible == self.leader[:, None]).any(axis=1)
        return home & (self.leader < self.brokers)

    @property
    def home(self) -> Int32s:
        """Its leader, or ``brokers`` where that one is not eligible."""
        return np.where(self.at_home, self.leader, self.brokers).astype(np.int32)

    @property
    def fixed(self) -> NDArray[np.bool_]:
        """It has no choice and stays with its leader."""
        alone: NDArray[np.bool_] = (self.eligible < self.brokers).sum(axis=1) == 1
        return self.at_home & alone

    @property
    def free(self) -> NDArray[np.bool_]:
        """It may, or must, get another leader."""
        return ~self.fixed & ~self.out


def choices(batch: pa.RecordBatch, slots: Slots, costs: Costs) -> Choices:
    """The partitions of a batch with the columns of ``planning.tables.with_loads``. Refused names an invalid value."""
    brokers = len(slots.ids)
    replicas = _indices(batch.column("replicas"), slots)
    rf = (replicas < brokers).sum(axis=1)
    isr = _indices(batch.column("isr"), slots)
    leader = _index(batch.column("leader").to_numpy(zero_copy_only=False).astype(np.int64), slots)
    known = batch.column("produce").is_valid().to_numpy(zero_copy_only=False)
    consumed = batch.column("consume").is_valid().to_numpy(zero_copy_only=False)
    produce, consume = rates(batch)
    lead = costs.produce * produce + costs.replication * produce * (rf - 1) + costs.consume * consume
    follow = costs.follow * produce
    loads = lead - follow
    if (loads < 0).any():
        raise Refused(
            f"{_name(batch, int((loads < 0).argmax()))}: leading it would cost less than following it with these"
            " weights: lower objective.followWeight"
        )
    held = batch.column("held").to_numpy(zero_copy_only=False) != ""
    open_ = np.append(slots.open, False)
    able = open_[replicas] & (replicas[:, :, None] == isr[:, None, :]).any(axis=2)
    rank = np.where(able, np.append(slots.rank, 0)[replicas], np.iinfo(np.int64).max)
    able &= rank == rank.min(axis=1, keepdims=True)
    eligible = np.where(able, replicas, brokers).astype(np.int32)
    stays = held | ~known | ~able.any(axis=1)
    eligible[stays] = brokers
    eligible[stays, 0] = leader[stays]
    return Choices(replicas, eligible, leader, loads, follow, known, consumed, held, stays, brokers)


def rates(batch: pa.RecordBatch) -> tuple[Int64s, Int64s]:
    """Bytes/s in and out, rounded half to even; 0 where unknown. Refused names an invalid rate."""
    return _whole(batch, "produce"), _whole(batch, "consume")


def _whole(batch: pa.RecordBatch, column: str) -> Int64s:
    found = batch.column(column).fill_null(0.0).to_numpy(zero_copy_only=False)
    wrong = ~np.isfinite(found) | (found < 0) | (found > 2.0**45)
    if wrong.any():
        at = int(wrong.argmax())
        raise Refused(
            f"{_name(batch, at)}: its {column} rate is {found[at]}: rates are finite, not negative, and below 2**45"
        )
    whole: Int64s = np.rint(found).astype(np.int64)
    return whole


def _indices(lists: pa.ListArray, slots: Slots) -> Int32s:
    """Lists of broker ids as a matrix of indices, padded."""
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    ids = lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    matrix = np.full((len(lists), max(1, int(lengths.max(initial=0)))), len(slots.ids), np.int32)
    row = np.repeat(np.arange(len(lists)), lengths)
    column = np.arange(len(ids)) - np.repeat(lengths.cumsum() - lengths, lengths)
    matrix[row, column] = _index(ids, slots)
    return matrix


def _index(ids: Int64s, slots: Slots) -> Int32s:
    """Broker ids as indices; -1 (no broker) as one past the last. Refused names an unknown id."""
    if not len(slots.ids):
        raise Refused("brokers: the problem lists none")
    at = np.minimum(np.searchsorted(slots.ids, ids), len(slots.ids) - 1)
    strange = (slots.ids[at] != ids) & (ids != -1)
    if strange.any():
        raise Refused(f"brokers: the partitions name broker {ids[strange][0]}, which the problem does not list")
    return np.where(ids == -1, len(slots.ids), at).astype(np.int32)


def _name(batch: pa.RecordBatch, at: int) -> str:
    return f"{batch.column('topic')[at].as_py()}-{batch.column('partition')[at].as_py()}"
