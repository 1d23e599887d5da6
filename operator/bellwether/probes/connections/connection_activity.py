"""Connection activity of external clients on a broker's listener, updated look by look.

In: looks at the kernel's socket table, and thresholds. Out: a ``Signal`` with a message for a person, and whether it is
news. Called by ``self_reachability``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from bellwether.core.settings.detection import SelfReachability
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.probes.result_window import Streak, signal_of

_DEAF = "not listening"
_NEW = "it has not been watched for long enough"


@dataclass(frozen=True, slots=True)
class ConnectionSample:
    """One sample of the connections on the external listener's port.

    ``last_received_seconds``: seconds since an external client last sent data, ``None`` without clients. ``blind``: why
    inactivity cannot be detected, so that only activity counts. ``problem``: why the socket table cannot be read.
    """

    listening: bool = True
    connections: int = 0
    last_received_seconds: float | None = None
    blind: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ConnectionActivity:
    """One listener's visitors up to now. Times are of the monotonic clock."""

    streak: Streak = field(default_factory=Streak)
    last: ConnectionSample = field(default_factory=ConnectionSample)
    since: float | None = None
    """Since when the port has been found listening."""
    last_received_at: float | None = None
    silent_seconds: float = 0.0
    trouble: str = ""
    """Why the state is unknown, once that has lasted long enough to be reported."""
    troubles: int = 0

    def after(
        self, sample: ConnectionSample, settings: SelfReachability, now: datetime, at: float
    ) -> ConnectionActivity:
        """What is known after one more look, made at ``at``."""
        if sample.problem:
            return self._troubled(replace(self, last=sample), sample.problem, settings, now)
        if not sample.listening:
            return self._troubled(replace(self, last=sample, since=None, last_received_at=None), _DEAF, settings, now)
        # Where a client may have been missed, inactivity counts from now on.
        since = at if self.since is None or sample.blind else self.since
        last_received = [t for t in (self.last_received_at, _time(sample, at)) if t is not None]
        last_received_at = max(last_received, default=None)
        silent = at - max([since, *last_received])
        known = replace(self, last=sample, since=since, last_received_at=last_received_at, silent_seconds=silent)
        idle_after = settings.idle_after_seconds
        if last_received_at is not None and at - last_received_at <= idle_after:
            return replace(known, silent_seconds=at - last_received_at)._counted(True, settings, now)
        if sample.blind:
            return self._troubled(known, sample.blind, settings, now)
        if silent <= idle_after:
            return replace(known, trouble=_NEW if self.trouble else "", troubles=0)
        return known._counted(False, settings, now)

    def signal(self, broker: int, source: str, port: int, settings: SelfReachability) -> Signal | None:
        """The signal to report; ``None`` while nothing has been judged."""
        value = self.silent_seconds if self.streak.reading is not Reading.UNKNOWN else None
        text = self.message(port, settings)
        return signal_of(self.streak, broker, SignalType.SELF_REACHABILITY, source, message=text, value=value)

    def news(self) -> tuple[str, ...]:
        """What a report is made for: while this stays the same, nothing is written."""
        return (self.streak.reading, self.trouble)

    def message(self, port: int, settings: SelfReachability) -> str:
        """One sentence for a person, with figures as they are now."""
        if self.trouble == _DEAF:
            return f"nothing listens on port {port}: the broker is not up, or --port is not its external listener's"
        if self.trouble:
            return f"connections on port {port} are unknown: {self.trouble}"
        if self.silent_seconds > settings.idle_after_seconds:
            count = self.last.connections
            connected = f"; {count} {'is' if count == 1 else 'are'} connected and silent" if count else ""
            for_long = f"{self.silent_seconds:.0f} s"
            return f"no external client sent data on port {port} for {for_long}{connected}"
        return f"an external client sent data on port {port} {self.silent_seconds:.0f} s ago"

    def _counted(self, ok: bool, settings: SelfReachability, now: datetime) -> ConnectionActivity:
        streak = self.streak.seen(ok, now, settings)
        trouble = self.trouble if streak.reading is Reading.UNKNOWN else ""
        return replace(self, streak=streak, trouble=trouble, troubles=0)

    def _troubled(
        self, known: ConnectionActivity, trouble: str, settings: SelfReachability, now: datetime
    ) -> ConnectionActivity:
        """Not to know is no evidence; when it lasts, what was known before is no longer known, either."""
        troubles = known.troubles + 1
        if troubles < max(1, settings.failure_threshold):
            return replace(known, troubles=troubles)
        return replace(known, streak=self.streak.lost(now), trouble=trouble, troubles=troubles)


def _time(sample: ConnectionSample, at: float) -> float | None:
    return None if sample.last_received_seconds is None else at - sample.last_received_seconds
