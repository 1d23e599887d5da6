"""Fault injection into the ports: lost and late answers, refusals, races, and killed processes.

``FaultyMover``, ``FaultyReader`` and ``FaultyRecords`` wrap the ports of one process; ``Faults`` holds the script that
they share. ``Interruptions`` kills the process right before or right after its n-th side effect.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from threading import Lock
from typing import Any, TypeVar

import pytest

from bellwether.core.model.cluster import Cluster, TopicPartition
from bellwether.core.model.undo_record import UndoRecord
from bellwether.ports.errors import BellwetherError, Transient
from bellwether.ports.kafka import Outcome, Reorder
from bellwether.ports.world import World

T = TypeVar("T")

REQUESTS = ("reorder", "elect", "cancel")
"""Methods of ``ports.kafka.LeaderMover`` that change a cluster."""


def most_at_once(module: Any, name: str, patch: pytest.MonkeyPatch, call: Callable[[], object]) -> int:
    """How many calls of a module's function were under way together, while four threads make a call."""
    original, lock, under_way, most = getattr(module, name), Lock(), [0], [0]

    def counted(*arguments: Any) -> Any:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        time.sleep(0.02)
        try:
            return original(*arguments)
        finally:
            with lock:
                under_way[0] -= 1

    patch.setattr(module, name, counted)
    with ThreadPoolExecutor(4) as pool:
        for asked in [pool.submit(call) for _ in range(4)]:
            asked.result()
    return most[0]


class Fate(StrEnum):
    """The fate of a request that returns no answer."""

    LOST = "Lost"
    """It never arrives."""

    UNANSWERED = "Unanswered"
    """It is carried out now; only the answer is lost."""

    LATE = "Late"
    """It is carried out later, if at all: at the next ``Faults.deliver``, however long ago the caller gave up."""


@dataclass
class Faults:
    """The script: what happens to the next requests of each kind (``read``, ``partitions``, ``reorder``, ``elect``,
    ``cancel``, ``save``, ``take_over``), and which late requests are still held.

    A broker holds a late reorder without any bound while it is frozen, and then it answers no other request either;
    once it is ``resumed`` it answers, and a test delivers or drops what it holds within Kafka's 60 s.
    """

    late: deque[Callable[[], object]] = field(default_factory=deque)
    holding: set[int] = field(default_factory=set)
    resumed: bool = False
    _fates: dict[str, deque[Fate | None]] = field(default_factory=dict)
    _refusals: dict[str, dict[TopicPartition, Outcome]] = field(default_factory=dict)
    _races: dict[str, deque[Callable[[], None]]] = field(default_factory=dict)

    def fail_next(self, kind: str, fate: Fate = Fate.LOST, *, times: int = 1, after: int = 0) -> None:
        """The next ``times`` requests of a kind end in Transient, once ``after`` more have passed unharmed."""
        self._fates.setdefault(kind, deque()).extend([*[None] * after, *[fate] * times])

    def refuse(self, kind: str, name: TopicPartition, error: str = "UNKNOWN_SERVER_ERROR") -> None:
        """One partition of the requests of a kind is answered with an error and not carried out, until ``relent``."""
        self._refusals.setdefault(kind, {})[name] = Outcome(error, "refused by the fault script")

    def relent(self) -> None:
        """No partition is refused and no further request fails; late ones still travel."""
        self._refusals.clear()
        self._fates.clear()

    def race(self, kind: str, act: Callable[[], None]) -> None:
        """Let something happen after the caller's last check, right before its next request of a kind arrives."""
        self._races.setdefault(kind, deque()).append(act)

    def deliver(self, *, again: bool = False) -> int:
        """Carry out every late request, in the order in which they were sent; returns how many.

        An error that one meets now (a fenced write, a cluster that is down) is an answer that is discarded. ``again``:
        the broker keeps them, as one does that lost its connection to the controller before the controller's answer.
        """
        count = len(self.late)
        if again:
            self.late.extend(list(self.late))
        for _ in range(count):
            with suppress(BellwetherError):
                self.late.popleft()()
        if not again:
            self.holding.clear()
        return count

    def drop(self) -> None:
        """The brokers that hold late requests were restarted: these never arrive."""
        self.late.clear()
        self.holding.clear()

    def refusals(self, kind: str) -> Mapping[TopicPartition, Outcome]:
        """The partitions that are refused in requests of a kind."""
        return self._refusals.get(kind, {})

    def meet(self, kind: str, request: Callable[[], T]) -> T:
        """Send one request through the script. Raises Transient where the script has no answer."""
        races = self._races.get(kind)
        if races:
            races.popleft()()
        fates = self._fates.get(kind)
        fate = fates.popleft() if fates else None
        if fate is None:
            return request()
        if fate is Fate.UNANSWERED:
            request()
        elif fate is Fate.LATE:
            self.late.append(request)
        raise Transient(f"no answer to {kind} in time")

    def around(self, world: World) -> World:
        """The same process, with every port that can fail put behind this script."""
        return replace(
            world,
            clusters=FaultyReader(world.clusters, self),
            leaders=FaultyMover(world.leaders, self),
            records=FaultyRecords(world.records, self),
        )


