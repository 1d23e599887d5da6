"""Reachability probe: external reachability of every broker of one cluster, as seen from one vantage.

In: who the brokers are (a roster, read now and then) and how to ask one. Out: signals, posted on news. Called by
``bellwether probe reachability``. A roster that cannot be read changes nothing: brokers go on being asked where they
were last known to be.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

import structlog

from bellwether.core.settings.detection import Reachability
from bellwether.core.signals import Signal
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.probes.reachability.broker_watch import Asker, BrokerAddress, BrokerWatch, Observer, RetryInterval
from bellwether.probes.reachability.reachability_state import Sighting
from bellwether.probes.reachability.round_scheduler import Rounds
from bellwether.probes.worker_pool import WorkerPool

# The first rounds of so many brokers are spread over one period, so that they do not come all at once ever after.
_SPREAD = 100


class Roster(Protocol):
    """Who the brokers are and where. Raises Transient or Terminal."""

    def seats(self) -> Mapping[int, BrokerAddress]:
        """Every broker that metadata names, fenced ones included where it tells of them."""
        ...


class ReachabilityProbe:
    """The rounds of every broker, on one thread; their questions on others.

    ``refresh`` follows the roster and is called by whoever owns the probe.

    ``kept`` names the brokers that exist for somebody else still (they have a BrokerHealth): a dead broker leaves
    metadata and goes on being asked where it last was; one that is neither in metadata nor kept is forgotten.
    """

    def __init__(
        self,
        source: str,
        asker: Asker,
        settings: Reachability,
        post: Callable[[Signal], None],
        forget: Callable[[int], None],
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._source = source
        self._asker = asker
        self._settings = settings
        self._post = post
        self._forget = forget
        self._clock = clock
        self._observer = observer
        self._log = structlog.get_logger(__name__).bind(vantage=source)
        self._lock = threading.Lock()
        self._watches: dict[int, BrokerWatch] = {}
        self._questions = WorkerPool(clock)
        self._haste = RetryInterval()
        self._rounds = Rounds(self._questions, clock)
        self._unread = ""
        self._behind = False

    def configure(self, asker: Asker, settings: Reachability) -> None:
        """Ask in another way, or under other thresholds, from the next round on."""
        self._asker, self._settings = asker, settings

    def refresh(self, roster: Roster, kept: frozenset[int] | None = None) -> None:
        """Start watching who is new and stop watching who is gone. ``kept`` ``None`` (not known) forgets nobody."""
        try:
            seats = roster.seats()
        except (Transient, Terminal) as error:
            if not self._unread:
                self._log.warning("the brokers cannot be listed; going on with those already known", error=str(error))
            self._unread = str(error)
            return
        if self._unread:
            self._log.info("the brokers can be listed again", brokers=sorted(seats))
            self._unread = ""
        self._tell_behind()
        step = self._settings.period_seconds / max(len(seats), _SPREAD)
        with self._lock:
            for number, (broker, seat) in enumerate(seats.items()):
                known = self._watches.get(broker)
                if known is None:
                    self._watches[broker] = self._watch(broker, seat, number * step)
                else:
                    known.move(seat)
            gone = set() if kept is None else set(self._watches) - set(seats) - kept
        for broker in sorted(gone):
            self._drop(broker)

    def repeat(self) -> None:
        """Tell every present word again: nobody knows what the voice before this one had said."""
        with self._lock:
            for watch in self._watches.values():
                watch.repeat()

    def sightings(self) -> Mapping[int, tuple[str, Sighting]]:
        """What is known now of every broker: the external address, and the sighting."""
        with self._lock:
            return {b: (w.external, w.sighting) for b, w in sorted(self._watches.items())}

    def alive(self) -> bool:
        """Whether every broker is being asked; a prober that measures nothing must not look fresh."""
        longest = 3 * self._settings.period_seconds + self._settings.timeout_seconds
        now = self._clock.monotonic()
        with self._lock:
            return all(now - watch.beat <= longest for watch in self._watches.values())

    def stop(self, timeout_seconds: float = 1.0) -> None:
        """Stop watching; entries stay, and are stale once the Lease is."""
        with self._lock:
            watches = list(self._watches.values())
            self._watches = {}
        for watch in watches:
            watch.stop()
        self._rounds.stop(timeout_seconds)

    def _tell_behind(self) -> None:
        """Say it once when rounds are left out, and once when none is any more."""
        with self._lock:
            behind = [watch.broker for watch in self._watches.values() if watch.fell_behind()]
        if behind and not self._behind:
            remedy = "raise its CPU limit, or periodSeconds"
            self._log.warning("this process cannot ask as often as it should", brokers=len(behind), remedy=remedy)
        elif self._behind and not behind:
            self._log.info("this process asks as often as it should again")
        self._behind = bool(behind)

    def _watch(self, broker: int, seat: BrokerAddress, delay_seconds: float) -> BrokerWatch:
        self._log.info("watching a broker", broker=broker, internal=seat.internal or None)
        watch = BrokerWatch(
            broker,
            self._source,
            seat,
            lambda: self._asker,
            lambda: self._settings,
            self._post,
            self._clock,
            self._observer,
            self._questions,
            lambda: self._rounds.late_seconds,
            self._haste,
        )
        self._rounds.add(watch, delay_seconds)
        return watch

    def _drop(self, broker: int) -> None:
        with self._lock:
            watch = self._watches.pop(broker)
        watch.stop()
        self._log.info("the broker is gone; its entry is taken away", broker=broker)
        self._forget(broker)
