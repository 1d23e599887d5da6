"""Receive the alerts of one policy from its Alertmanager, and convert those that the policy names to signals.

In: notifications from ``alert_router``, on the webhook's thread; the policy's settings; the brokers that exist; the
entries of an earlier process. Out: signals, posted on news. Called by ``bellwether probe alertmanager``. Nothing is
kept of an alert that the policy does not name, or of a broker that does not exist, so memory is bounded for any input.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Protocol

import structlog

from bellwether.core.model.broker_identity import Hosts, Named, match
from bellwether.core.settings.detection import Alertmanager
from bellwether.core.signals import Signal
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.probes.alertmanager.alert_payload import Alert, Notification
from bellwether.probes.alertmanager.alert_state import AlertState, carried_on
from bellwether.probes.measuring_thread import MeasuringThread, SignalObserver
from bellwether.probes.plugins.plugin_window import worded

# Limits how often an alternating reading, and a changed message of the same reading, are written.
NEWS_SECONDS = 1.0
WORDS_NEWS_SECONDS = 60.0
_LOOK_SECONDS = 0.25
_RECALL_SECONDS = 2.0
# Skipped names that are logged for one reason: further ones are only counted.
_MOST_SAID = 10
_LONGEST_LABEL = 256

Key = tuple[int, str]


class NotReady(Transient):
    """Nothing can be taken now: the sender should try again."""


class AlertObserver(SignalObserver, Protocol):
    """Receives what arrives, for metrics; implemented in ``telemetry``."""

    def took(self, what: str) -> None:
        """One alert: ``firing``, ``resolved``, or why it was skipped."""
        ...

    def gone(self, broker: int) -> None:
        """The broker exists no longer."""
        ...


class Alerts(MeasuringThread):
    """The alerts. ``recall`` reads the existing entries, each with whether this process wrote it.

    ``leading`` is whether this process reports for the source. ``forget_after_seconds``: an alert that was notified
    so long ago, and neither repeated nor resolved since, is no longer known to fire.
    """

    def __init__(
        self,
        recall: Callable[[], Iterable[tuple[Signal, bool]]],
        leading: Callable[[], bool],
        post: Callable[[Signal], None],
        forget: Callable[[int, str], None],
        clock: Clock,
        observer: AlertObserver,
        *,
        forget_after_seconds: float = 43200.0,
    ) -> None:
        super().__init__("alerts", clock)
        self._recall = recall
        self._leading = leading
        self._post = post
        self._forget = forget
        self._observer = observer
        self._forget_after = forget_after_seconds
        self._log = structlog.get_logger(__name__)
        self._lock = threading.RLock()
        self._settings: Alertmanager | None = None
        self._brokers: Hosts | None = None
        self._firing: dict[Key, AlertState] = {}
        self._posted: dict[Key, tuple[Signal, float]] = {}
        self._recalled = False
        self._said: dict[str, set[str]] = {}
        self._wake = threading.Event()
        self.idle = False
        """Whether the policy names no alerts. False until that is known."""

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """Post what is pending, and stop."""
        self._stop.set()
        self._wake.set()
        super().stop(timeout_seconds)

    def configure(self, settings: Alertmanager | None) -> None:
        """Take these alerts from now on; None takes none. What is known of others is dropped."""
        with self._lock:
            before, self._settings = self._settings, settings
            self.idle = settings is None
            if before is not None and settings is not None and before.matchers != settings.matchers:
                self._drop(list(self._firing))  # of which Kafka cluster they are is no longer known
            self._keep()

    def refresh(self, brokers: Hosts) -> None:
        """These brokers exist, and advertise these hosts."""
        with self._lock:
            gone = sorted((self._brokers or {}).keys() - brokers.keys())
            self._brokers = dict(brokers)
            self._keep()
        for broker in gone:
            self._observer.gone(broker)

    def repeat(self) -> None:
        """Another prober may have reported meanwhile: start from the existing entries, and post everything again."""
        with self._lock:
            self._recalled = False
            self._posted.clear()
        self._wake.set()

    @property
    def unconfigured(self) -> bool:
        """Whether it is unknown which alerts the policy names."""
        return self._settings is None and not self.idle

    def ready(self) -> bool:
        """Whether a notification would be taken."""
        known = self._recalled and self._settings is not None and self._brokers is not None
        return known and self._leading()

    def concerned(self, alert: Alert) -> bool:
        """Whether the policy names this alert and has matchers, and they match: it is about this Kafka cluster."""
        settings = self._settings
        return (
            settings is not None
            and bool(settings.matchers)
            and alert.name in settings.alerts
            and all(alert.labels.get(name) == wanted for name, wanted in settings.matchers)
        )

    def receive(self, found: Notification) -> None:
        """Take one notification. Raises NotReady; nothing is kept then."""
        with self._lock:
            settings, brokers = self._settings, self._brokers
            if settings is None or brokers is None or not self.ready():
                raise NotReady("not reporting for this policy now")
            if found.left_out:
                self._warn("alerts_truncated", "", remedy="set max_alerts: 0 in the webhook_config of Alertmanager")
            # Firing alerts go last: an alert that is sent as both stays firing.
            for alert in sorted(found.alerts, key=lambda a: a.firing):
                key = self._key(alert, settings, brokers)
                if key is not None:
                    self._take(key, alert)
        self._wake.set()

    def _key(self, alert: Alert, settings: Alertmanager, brokers: Hosts) -> Key | None:
        """Which alert of which broker it is; None if it is skipped; the reason is counted and logged once."""
        name = worded(alert.name, 63)
        if alert.name not in settings.alerts:
            self._observer.took("unlisted")
            self._warn("alert_not_listed", name)
            return None
        for matcher, wanted in settings.matchers:
            found = alert.labels.get(matcher)
            if found != wanted:
                self._observer.took("other_cluster")
                value = None if found is None else worded(found, 80)
                self._warn("alert_of_another_cluster", name, label=matcher, value=value, wanted=wanted)
                return None
        labels = {key: value for key, value in alert.labels.items() if len(value) <= _LONGEST_LABEL}
        (matched,) = match([Named.of_labels(labels, settings.broker_label)], brokers).of
        if matched.broker is None:
            reason = worded(matched.problem, 400)
            if matched.kind == "unknown":
                self._observer.took("unknown_broker")
                self._warn("alert_for_unknown_broker", name, reason=reason)
            else:
                self._observer.took("no_broker")
                self._warn("alert_without_broker", name, reason=reason)
            return None
        return matched.broker, alert.name

    def _take(self, key: Key, alert: Alert) -> None:
        self._observer.took("firing" if alert.firing else "resolved")
        now, at = self._clock.now(), self._clock.monotonic()
        known = self._firing.get(key) or AlertState(now)
        if alert.firing:
            self._firing[key] = known.fires(alert.fingerprint, alert.summary, at, now)
        else:
            self._firing[key] = known.resolved(alert.fingerprint, now)

    def _keep(self) -> None:
        """Drop what is of no broker, or of no alert, that is wanted."""
        settings, brokers = self._settings, self._brokers
        self._drop(
            (broker, name)
            for broker, name in list(self._firing)
            if (settings is not None and name not in settings.alerts) or (brokers is not None and broker not in brokers)
        )

    def _drop(self, keys: Iterable[Key]) -> None:
        for key in keys:
            del self._firing[key]
            self._posted.pop(key, None)
            self._forget(*key)

    def _run(self) -> None:
        recall_due = 0.0
        while not self._stop.is_set():
            self._wake.wait(_LOOK_SECONDS)
            self._wake.clear()
            now = self._clock.monotonic()
            self._beat = now
            if not self._leading():
                self._recalled = False  # the current leader may receive alerts that this process does not
            elif not self._recalled and self._settings is not None and now >= recall_due:
                recall_due = now + _RECALL_SECONDS
                self._recover()
            self._post_changes()
        self._post_changes(at_once=True)

    def _recover(self) -> None:
        try:
            entries = list(self._recall())
        except (Transient, Terminal) as error:
            self._warn("signal_entries_not_read", "", error=str(error))
            return
        with self._lock:
            for signal, own in entries:
                key = (signal.broker, signal.source)
                # Own entries are older than own knowledge; an entry of another process carries what that one knew.
                if not own or key not in self._firing:
                    self._firing[key] = carried_on(signal, self._clock.monotonic())
            self._recalled = True
            self._keep()

    def _post_changes(self, at_once: bool = False) -> None:
        with self._lock:
            if not self._recalled:
                return
            now, before = self._clock.monotonic(), self._clock.monotonic() - self._forget_after
            for key, known in self._firing.items():
                self._firing[key] = known.expired(before, self._clock.now())
                signal = self._firing[key].signal(*key)
                posted, posted_at = self._posted.get(key, (None, 0.0))
                if _differs(signal, posted, now - posted_at, at_once):
                    self._posted[key] = signal, now
                    self._observer.judged(signal)
                    self._post(signal)

    def _warn(self, event: str, name: str, **fields: object) -> None:
        """Log it once for each alert, for a limited number of alerts."""
        said = self._said.setdefault(event, set())
        if name not in said and len(said) < _MOST_SAID:
            said.add(name)
            self._log.warning(event, alert=name or None, **fields)


def _differs(signal: Signal, posted: Signal | None, seconds: float, at_once: bool) -> bool:
    if posted is None:
        return True
    if (signal.reading, signal.value) != (posted.reading, posted.value):
        return at_once or seconds >= NEWS_SECONDS
    return signal.message != posted.message and seconds >= WORDS_NEWS_SECONDS
