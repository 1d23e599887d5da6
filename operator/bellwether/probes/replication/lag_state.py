"""Replication lag state of one broker, updated round by round.

In: looks (what one round showed of the broker, blame included) and thresholds. Out: a ``Signal`` with a message for a
person, and whether it is news. Called by ``replication_probe``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from bellwether.core.settings.detection import ReplicationLag
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.probes.replication.lag_attribution import LagMeasurement
from bellwether.probes.result_window import Streak, apart, signal_of, times

# A lag alone is news at most this often, and only when it has more than doubled or halved above the threshold.
LAG_NEWS_SECONDS = 10.0
_LAG_NEWS_RATIO = 2.0
# What a broker that comes back has to catch up outside the ISR is not held against it for so long: as long as a
# restarted broker is given to become reachable again.
RETURN_SECONDS = 180.0
_NAMED_BROKERS = 5
# Two brokers have to lag behind each other alone, in one round, for so many rounds: more than chance explains.
_LINK_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Lags:
    """One broker's replication up to now. ``returned`` is when it came back from silence, monotonic seconds."""

    streak: Streak = field(default_factory=Streak)
    last: LagMeasurement = field(default_factory=LagMeasurement)
    kind: str = ""
    """The class of what is being seen, without figures, once seen often enough to be reported."""
    kind_seen: tuple[str, int] = ("", 0)
    broken_link_to: int | None = None
    """The broker that it and this one do not reach, once that, or its end, is seen often enough to be reported."""
    link_seen: tuple[int | None, int] = (None, 0)
    troubles: int = 0
    returned: float | None = None

    def after(self, measurement: LagMeasurement, settings: ReplicationLag, now: datetime, at: float) -> Lags:
        """What is known after one more round, made ``at`` this monotonic time."""
        if measurement.problem:
            return self._troubled(measurement, settings, now)
        # Once it is back in every ISR it has returned. Until then going away again begins no new grace.
        returned = self.returned if self.returned is not None else at if self.troubles else None
        if not measurement.outside:
            returned = None
        streak = self.streak.seen(not measurement.blamed, now, settings)
        kind = _kind(measurement)
        seen = (kind, self.kind_seen[1] + 1 if kind == self.kind_seen[0] else 1)
        turned = streak.reading is not self.streak.reading
        settled = kind if turned or seen[1] >= max(1, settings.failure_threshold) else self.kind
        other = measurement.broken_link_to
        link_seen = (other, self.link_seen[1] + 1 if other == self.link_seen[0] else 1)
        link = other if link_seen[1] >= _LINK_ROUNDS else self.broken_link_to
        return Lags(streak, measurement, settled, seen, link, link_seen, returned=returned)

    def returning(self, at: float) -> bool:
        """Whether it has come back so lately that what it has to catch up is not held against it."""
        if self.returned is None:
            return self.troubles > 0
        return at - self.returned <= RETURN_SECONDS

    def signal(self, broker: int, source: str) -> Signal | None:
        """The signal to report; ``None`` while the broker has not been judged."""
        known = self.streak.reading is not Reading.UNKNOWN and self.last.followed
        value = round(self.last.worst_seconds, 1) if known else None
        evidence = {"message": self.message(), "value": value, "broken_link_to": self.broken_link_to if known else None}
        return signal_of(self.streak, broker, SignalType.REPLICATION_LAG, source, **evidence)

    def differs(self, posted: Lags | None, seconds_since: float, settings: ReplicationLag) -> bool:
        """Whether this differs enough from ``posted``, which was posted so many seconds ago."""
        if posted is None or (self.streak.reading, self.kind) != (posted.streak.reading, posted.kind):
            return True
        if self.broken_link_to != posted.broken_link_to:
            return True
        if seconds_since < LAG_NEWS_SECONDS:
            return False
        floor = float(settings.threshold_seconds)
        return apart(self.last.worst_seconds, posted.last.worst_seconds, floor, _LAG_NEWS_RATIO)

    def message(self) -> str:
        """One sentence for a person, with figures as they are now."""
        reading = self.streak.reading
        if reading is Reading.UNKNOWN and not self.last.problem:
            return f"measured again{times(self.streak.successes)}"
        if reading is Reading.FAILING and not self.last.lagging:
            return f"keeps up again{times(self.streak.successes)}"
        return sentence(self.last)

    def _troubled(self, measurement: LagMeasurement, settings: ReplicationLag, now: datetime) -> Lags:
        """Without an answer the lag is unknown; if that lasts, the former reading is dropped."""
        troubles = self.troubles + 1
        if troubles < max(1, settings.failure_threshold):
            return replace(self, troubles=troubles)
        kind = "unmeasured"
        return Lags(
            self.streak.lost(now), measurement, kind, (kind, troubles), troubles=troubles, returned=self.returned
        )


def sentence(measurement: LagMeasurement) -> str:
    """One measurement as a sentence."""
    if measurement.problem:
        return f"not measured: {measurement.problem}"
    if measurement.lagging:
        said = _behind(measurement) if measurement.blamed else f"{_behind(measurement)}; {_excuse(measurement)}"
    elif measurement.returning:
        said = f"is back and catches up on {_partitions(measurement.returning)}, none of them in the ISR"
    else:
        said = f"keeps up on {_partitions(measurement.followed)}" if measurement.followed else "follows no partition"
    if measurement.trailed_by:
        said += f"; brokers {_some(measurement.trailed_by)} lag on partitions that it leads: it serves them slowly"
    return said


def _kind(measurement: LagMeasurement) -> str:
    """What is seen, without figures. Who trails whom is part of it, how far is not."""
    if measurement.blamed:
        said = "in the ISR" if measurement.in_isr else "out of the ISR"
    elif measurement.slow_leaders:
        said = f"slow leaders {_some(measurement.slow_leaders)}"
    elif measurement.lagging:
        said = f"behind {_some(measurement.behind)}"
    else:
        said = ""
    return f"{said} | trailed by {_some(measurement.trailed_by)}" if measurement.trailed_by else said


def _behind(measurement: LagMeasurement) -> str:
    held = f"{measurement.in_isr} in the ISR, delaying acks=all" if measurement.in_isr else "none of them in the ISR"
    leaders = "leader" if len(measurement.behind) == 1 else "leaders"
    first, *others = (str(name) for name in measurement.worst)
    worst = f"{first} worst, then {' and '.join(others)}" if others else f"{first} worst"
    figures = f"behind by {measurement.worst_seconds:.0f} s on {_partitions(measurement.lagging)} ({held})"
    return f"{figures}, {worst}, {leaders} {_some(measurement.behind)}"


def _excuse(measurement: LagMeasurement) -> str:
    if (other := measurement.broken_link_to) is not None:
        return f"broker {other} lags behind this one alone, too: the two do not reach each other"
    if measurement.slow_leaders:
        slow = "that leader" if len(measurement.slow_leaders) == 1 else "these leaders"
        return f"not blamed: other brokers lag behind {slow}, too ({_some(measurement.slow_leaders)})"
    return "not blamed: it keeps up with its other leaders: check the network between the two"


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"


def _some(brokers: Sequence[int]) -> str:
    rest = f" and {len(brokers) - _NAMED_BROKERS} more" if len(brokers) > _NAMED_BROKERS else ""
    return ", ".join(str(broker) for broker in brokers[:_NAMED_BROKERS]) + rest
