"""Count a plug-in's measurements of one broker against its thresholds, bounded for any result.

In: what ``Measurer.measure`` returned, and thresholds. Out: a ``Signal``, and whether it is news. Called by
``measurer_probe``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from datetime import datetime

from bellwether.core.settings.source_settings import Plugin
from bellwether.core.signals import Reading, Signal
from bellwether.foreign_text import quoted
from bellwether.probes.plugins.plugin_api import Measurement
from bellwether.probes.result_window import Streak, signal_of

MESSAGE_LIMIT = 512
# A changed message of the same reading is posted at most this often, one with only changed figures more rarely: the
# plug-in must not determine the rate of API writes.
WORDS_NEWS_SECONDS = 60.0
FIGURES_NEWS_SECONDS = 3600.0
_FIGURE = re.compile(r"[0-9]+([.,:][0-9]+)*")


class Unsound(ValueError):
    """A measurer returned something that is no measurement."""


def vetted(result: object) -> Measurement:
    """What a measurer returned, if it is a measurement, with its message bounded. Raises Unsound."""
    if not isinstance(result, Measurement):
        raise Unsound(f"measure() returned {type(result).__name__}, not a Measurement")
    ok, message, value = result.ok, result.message, result.value
    if ok is not None and not isinstance(ok, bool):
        raise Unsound(f"Measurement.ok is of type {type(ok).__name__}, not True, False or None")
    if not isinstance(message, str):
        raise Unsound(f"Measurement.message is of type {type(message).__name__}, not text")
    return Measurement(ok, quoted(message, MESSAGE_LIMIT), None if value is None else _number(value))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unsound(f"Measurement.value is of type {type(value).__name__}, not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise Unsound("Measurement.value is not a finite number")
    return number


@dataclass(frozen=True, slots=True)
class MeasurementWindow:
    """One broker's measurements up to now. ``said`` is the last one that agrees with the reading."""

    streak: Streak = field(default_factory=Streak)
    said: Measurement = field(default_factory=lambda: Measurement(None))
    nothing: int = 0

    def after(self, seen: Measurement, settings: Plugin, now: datetime) -> MeasurementWindow:
        """The tally after one more measurement."""
        if seen.ok is None:
            return self._unsaid(seen, settings, now)
        streak = self.streak.seen(seen.ok, now, settings)
        agrees = streak.reading is (Reading.PASSING if seen.ok else Reading.FAILING)
        return MeasurementWindow(streak, seen if agrees else self.said)

    def lost(self, why: str, now: datetime) -> MeasurementWindow:
        """Nothing is known any more."""
        return MeasurementWindow(self.streak.lost(now), Measurement(None, why))

    def signal(self, broker: int, type_: str, source: str) -> Signal | None:
        """The signal to report; ``None`` while the broker has not been judged."""
        return signal_of(self.streak, broker, type_, source, message=self.said.message, value=self.said.value)

    def _unsaid(self, seen: Measurement, settings: Plugin, now: datetime) -> MeasurementWindow:
        """No evidence changes nothing; when it lasts, what was known before is no longer known, either."""
        nothing = self.nothing + 1
        if nothing < max(1, settings.failure_threshold):
            return replace(self, nothing=nothing)
        return replace(self.lost(f"no evidence: {seen.message or 'the plug-in gives no reason'}", now), nothing=nothing)


def differs(now: Signal, posted: Signal | None, seconds_since: float) -> bool:
    """Whether a signal differs enough from ``posted``, which was posted so many seconds ago."""
    if posted is None or now.reading is not posted.reading:
        return True
    if now.message == posted.message:
        return False
    same_words = _FIGURE.sub("#", now.message) == _FIGURE.sub("#", posted.message)
    return seconds_since >= (FIGURES_NEWS_SECONDS if same_words else WORDS_NEWS_SECONDS)
