"""Record Kubernetes Events for ``kubectl describe`` and ``kubectl get events``, bounded while conditions flap.

In: the object that an event is about, a reason and a message for a person. Out: an Event for the first, and a series on
it (count, last time) for the same words within ten minutes; where one reason goes on to be told of one object in ever
new words, a series for all of these, with the newest words. Never more than so many requests a minute for all objects
of one policy. Events expire and may be lost; nothing depends on them. Called by ``controllers``.
"""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass

import structlog

from bellwether.adapters.kubernetes.api_client import EVENTS, KubernetesClient, NotFound, Object
from bellwether.adapters.kubernetes.leases import micro_time
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient

PER_MINUTE = 30
"""Requests for the events of one policy in a minute, its brokers' included."""

SERIES_SECONDS = 15.0
"""How often the series of one event is written, however often it recurs."""

DISTINCT = 5
"""So many events of one reason, in different words, stand side by side; the next ones are one series."""

_NOTE_LENGTH = 1024
_Key = tuple[str, str, bool, str]

log = structlog.get_logger(__name__)


@dataclass
class _Series:
    """One event as it stands: its name, how often it was told, when last, and when that was last written."""

    namespace: str
    name: str
    whose: str
    count: int
    told: float
    written: float
    note: str
    unwritten: bool = False


@dataclass
class _Budget:
    """What one policy may still spend, and how much it could not say since it last could."""

    left: float
    at: float
    dropped: int = 0


class EventWriter:
    """Posts Events. ``instance`` names this process (the pod); what recurs within ``quiet_seconds`` is a series.

    Without ``again`` the very same words are told once in that time.
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
        """Tell of an object; True when it was written, not told lately, over the budget or refused.

        ``again`` counts it even if the same words were told lately: what happens twice is told twice. ``budget`` names
        whose budget it is, by default the object's own.
        """
        metadata, now = about["metadata"], self._clock.monotonic()
        uid, note = str(metadata.get("uid") or f"{metadata['namespace']}/{metadata['name']}"), message[:_NOTE_LENGTH]
        whose = budget or uid
        with self._lock:
            self._series = {k: one for k, one in self._series.items() if now - one.told < self._quiet}
            key: _Key = (uid, reason, warning, note)
            if key not in self._series and sum(k[:3] == key[:3] for k in self._series) >= DISTINCT:
                key = (uid, reason, warning, "")
            standing = self._series.get(key)
            if standing is not None:
                if note == standing.note and not again:
                    return False
                standing.count, standing.told, standing.note, standing.unwritten = standing.count + 1, now, note, True
            elif not self._afford(whose, now):
                return False
        if standing is None:
            return self._create(key, about, whose, note, now)
        return self._count(key, standing, now)

    def flush(self) -> None:
        """Write the series that recurred too soon after they were written last. Called now and then."""
        now = self._clock.monotonic()
        with self._lock:
            waiting = [(key, one) for key, one in self._series.items() if one.unwritten]
        for key, one in waiting:
            self._count(key, one, now)

    def _afford(self, whose: str, now: float) -> bool:
        """Whether one more request is within the budget, which fills up evenly."""
        budget = self._budgets.setdefault(whose, _Budget(self._per_minute, now))
        budget.left = min(self._per_minute, budget.left + (now - budget.at) * self._per_minute / 60)
        budget.at = now
        if budget.left < 1:
            if not budget.dropped:
                log.warning("too many events; the log goes on, events are left out", whose=whose)
            budget.dropped += 1
            return False
        if budget.dropped:
            log.info("events are posted again", whose=whose, left_out=budget.dropped)
            budget.dropped = 0
        budget.left -= 1
        return True

    def _create(self, key: _Key, about: Object, whose: str, note: str, now: float) -> bool:
        metadata, (_, reason, warning, _) = about["metadata"], key
        name, namespace = f"{metadata['name'][:200]}.{uuid.uuid4().hex[:16]}", str(metadata["namespace"])
        with self._lock:
            self._series[key] = _Series(namespace, name, whose, 1, now, now, note)
        event: Object = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": metadata["namespace"]},
            "eventTime": micro_time(self._clock.now()),
            "reportingController": "bellwether.dev/operator",
            "reportingInstance": self._instance[:128],
            "action": "Report",
            "reason": reason[:128],
            "note": note,
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
            log.warning("an event could not be posted", reason=reason, why=str(error))
            with self._lock:
                self._series.pop(key, None)
            return False
        return True

    def _count(self, key: _Key, standing: _Series, now: float) -> bool:
        """Write the series on the event that stands; one that has expired is told anew the next time."""
        with self._lock:
            if now - standing.written < SERIES_SECONDS or not self._afford(standing.whose, now):
                return False
        last = micro_time(self._clock.now())
        patch = {"note": standing.note, "series": {"count": standing.count, "lastObservedTime": last}}
        try:
            self._api.merge(EVENTS, standing.namespace, standing.name, patch)
        except (Transient, Terminal) as error:
            if not isinstance(error, NotFound):
                log.warning("an event could not be posted", reason=key[1], why=str(error))
            with self._lock:
                self._series.pop(key, None)
            return False
        with self._lock:
            standing.written, standing.unwritten = now, False
        return True
