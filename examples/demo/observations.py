"""What metadata showed over time: leaders, replica orders and replica sets of every partition. Pure; fed by ``watch``.

Answers the questions whose truth must not come from Bellwether: who leads how many, what does a broker lead,
for how long did it lead which partition, was a replica set ever another one, are the orders those of the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Name = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Seen:
    """One partition in one metadata response; ``leader`` is ``None`` when it has none."""

    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...] = ()


View = Mapping[Name, Seen]


@dataclass
class Observations:
    """All views so far, kept as changes."""

    view: View = field(default_factory=dict)
    at: float = 0.0
    start: dict[Name, Seen] = field(default_factory=dict)
    offline: set[Name] = field(default_factory=set)
    sets_changed: set[Name] = field(default_factory=set)
    history: dict[Name, list[tuple[float, int | None]]] = field(default_factory=dict)

    def add(self, at: float, view: View) -> None:
        """Take in what metadata showed at ``at``. A partition's first sight is its start."""
        for name, seen in view.items():
            first = self.start.setdefault(name, seen)
            if set(seen.replicas) != set(first.replicas):
                self.sets_changed.add(name)
            if seen.leader is None:
                self.offline.add(name)
            changes = self.history.setdefault(name, [])
            if not changes or changes[-1][1] != seen.leader:
                changes.append((at, seen.leader))
        self.view, self.at = view, at

    def begin(self) -> None:
        """Forget what was before: what is seen now is the start that everything is compared with."""
        self.start = dict(self.view)
        self.history = {name: [(self.at, seen.leader)] for name, seen in self.view.items()}
        self.offline = {name for name, seen in self.view.items() if seen.leader is None}
        self.sets_changed = set()

    def leaders(self) -> dict[int, int]:
        """How many partitions each broker leads, every broker of a replica list included."""
        counts = {replica: 0 for seen in self.view.values() for replica in seen.replicas}
        for seen in self.view.values():
            if seen.leader is not None:
                counts[seen.leader] = counts.get(seen.leader, 0) + 1
        return dict(sorted(counts.items()))

    def led_by(self, broker: int) -> frozenset[Name]:
        """The partitions that a broker leads now."""
        return frozenset(name for name, seen in self.view.items() if seen.leader == broker)

    def in_isr_of(self, broker: int) -> int:
        """In how many partitions' in-sync replicas a broker is now."""
        return sum(1 for seen in self.view.values() if broker in seen.isr)

    def out_of_place(self) -> int:
        """How many partitions have another replica order, or another leader, than at the start."""
        return sum(1 for name, seen in self.view.items() if not self._in_place(name, seen))

    def orders_restored(self) -> int:
        """How many partitions have the very replica order of the start."""
        return sum(1 for name, seen in self.view.items() if seen.replicas == self.start[name].replicas)

    def seconds_led(self, broker: int, start: float, end: float) -> dict[Name, float]:
        """For how long in ``[start, end]`` each partition was led by a broker; those that never were are left out."""
        result = {}
        for name, changes in self.history.items():
            stops = [at for at, _ in changes[1:]] + [end]
            led = sum(
                max(0.0, min(stop, end) - max(at, start))
                for (at, leader), stop in zip(changes, stops, strict=True)
                if leader == broker
            )
            if led > 0:
                result[name] = led
        return result

    def _in_place(self, name: Name, seen: Seen) -> bool:
        first = self.start[name]
        return seen.replicas == first.replicas and seen.leader == first.leader
