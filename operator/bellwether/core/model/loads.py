"""Leaders and measured load per broker: how full each broker is, and whether another leader fits its limits.

In: a policy's limits, the measured loads as far as there are any, who leads what. Out: how full each broker is, whether
one more fits, and how many would not. Pure. ``planning.assignment`` keeps the account while it chooses leaders,
``demotion.decisions`` asks beforehand whether a whole rack can be done without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.settings.capacity import UNBOUNDED, Capacity
from bellwether.core.settings.objective import WHOLE

LEAST_PARTS = 10
"""Any leader counts for a tenth of an average one at least: else all that are idle would go to one broker."""


@dataclass(frozen=True, slots=True)
class Loads:
    """Measured loads: what leading each partition costs, in bytes/s, and brokers whose capacity is not ``WHOLE``.

    A partition that was never measured counts as nothing: only the number of leaders limits it. ``following`` is what
    each broker carries whoever leads, in bytes/s; ``measured_at`` the moment that all of this is for. ``awaited`` says
    that it is about to be known: until then a limit by load lets nobody take on anything.
    """

    partitions: Mapping[PartitionKey, int] = field(default_factory=dict)
    capacities: Mapping[int, int] = field(default_factory=dict)
    following: Mapping[int, int] = field(default_factory=dict)
    measured_at: datetime | None = None
    awaited: bool = False
    least: int = field(init=False, repr=False)
    """What leading any partition counts for at least where brokers are compared, in bytes/s."""

    def __post_init__(self) -> None:
        average = sum(self.partitions.values()) // max(len(self.partitions), 1)
        object.__setattr__(self, "least", max(average // LEAST_PARTS, 1))


NO_LOADS = Loads()
LOADS_PENDING = Loads(awaited=True)
"""What was measured is being looked for."""


class LeaderLoads:
    """How many partitions each broker leads, and what they cost it, while a plan is being made."""

    def __init__(self, leading: Mapping[int, int], capacity: Capacity = UNBOUNDED, loads: Loads = NO_LOADS) -> None:
        self.counts = dict(leading)
        self.capacity = capacity
        self._loads = loads
        self._carried = dict(loads.following)
        self.weighs = capacity.max_load is not None and bool(loads.partitions)
        """Whether there is a limit by load, and loads to hold against it."""

    def fullness(self, broker: int) -> int:
        """How full a broker is, to be compared with others.

        By what it carries, in proportion to its capacity, where a limit has loads known; else by its leaders.
        """
        leaders = self.counts.get(broker, 0)
        if not self.weighs:
            return leaders
        carried = self._carried.get(broker, 0) + leaders * self._loads.least
        return carried * WHOLE // self._loads.capacities.get(broker, WHOLE)

    def load_of(self, key: PartitionKey) -> int:
        """What leading a partition costs, in bytes/s; 0 where it was never measured."""
        return self._loads.partitions.get(key, 0)

    def carry(self, broker: int, key: PartitionKey) -> None:
        """The cost of a partition that is in the counts already."""
        if self.weighs:
            self._carried[broker] = self._carried.get(broker, 0) + self.load_of(key)

    def add(self, broker: int, key: PartitionKey) -> None:
        """The broker leads that partition, too."""
        self.counts[broker] = self.counts.get(broker, 0) + 1
        self.carry(broker, key)

    def move(self, key: PartitionKey, here: int, there: int) -> None:
        """The partition is led there instead of here."""
        self.counts[here] -= 1
        self.counts[there] = self.counts.get(there, 0) + 1
        if self.weighs:
            load = self.load_of(key)
            self._carried[here] = self._carried.get(here, 0) - load
            self._carried[there] = self._carried.get(there, 0) + load

    def fits(self, broker: int, key: PartitionKey) -> bool:
        """Whether the broker may lead that partition besides."""
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
    """That a limit by load cannot hold, in a sentence; None where it holds, or none is asked for."""
    if capacity.max_load is None or loads is not None:
        return None
    meanwhile = "maxLeaders alone does" if capacity.max_leaders is not None else "nothing does"
    return (
        f"no loads are known, so maxBytesPerSecond of spec.demotion.capacity limits nothing yet, {meanwhile}: ask for a"
        " load plan (bellwether rebalance, or spec.rebalance.schedule), whose job measures them; status.rebalance says"
        " what came of the last one"
    )


def measured_at_suffix(capacity: Capacity, loads: Loads | None) -> str:
    """Of when the loads are that a limit was held against, to stand behind a sentence; empty where none were."""
    if capacity.max_load is None or loads is None or loads.measured_at is None:
        return ""
    return f" (loads as of {loads.measured_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ})"


def count_unplaceable(account: LeaderLoads, wanting: Iterable[tuple[PartitionKey, Sequence[int]]]) -> int:
    """How many partitions, each with the brokers that could lead it, find nobody with room. Uses up the account.

    The heaviest first, then those with the fewest candidates: as a demotion would place them.
    """
    left = 0
    for key, candidates in sorted(wanting, key=lambda w: (-account.load_of(w[0]), len(w[1]), w[0])):
        fitting = [b for b in candidates if account.fits(b, key)]
        if fitting:
            account.add(min(fitting, key=lambda b: (account.fullness(b), b)), key)
        else:
            left += 1
    return left
