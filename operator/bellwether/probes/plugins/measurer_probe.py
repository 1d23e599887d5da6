"""Plug-in probe: measure every broker of a policy with a plug-in signal type each period, and count the results.

In: a measurer, the brokers and where they listen, the policy's settings. Out: signals, posted on news. Called by
``bellwether probe plugin``. A broker has at most one measurement under way, and all of them together at most
``MOST_AT_ONCE``: a measurer that hangs costs its broker the evidence, and never more threads than that.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from queue import SimpleQueue

import structlog

from bellwether.core.settings.source_settings import Plugin
from bellwether.core.signals import Reading, Signal
from bellwether.foreign_text import quoted
from bellwether.ports.clock import Clock
from bellwether.probes.measuring_thread import MeasuringThread
from bellwether.probes.plugins.measurement_window import MeasurementWindow, Unsound, differs, vetted
from bellwether.probes.plugins.plugin_api import Measurement, Measurer
from bellwether.telemetry.metrics.probe_metrics import PluginMetrics

MOST_AT_ONCE = 32
# Extra time for a call to be scheduled and to report its own timeout.
GRACE_SECONDS = 0.3


class Attempt:
    """One measurement under way, on a thread of its own, which cannot be ended: a call that hangs keeps it.

    ``trouble`` names a failure of the plug-in itself, empty if none.
    """

    def __init__(
        self,
        measurer: Measurer,
        broker: int,
        addresses: Mapping[str, str],
        settings: Plugin,
        done: SimpleQueue[Attempt],
        clock: Clock,
    ) -> None:
        self.broker = broker
        self.result = Measurement(None)
        self.trouble = ""
        self.deadline = clock.monotonic() + settings.timeout_seconds + GRACE_SECONDS
        self._measurer = measurer
        self._addresses = dict(addresses)
        self._settings = settings
        self._done = done
        self._thread = threading.Thread(target=self._run, name=f"measure-{broker}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _run(self) -> None:
        wanted = self._settings
        try:
            result = self._measurer.measure(
                self.broker, self._addresses, dict(wanted.settings), float(wanted.timeout_seconds)
            )
            self.result, self.trouble = vetted(result), ""
        except Unsound as error:
            self.result, self.trouble = Measurement(None, str(error)), "returns nonsense"
        except BaseException as error:  # a measurer that calls sys.exit() must not end its thread in silence
            name = quoted(type(error).__name__, 80)
            self.result, self.trouble = (
                Measurement(None, f"the measurement raised {name}{_text(error)}"),
                f"raises {name}",
            )
        finally:
            self._done.put(self)


def overdue(settings: Plugin) -> Measurement:
    """The result of a call that has not returned in time."""
    return Measurement(None, f"the measurement has not ended within {settings.timeout_seconds} s")


def attempted(
    measurer: Measurer,
    brokers: Mapping[int, Mapping[str, str]],
    settings: Plugin,
    clock: Clock,
    at_once: int = MOST_AT_ONCE,
) -> dict[int, Measurement]:
    """Measure every broker once."""
    found: dict[int, Measurement] = {}
    waiting = sorted(brokers.items())
    for start in range(0, len(waiting), at_once):
        done: SimpleQueue[Attempt] = SimpleQueue()
        begun = [Attempt(measurer, b, addresses, settings, done, clock) for b, addresses in waiting[start:][:at_once]]
        for attempt in begun:
            attempt.start()
        for _ in begun:
            try:
                ended = done.get(timeout=max(0.0, begun[-1].deadline - clock.monotonic()))
            except queue.Empty:
                break
            found[ended.broker] = ended.result
        found |= {attempt.broker: overdue(settings) for attempt in begun if attempt.broker not in found}
    return dict(sorted(found.items()))


def _text(error: BaseException) -> str:
    try:
        text = quoted(str(error), 200)
    except Exception:  # an error whose text is an error
        return ""
    return f": {text}" if text else ""


_LOOK_SECONDS = 0.1
# Maximum period for a broker without a reading yet: a restart must not cost hours of evidence.
_FIRST_PERIOD_SECONDS = 10.0
# Failures of the plug-in itself are logged at this interval, at most this many different ones.
_LOG_AGAIN_SECONDS = 3600.0
_MOST_TROUBLES = 20

Addresses = Mapping[str, str]


@dataclass(slots=True)
class _Target:
    """One broker. ``overdue``: its attempt has been judged as hanging, and has not returned yet."""

    addresses: Addresses
    due: float
    evidence: float
    attempt: Attempt | None = None
    overdue: bool = False
    tally: MeasurementWindow = field(default_factory=MeasurementWindow)
    posted: Signal | None = None
    posted_at: float = 0.0


class MeasurerProbe(MeasuringThread):
    """The measurements of one measurer. ``post`` is called with news, on the probe's own thread."""

    def __init__(
        self,
        measurer: Measurer,
        source: str,
        settings: Plugin,
        post: Callable[[Signal], None],
        forget: Callable[[int], None],
        clock: Clock,
        metrics: PluginMetrics,
    ) -> None:
        super().__init__("plugged", clock)
        self._measurer = measurer
        self._source = source
        self._settings = settings
        self._post = post
        self._forget = forget
        self._metrics = metrics
        self._log = structlog.get_logger(__name__).bind(signal_type=settings.type)
        self._lock = threading.RLock()
        self._targets: dict[int, _Target] = {}
        self._under_way: set[Attempt] = set()
        self._done: SimpleQueue[Attempt] = SimpleQueue()
        self._troubles: dict[str, float] = {}

    def configure(self, settings: Plugin) -> None:
        """Go on under other settings, from the next measurement on."""
        self._settings = settings

    def refresh(self, addresses: Mapping[int, Addresses]) -> None:
        """Measure exactly these brokers from now on; the entry of one that is left out is taken away."""
        now = self._clock.monotonic()
        with self._lock:
            for broker, known in addresses.items():
                if broker in self._targets:
                    self._targets[broker].addresses = known
                else:
                    self._targets[broker] = _Target(known, due=now, evidence=now)
            gone = sorted(set(self._targets) - set(addresses))
        self._drop(gone)
        for broker in gone:
            self._forget(broker)

    def rest(self) -> None:
        """Measure no broker until the next ``refresh``; entries stay, and become stale with the Lease."""
        self._drop(list(self._targets))

    def repeat(self) -> None:
        """Post every current signal again, changed or not: the next measurement may be far away."""
        with self._lock:
            for broker, target in self._targets.items():
                target.posted = None
                self._post_changes(broker, target)

    def alive(self) -> bool:
        """Whether it measures: not when every call that it may make at once hangs."""
        with self._lock:
            now = self._clock.monotonic()
            stuck = sum(1 for attempt in self._under_way if now > attempt.deadline)
        return super().alive() and stuck < MOST_AT_ONCE

    def _drop(self, brokers: list[int]) -> None:
        with self._lock:
            for broker in brokers:
                if self._targets.pop(broker, None) is not None:
                    self._metrics.gone(broker)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._beat = self._clock.monotonic()
            ended = self._ended()
            with self._lock:
                for attempt in ended:
                    self._under_way.discard(attempt)
                    self._end(attempt)
                self._give_up(self._clock.monotonic())
                self._begin(self._clock.monotonic())

    def _ended(self) -> list[Attempt]:
        """What has come back by now; waits a moment for the first."""
        found: list[Attempt] = []
        try:
            found.append(self._done.get(timeout=_LOOK_SECONDS))
            while True:
                found.append(self._done.get_nowait())
        except queue.Empty:
            return found

    def _begin(self, now: float) -> None:
        due = sorted((s.due, b) for b, s in self._targets.items() if s.due <= now and s.attempt is None)
        for _, broker in due[: MOST_AT_ONCE - len(self._under_way)]:
            target = self._targets[broker]
            period: float = self._settings.period_seconds
            if target.tally.streak.since is None:
                period = min(period, _FIRST_PERIOD_SECONDS)
            target.due = max(target.due + period, now)
            attempt = Attempt(self._measurer, broker, target.addresses, self._settings, self._done, self._clock)
            target.attempt, target.overdue = attempt, False
            self._under_way.add(attempt)
            attempt.start()

    def _end(self, attempt: Attempt) -> None:
        target = self._targets.get(attempt.broker)
        if target is None or target.attempt is not attempt:
            return  # its broker has gone meanwhile
        late, target.attempt, target.overdue = target.overdue, None, False
        if not late:
            self._take(attempt.broker, target, attempt.result, attempt.trouble)

    def _give_up(self, now: float) -> None:
        """A call that takes too long counts as no evidence, once each period for as long as it goes on."""
        for broker, target in self._targets.items():
            if (
                target.attempt is not None
                and now > target.attempt.deadline
                and (not target.overdue or now >= target.due)
            ):
                if target.overdue:
                    target.due = max(target.due + self._settings.period_seconds, now)
                target.overdue = True
                self._take(broker, target, overdue(self._settings), "hangs")
            elif now - target.evidence > self._settings.stale_after_seconds:
                self._expire(broker, target)

    def _take(self, broker: int, target: _Target, seen: Measurement, trouble: str) -> None:
        if trouble:
            self._log_failure(broker, trouble, seen.message)
        if seen.ok is not None:
            target.evidence = self._clock.monotonic()
        self._metrics.measurements.labels(broker, _result(seen, trouble)).inc()
        target.tally = target.tally.after(seen, self._settings, self._clock.now())
        self._post_changes(broker, target)

    def _expire(self, broker: int, target: _Target) -> None:
        """One Lease covers all brokers: an entry without recent measurements must not appear fresh."""
        if target.tally.streak.reading is not Reading.UNKNOWN:
            why = f"no evidence for more than {self._settings.stale_after_seconds} s"
            target.tally = target.tally.lost(why, self._clock.now())
            self._post_changes(broker, target)

    def _post_changes(self, broker: int, target: _Target) -> None:
        signal = target.tally.signal(broker, self._settings.type, self._source)
        if signal is None or self._stop.is_set():
            return
        self._metrics.judged(signal)
        now = self._clock.monotonic()
        if differs(signal, target.posted, now - target.posted_at):
            target.posted, target.posted_at = signal, now
            self._post(signal)

    def _log_failure(self, broker: int, trouble: str, message: str) -> None:
        now = self._clock.monotonic()
        logged_at = self._troubles.get(trouble)
        if now - logged_at < _LOG_AGAIN_SECONDS if logged_at is not None else len(self._troubles) >= _MOST_TROUBLES:
            return
        self._troubles[trouble] = now
        self._log.warning("plugin_failed", broker=broker, failure=trouble, error=message)


def _result(seen: Measurement, trouble: str) -> str:
    if trouble:
        return "timeout" if trouble == "hangs" else "error"
    return "unknown" if seen.ok is None else "passing" if seen.ok else "failing"
