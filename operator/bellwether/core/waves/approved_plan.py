"""Approved orders, as the load side gives them to reconciles that apply them in waves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from bellwether.core.model.cluster import PartitionKey, TopicPartition
from bellwether.core.model.loads import Loads


class RebalanceMove(NamedTuple):
    """One partition's new order, and its leader before and after.

    ``load`` is the cost of its leadership, in hundredths of a byte/s. If both leaders are the same only the order
    changes, so that the controller's own balancing does not move the leader.
    """

    topic: str
    topic_id: str
    partition: int
    replicas: tuple[int, ...]
    order: tuple[int, ...]
    from_leader: int
    to_leader: int
    load: int

    @property
    def key(self) -> PartitionKey:
        """The partition's identity: topic id and index."""
        return PartitionKey(self.topic_id, self.partition)

    @property
    def name(self) -> TopicPartition:
        """The name that admin requests use."""
        return TopicPartition(self.topic, self.partition)

    @property
    def moves_leader(self) -> bool:
        """Whether the leader changes, not only the order."""
        return self.from_leader != self.to_leader


@dataclass(frozen=True)
class ApprovedPlan:
    """A plan that was verified and approved. ``closed`` are the brokers that could not lead when it was made.

    Moves are in the order of application: scattered, so that the load on the way stays between that before and that
    after, and no broker gains everything before it loses anything.
    """

    digest: str
    made_at: datetime
    closed: frozenset[int]
    moves: tuple[RebalanceMove, ...]

    @classmethod
    def scattered(
        cls, digest: str, made_at: datetime, closed: frozenset[int], moves: Iterable[RebalanceMove]
    ) -> ApprovedPlan:
        """The plan with its moves in the order of application."""
        return cls(digest, made_at, closed, tuple(sorted(moves, key=_scattered)))

    @cached_property
    def load(self) -> int:
        """Load of all moves, in hundredths of a byte/s."""
        return sum(m.load for m in self.moves)


@dataclass(frozen=True)
class RebalanceInput:
    """Input of a reconcile for rebalancing: a plan to continue, one to end, whether a snapshot is wanted.

    ``loads`` are those of the last plan, where the policy's capacity needs them. For the audit log: who approved the
    plan, and the occasion of a special reconcile.
    """

    accepted: ApprovedPlan | None = None
    superseded: str = ""
    wants_snapshot: bool = False
    approved_by: str = ""
    occasion: str = ""
    loads: Loads | None = None


def _scattered(move: RebalanceMove) -> tuple[bytes, tuple[str, int]]:
    digest = hashlib.blake2b(f"{move.topic_id}/{move.partition}".encode(), digest_size=8).digest()
    return digest, move.key
