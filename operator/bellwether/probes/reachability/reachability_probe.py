"""Reachability probe: external reachability of every broker of one cluster, as seen from one vantage.

In: who the brokers are (a roster, read now and then) and how to ask one. Out: signals, posted on news. Called by
``bellwether probe reachability``. A roster that cannot be read changes nothing: brokers go on being asked where they
were last known to be.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import structlog

from bellwether.core.model.cluster import Broker
from bellwether.core.settings.detection import Reachability
from bellwether.core.signals import Signal
from bellwether.kafka_connection import join_address
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError, Terminal, Transient
from bellwether.probes.reachability.asked_round import SlowAnswers
from bellwether.probes.reachability.broker_watch import BrokerAddress, BrokerWatch, ListenerClient, RetryInterval
from bellwether.probes.reachability.reachability_state import ReachabilityState
from bellwether.probes.reachability.round_scheduler import Rounds, WorkerPool
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics

Listing = Callable[[], Mapping[int, Broker]]


class TwoSides:
    """Lists the brokers through the internal listener, the external one, or both: a vantage may lack either path."""

    def __init__(self, internal: Listing | None, external: Listing | None) -> None:
        self._sides = {"internal": internal, "external": external}
        self._failing: set[str] = set()
        self._log = structlog.get_logger(__name__)

    def targets(self) -> Mapping[int, BrokerAddress]:
        """Every broker that either side lists. Raises the last side's error if none could be listed."""
        found: dict[str, Mapping[int, Broker]] = {}
        failed: dict[str, BellwetherError] = {}
        for side, listing in self._sides.items():
            if listing is None:
                continue
            try:
                found[side] = listing()
            except (Transient, Terminal) as error:
                failed[side] = error
        if not found:
            no_address = Terminal("no bootstrap address to list the brokers by: set kafka.bootstrapServers")
            raise [no_address, *failed.values()][-1]
        for side in failed.keys() - self._failing:
            self._log.warning("broker_list_failed", side=side, error=str(failed[side]))
        self._failing = set(failed)
        inside, outside = found.get("internal", {}), found.get("external", {})
        return {b: _seen_by(inside.get(b), outside.get(b)) for b in sorted({*inside, *outside})}


def _seen_by(inside: Broker | None, outside: Broker | None) -> BrokerAddress:
    fenced = any(broker.fenced for broker in (inside, outside) if broker is not None)
    return BrokerAddress(_address(inside), _address(outside), fenced)


def _address(broker: Broker | None) -> str:
    return join_address(broker.host, broker.port) if broker is not None and broker.host and broker.port > 0 else ""


# The first rounds of so many brokers are spread over one period, so that they do not come all at once ever after.
_SPREAD = 100


class ReachabilityProbe:
    """The rounds of every broker, on one thread; their questions on others.

    ``refresh`` follows the broker list and is called by the owner of the probe.

    ``kept`` names the brokers that still have a BrokerHealth: a dead broker leaves
    metadata and goes on being asked where it last was; one that is neither in metadata nor kept is forgotten.
    """

    def __init__(
        self,
        source: str,
        client: ListenerClient,
        settings: Reachability,
        post: Callable[[Signal], None],
        forget: Callable[[int], None],
        clock: Clock,
        metrics: ProbeMetrics,
    ) -> None:
        self._source = source
        self._client = client
        self._settings = settings
        self._post = post
        self._forget = forget
        self._clock = clock
        self._metrics = metrics
        self._log = structlog.get_logger(__name__).bind(vantage=source)
        self._lock = threading.Lock()
        self._watches: dict[int, BrokerWatch] = {}
        self._questions = WorkerPool(clock)
        self._retry_interval = RetryInterval()
        self._slow_answers = SlowAnswers()
        self._rounds = Rounds(self._questions, clock)
        self._unread = ""
        self._behind = False

    def configure(self, client: ListenerClient, settings: Reachability) -> None:
        """Ask in another way, or under other thresholds, from the next round on."""
        self._client, self._settings = client, settings

    def refresh(self, roster: TwoSides, kept: frozenset[int] | None = None) -> None:
        """Start watching new brokers and stop watching removed ones. ``kept`` ``None`` (unknown) removes none."""
        try:
            targets = roster.targets()
        except (Transient, Terminal) as error:
            if not self._unread:
                self._log.warning("broker_list_failed", error=str(error))
            self._unread = str(error)
            return
        if self._unread:
            self._log.info("broker_list_recovered", brokers=sorted(targets))
            self._unread = ""
        self._log_late_rounds()
        step = self._settings.period_seconds / max(len(targets), _SPREAD)
        with self._lock:
            for number, (broker, target) in enumerate(targets.items()):
                known = self._watches.get(broker)
                if known is None:
                    self._watches[broker] = self._watch(broker, target, number * step)
                else:
                    known.move(target)
            gone = set() if kept is None else set(self._watches) - set(targets) - kept
        for broker in sorted(gone):
            self._drop(broker)

    def repeat(self) -> None:
        """Post every current signal again: what the previous leader reported is unknown."""
        with self._lock:
            for watch in self._watches.values():
                watch.repeat()

    def states(self) -> Mapping[int, Mapping[str, ReachabilityState]]:
        """What is known now of every broker, by listener."""
        with self._lock:
            return {b: w.states for b, w in sorted(self._watches.items())}

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

    def _log_late_rounds(self) -> None:
        """Log once when rounds are skipped, and once when none is skipped any more."""
        with self._lock:
            behind = [watch.broker for watch in self._watches.values() if watch.fell_behind()]
        if behind and not self._behind:
            remedy = "raise its CPU limit"
            self._log.warning("probe_rounds_late", brokers=len(behind), remedy=remedy)
        elif self._behind and not behind:
            self._log.info("probe_rounds_on_time")
        self._behind = bool(behind)

    def _watch(self, broker: int, target: BrokerAddress, delay_seconds: float) -> BrokerWatch:
        self._log.info("broker_added", broker=broker, internal=target.internal or None)
        watch = BrokerWatch(
            broker,
            self._source,
            target,
            lambda: self._client,
            lambda: self._settings,
            self._post,
            self._clock,
            self._metrics,
            self._questions,
            lambda: self._rounds.late_seconds,
            self._retry_interval,
            self._slow_answers,
        )
        self._rounds.add(watch, delay_seconds)
        return watch

    def _drop(self, broker: int) -> None:
        with self._lock:
            watch = self._watches.pop(broker)
        watch.stop()
        self._log.info("broker_removed", broker=broker)
        self._forget(broker)
