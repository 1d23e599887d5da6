"""Leaders and measured load per broker: how full each broker is, and whether another leader fits its limits.

In: a policy's limits, the measured loads if available, the current leaders. Out: how full each broker is, whether one
more leader fits, and how many would not. Pure. ``planning.assignment`` updates the loads while it chooses leaders;
``demotion.decisions`` checks whether a whole rack can be spared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.settings.objective import WHOLE
from bellwether.core.settings.policy import UNBOUNDED, Capacity

LEAST_PARTS = 10
"""Any leader counts for at least 1/10 of an average one: otherwise all idle partitions would go to one broker."""


@dataclass(frozen=True, slots=True)
class Loads:
    """Measured loads: the cost of leading each partition in bytes/s, and brokers whose capacity is not ``WHOLE``.

    A partition that was never measured counts as 0: only the number of leaders limits it. ``following`` is the load of
    each broker as a follower, in bytes/s; ``measured_at`` is the time that the loads apply to. ``awaited`` says that
    the loads are being read: until then a limit by load admits no new leader.
    """

    partitions: Mapping[PartitionKey, int] = field(default_factory=dict)
    capacities: Mapping[int, int] = field(default_factory=dict)
    following: Mapping[int, int] = field(default_factory=dict)
    measured_at: datetime | None = None
    awaited: bool = False
    least: int = field(init=False, repr=False)
    """Minimum cost of any partition when brokers are compared, in bytes/s."""

    def __post_init__(self) -> None:
        average = sum(self.partitions.values()) // max(len(self.partitions), 1)
        object.__setattr__(self, "least", max(average // LEAST_PARTS, 1))


NO_LOADS = Loads()
LOADS_PENDING = Loads(awaited=True)
"""The measured loads are being read."""


class LeaderLoads:
    """Leaders per broker and their load, updated while a plan is built."""

    def __init__(self, leading: Mapping[int, int], capacity: Capacity = UNBOUNDED, loads: Loads = NO_LOADS) -> None:
        self.counts = dict(leading)
        self.capacity = capacity
        self._loads = loads
        self._carried = dict(loads.following)
        self.weighs = capacity.max_load is not None and bool(loads.partitions)
        """Whether there is a limit by load, and loads to hold against it."""

    def fullness(self, broker: int) -> int:
        """How full a broker is, for comparison with other brokers.

        Its load relative to its capacity where there is a load limit and loads are known; otherwise its number of
        leaders.
        """
        leaders = self.counts.get(broker, 0)
        if not self.weighs:
            return leaders
        carried = self._carried.get(broker, 0) + leaders * self._loads.least
        return carried * WHOLE // self._loads.capacities.get(broker, WHOLE)

    def load_of(self, key: PartitionKey) -> int:
        """Cost of leading a partition, in bytes/s; 0 if it was never measured."""
        return self._loads.partitions.get(key, 0)

    def carry(self, broker: int, key: PartitionKey) -> None:
        """Add the cost of a partition that is already counted as a leader."""
        if self.weighs:
            self._carried[broker] = self._carried.get(broker, 0) + self.load_of(key)

    def add(self, broker: int, key: PartitionKey) -> None:
        """Count the broker as leader of that partition."""
        self.counts[broker] = self.counts.get(broker, 0) + 1
        self.carry(broker, key)

    def move(self, key: PartitionKey, here: int, there: int) -> None:
        """Move the leader of the partition from ``here`` to ``there``."""
        self.counts[here] -= 1
        self.counts[there] = self.counts.get(there, 0) + 1
        if self.weighs:
            load = self.load_of(key)
            self._carried[here] = self._carried.get(here, 0) - load
            self._carried[there] = self._carried.get(there, 0) + load

    def fits(self, broker: int, key: PartitionKey) -> bool:
        """Whether the broker may lead that partition in addition."""
        most, bytes_per_second = self.capacity.max_leaders, self.capacity.max_load
        if most is not None and self.counts.get(broker, 0) >= most:
            return False
        if bytes_per_second is None:
            return True
        if self._loads.awaited:
            return False
        limit = bytes_per_second * self._loads.capacities.get(broker, WHOLE) // WHOLE
        load = self.load_of(key)
        return load == 0 or self._carried.get(broker, 0) + load <= limit


def loads_missing_message(capacity: Capacity, loads: Loads | None) -> str | None:
    """Message that a load limit has no effect because no loads are known; None where it works, or is not set."""
    if capacity.max_load is None or loads is not None:
        return None
    meanwhile = "only maxLeaders limits brokers" if capacity.max_leaders is not None else "nothing limits brokers"
    return (
        f"no loads are measured, so maxBytesPerSecond of spec.demotion.capacity has no effect yet"
        f" ({meanwhile}): request a plan of the policy's LeaderRebalance (bellwether rebalance, or its spec.schedule),"
        " whose job measures loads; its status has the result of the last one. If there is none, create it"
    )


def measured_at_suffix(capacity: Capacity, loads: Loads | None) -> str:
    """Time of the loads behind a limit, as a suffix for a message; empty where no loads were used."""
    if capacity.max_load is None or loads is None or loads.measured_at is None:
        return ""
    return f" (loads as of {loads.measured_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ})"


def count_unplaceable(account: LeaderLoads, wanting: Iterable[tuple[PartitionKey, Sequence[int]]]) -> int:
    """How many partitions, each with its candidate leaders, find no broker with room. Modifies ``account``.

    The largest load first, then those with the fewest candidates, in the order in which a demotion places them.
    """
    left = 0
    for key, candidates in sorted(wanting, key=lambda w: (-account.load_of(w[0]), len(w[1]), w[0])):
        if fitting := [b for b in candidates if account.fits(b, key)]:
            account.add(min(fitting, key=lambda b: (account.fullness(b), b)), key)
        else:
            left += 1
    return left
