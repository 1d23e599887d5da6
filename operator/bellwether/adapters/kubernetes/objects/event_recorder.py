"""Record Kubernetes Events for ``kubectl describe`` and ``kubectl get events``, limited while conditions flap.

In: the object that an event is about, a reason and a message. Out: an Event for the first occurrence, and a series
(count, last time) for the same text within ten minutes. If one reason of an object recurs with many different texts,
they become one series with the first text. The number of requests per minute is limited for each policy. Events expire
and can be lost; nothing depends on them. Called by ``controllers``.
"""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass

import structlog

from bellwether.adapters.kubernetes.api_client import EVENTS, KubernetesClient, Object
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.adapters.kubernetes.leases import micro_time
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient

PER_MINUTE = 30
"""Maximum event requests per minute for one policy, including its brokers."""

SERIES_SECONDS = 15.0
"""Minimum seconds between two writes of the series of one event."""

DISTINCT = 5
"""Maximum number of events of one reason with different texts; further ones become one series."""

_NOTE_LENGTH = 1024
_OTHERS = " (counted with others of this reason: the operator's log has each)"
_Key = tuple[str, str, bool, str]

log = structlog.get_logger(__name__)


@dataclass
class _Series:
    """One event: its name, how often it occurred, when last, and when that was last written."""

    namespace: str
    name: str
    whose: str
    count: int
    recorded_at: float
    written: float
    note: str
    unwritten: bool = False


@dataclass
class _Budget:
    """Remaining requests of one policy, and how many events were dropped since the last request."""

    left: float
    at: float
    dropped: int = 0


class EventWriter:
    """Posts Events. ``instance`` names this process (the pod). An event that recurs within ``quiet_seconds`` is a
    series.

    Without ``again`` the same text is recorded once in that time.
    """

    def __init__(
        self,
        api: KubernetesClient,
        clock: Clock,
        instance: str,
        quiet_seconds: float = 600.0,
        per_minute: int = PER_MINUTE,
    ) -> None:
        self._api = api
        self._clock = clock
        self._instance = instance
        self._quiet = quiet_seconds
        self._per_minute = per_minute
        self._lock = threading.Lock()
        self._series: dict[_Key, _Series] = {}
        self._budgets: dict[str, _Budget] = {}

    def post(
        self,
        about: Object,
        reason: str,
        message: str,
        *,
        warning: bool = False,
        again: bool = False,
        budget: str = "",
    ) -> bool:
        """Record an event about an object; False if it was a repetition, over the limit, or rejected.

        ``again`` counts it even if the same text was recorded recently. ``budget`` names the object whose limit
        applies, by default the object itself.
        """
        metadata, now = about["metadata"], self._clock.monotonic()
        uid, note = str(metadata.get("uid") or f"{metadata['namespace']}/{metadata['name']}"), message[:_NOTE_LENGTH]
        whose = budget or uid
        with self._lock:
            self._series = {k: one for k, one in self._series.items() if now - one.recorded_at < self._quiet}
            key: _Key = (uid, reason, warning, note)
            if key not in self._series and sum(k[:3] == key[:3] for k in self._series) >= DISTINCT:
                key = (uid, reason, warning, "")
            standing = self._series.get(key)
            if standing is not None:
                if note == standing.note and not again:
                    return False
                standing.count, standing.recorded_at = standing.count + 1, now
                standing.note, standing.unwritten = note, True
            elif not self._afford(whose, now):
                return False
        if standing is None:
            return self._create(key, about, whose, note, now)
        return self._count(key, standing, now)

    def flush(self) -> None:
        """Write the series that recurred too soon after their last write. Called periodically."""
        now = self._clock.monotonic()
        with self._lock:
            waiting = [(key, one) for key, one in self._series.items() if one.unwritten]
        for key, one in waiting:
            self._count(key, one, now)

    def _afford(self, whose: str, now: float) -> bool:
        """Whether one more request is within the limit, which is refilled continuously."""
        if whose not in self._budgets:
            # After a minute a budget is full again, as a new one is.
            self._budgets = {known: one for known, one in self._budgets.items() if now - one.at < 60}
        budget = self._budgets.setdefault(whose, _Budget(self._per_minute, now))
        budget.left = min(self._per_minute, budget.left + (now - budget.at) * self._per_minute / 60)
        budget.at = now
        if budget.left < 1:
            if not budget.dropped:
                log.warning("events_throttled", budget=whose)
            budget.dropped += 1
            return False
        if budget.dropped:
            log.info("events_resumed", budget=whose, skipped=budget.dropped)
            budget.dropped = 0
        budget.left -= 1
        return True

    def _create(self, key: _Key, about: Object, whose: str, note: str, now: float) -> bool:
        metadata, (_, reason, warning, _) = about["metadata"], key
        name, namespace = f"{metadata['name'][:200]}.{uuid.uuid4().hex[:16]}", str(metadata["namespace"])
        with self._lock:
            self._series[key] = _Series(namespace, name, whose, 1, now, now, note)
        event: Object = {
            "metadata": {"name": name, "namespace": metadata["namespace"]},
            "eventTime": micro_time(self._clock.now()),
            "reportingController": "bellwether.dev/operator",
            "reportingInstance": self._instance[:128],
            "action": "Report",
            "reason": reason[:128],
            "note": note if key[3] else f"{note[: _NOTE_LENGTH - len(_OTHERS)]}{_OTHERS}",
            "type": "Warning" if warning else "Normal",
            "regarding": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                **({"uid": metadata["uid"]} if metadata.get("uid") else {}),
            },
        }
        try:
            self._api.create(EVENTS, metadata["namespace"], event)
        except (Transient, Terminal) as error:
            log.warning("event_not_posted", reason=reason, error=str(error))
            with self._lock:
                self._series.pop(key, None)
            return False
        return True

    def _count(self, key: _Key, standing: _Series, now: float) -> bool:
        """Write the series to its event; one that has expired is created again the next time."""
        with self._lock:
            if now - standing.written < SERIES_SECONDS or not self._afford(standing.whose, now):
                return False
        last = micro_time(self._clock.now())
        # The API server refuses a change of the note.
        patch = {"series": {"count": standing.count, "lastObservedTime": last}}
        try:
            self._api.merge(EVENTS, standing.namespace, standing.name, patch)
        except (Transient, Terminal) as error:
            if not isinstance(error, NotFound):
                log.warning("event_not_posted", reason=key[1], error=str(error))
            with self._lock:
                self._series.pop(key, None)
            return False
        with self._lock:
            standing.written, standing.unwritten = now, False
        return True