class Wrapped:
    """A port of one process with something around some of its methods; the others are the port's own."""

    def __init__(self, inner: Any, around: Any) -> None:
        self.inner = inner
        self.around = around

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class FaultyReader(Wrapped):
    """``ports.kafka.ClusterReader`` behind a script. ``lag`` makes metadata stale, as a broker that is behind shows
    it.
    """

    _last: Cluster | None = None
    _stale = 0

    def lag(self, reads: int = 1) -> None:
        """The next ``reads`` answers to ``read`` are what the last one was."""
        self._stale = reads

    def read(self) -> Cluster:
        """The cluster, or what it was at the last read."""
        if self._stale and self._last is not None:
            self._stale -= 1
            return self._last
        found: Cluster = self.around.meet("read", self.inner.read)
        self._last = found
        return found

    def partitions(self, topics: Collection[str]) -> Any:
        """Fresh partitions."""
        return self.around.meet("partitions", lambda: self.inner.partitions(topics))


class FaultyMover(Wrapped):
    """``ports.kafka.LeaderMover`` behind a script: requests may be lost, late, unanswered, or refused in part."""

    def forwards(self, broker: int) -> bool:
        """Passed on; a broker that holds a late reorder does not answer until it is resumed."""
        held = broker in self.around.holding and not self.around.resumed
        return not held and self.inner.forwards(broker)

    def reorder(self, orders: Sequence[Reorder], broker: int | None = None) -> Mapping[TopicPartition, Outcome]:
        """Reorder all but the refused partitions."""
        held = len(self.around.late)
        try:
            return self._sent("reorder", orders, lambda o: o.name, lambda some: self.inner.reorder(some, broker))
        finally:
            if broker is not None and len(self.around.late) > held:
                self.around.holding.add(broker)

    def elect(self, names: Sequence[TopicPartition]) -> Mapping[TopicPartition, Outcome]:
        """Elect in all but the refused partitions."""
        return self._sent("elect", names, lambda name: name, self.inner.elect)

    def cancel(self, names: Sequence[TopicPartition], broker: int | None = None) -> Mapping[TopicPartition, Outcome]:
        """Cancel in all but the refused partitions."""
        return self._sent("cancel", names, lambda name: name, lambda some: self.inner.cancel(some, broker))

    def _sent(
        self, kind: str, asked: Sequence[Any], name_of: Callable[[Any], TopicPartition], send: Callable[[Any], Any]
    ) -> Mapping[TopicPartition, Outcome]:
        refused = self.around.refusals(kind)
        passed = [one for one in asked if name_of(one) not in refused]
        outcomes = self.around.meet(kind, lambda: send(passed))
        return {name: refused.get(name) or outcomes[name] for name in map(name_of, asked)}


class FaultyRecords(Wrapped):
    """``ports.kubernetes.UndoRecords`` behind a script."""

    def take_over(self, cluster_id: str) -> Any:
        """Take over, if the answer comes."""
        return self.around.meet("take_over", lambda: self.inner.take_over(cluster_id))

    def save(self, record: UndoRecord) -> None:
        """Save, if the answer comes."""
        self.around.meet("save", lambda: self.inner.save(record))


class Killed(BaseException):
    """The process is gone: no ``except Exception`` holds that up, as nothing catches SIGKILL."""


class Interruptions:
    """Counts every side effect of a process and kills it at one of them.

    ``at`` is the number of the side effect, from 1 (``None``: never, only count); ``before`` kills in front of it
    instead of behind. ``effects`` lists what was done, in order. A killed process stays dead: any further call raises.
    """

    def __init__(self, at: int | None = None, *, before: bool = False) -> None:
        self.at = at
        self.before = before
        self.effects: list[str] = []
        self.dead = False

    def around(self, world: World) -> World:
        """The same process, mortal."""
        return replace(world, leaders=_MortalMover(world.leaders, self), records=_MortalRecords(world.records, self))

    def meet(self, effect: str, act: Callable[[], T]) -> T:
        """Carry out one side effect, unless the process dies at it. Raises Killed."""
        if self.dead:
            raise Killed(f"dead since {self.at}")
        due = self.at == len(self.effects) + 1
        if due and self.before:
            self._die(effect)
        try:
            answer = act()
        finally:
            self.effects.append(effect)
        if due:
            self._die(effect)
        return answer

    def _die(self, effect: str) -> None:
        self.dead = True
        raise Killed(f"{'before' if self.before else 'after'} side effect {self.at}: {effect}")


class _MortalMover(Wrapped):
    def __getattr__(self, name: str) -> Any:
        known = getattr(self.inner, name)
        return known if name not in REQUESTS else lambda *given: self.around.meet(name, lambda: known(*given))


class _MortalRecords(Wrapped):
    _last: UndoRecord | None = None

    def take_over(self, cluster_id: str) -> Any:
        self._last = self.around.meet("take_over", lambda: self.inner.take_over(cluster_id))
        return self._last

    def save(self, record: UndoRecord) -> None:
        # Saving what was saved last writes nothing, so it is no side effect to die at.
        if record == self._last and not self.around.dead:
            self.inner.save(record)
        else:
            self.around.meet("save", lambda: self.inner.save(record))
            self._last = record
