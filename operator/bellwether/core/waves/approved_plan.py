"""Approved orders, as the load side gives them to reconciles that apply them in waves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from bellwether.core.model.cluster import PartitionKey, TopicPartition
from bellwether.core.model.loads import Loads

_LOOKED_AT = 8
"""Moves of a broker that are looked at for one that fits."""


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

    Moves are in the order of application.
    """

    digest: str
    made_at: datetime
    closed: frozenset[int]
    moves: tuple[RebalanceMove, ...]

    @classmethod
    def by_relief(
        cls,
        digest: str,
        made_at: datetime,
        closed: frozenset[int],
        moves: Iterable[RebalanceMove],
        brokers: Mapping[int, tuple[float, int]],
    ) -> ApprovedPlan:
        """The plan with its moves in the order in which they lower the busiest broker most, so that a plan that is
        stopped has most of its gain. ``brokers``: relative load before the plan, and capacity.
        """
        return cls(digest, made_at, closed, tuple(_by_relief(sorted(moves, key=_scattered), brokers)))

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


def _by_relief(moves: Sequence[RebalanceMove], brokers: Mapping[int, tuple[float, int]]) -> Iterator[RebalanceMove]:
    """Always a heavy move of the busiest broker whose new leader does not become busier than that; then what relieves
    nothing. The same moves and loads give the same order.
    """
    loads = {broker: load for broker, (load, _) in brokers.items()}
    queues: dict[int, list[RebalanceMove]] = {}
    for move in moves:
        if move.moves_leader and move.load and move.from_leader in loads and move.to_leader in loads:
            queues.setdefault(move.from_leader, []).append(move)
    for queue in queues.values():
        queue.sort(key=lambda m: m.load)
    taken = {m.key for queue in queues.values() for m in queue}
    heap = [(-loads[broker], broker) for broker in queues]
    heapify(heap)
    full: dict[int, list[RebalanceMove]] = {}
    while heap or full:
        if heap:
            known, broker = heappop(heap)
            if -known != loads[broker] or broker in full or not queues[broker]:
                continue  # an entry from before its load changed
            at = _fitting(queues[broker], loads, brokers)
            if not at:
                full[broker] = queues[broker][-_LOOKED_AT:]
                continue
        else:  # nothing fits anywhere: on the way some broker has to carry more for a moment
            broker, at = max(full, key=lambda b: (loads[b], b)), 1
        move = queues[broker].pop(-at)
        loads[broker] -= move.load / brokers[broker][1]
        loads[move.to_leader] += move.load / brokers[move.to_leader][1]
        freed = [b for b, waiting in full.items() if any(m.to_leader == broker for m in waiting)]
        for one in {broker, move.to_leader, *freed}:
            full.pop(one, None)
            if one in queues:
                heappush(heap, (-loads[one], one))
        yield move
    yield from (m for m in moves if m.key not in taken)


def _fitting(
    queue: Sequence[RebalanceMove], loads: Mapping[int, float], brokers: Mapping[int, tuple[float, int]]
) -> int:
    """Place from the end of the heaviest of a few moves that fits; 0 for none."""
    for at, move in enumerate(reversed(queue[-_LOOKED_AT:]), start=1):
        if loads[move.to_leader] + move.load / brokers[move.to_leader][1] <= loads[move.from_leader]:
            return at
    return 0


def _scattered(move: RebalanceMove) -> tuple[bytes, tuple[str, int]]:
    digest = hashlib.blake2b(f"{move.topic_id}/{move.partition}".encode(), digest_size=8).digest()
    return digest, move.key
