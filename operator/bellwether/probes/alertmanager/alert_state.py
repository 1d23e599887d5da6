"""State of one alert on one broker: which instances are firing, and the resulting signal. Pure, and bounded.

In: instances as they fire and are resolved, and the signal of an earlier process. Out: a ``Signal``. Called by
``alert_receiver``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from bellwether.core.signals import Reading, Signal, SignalType

# More instances than that of one alert on one broker add nothing to what is known.
INSTANCE_LIMIT = 100


@dataclass(frozen=True, slots=True)
class AlertState:
    """One alert on one broker. ``received``: monotonic time of the last notification of each firing instance.

    ``carried`` counts the instances that an earlier process had seen fire, ``over`` those of them that were resolved
    since: which they are is known only after the next notification. ``carried_at`` is when they were taken over.
    """

    since: datetime
    reading: Reading = Reading.PASSING
    received: dict[str, float] = field(default_factory=dict)
    carried: int = 0
    carried_at: float = 0.0
    over: frozenset[str] = frozenset()
    text: str = ""

    @property
    def count(self) -> int:
        """How many instances fire, as far as is known."""
        return max(len(self.received), self.carried - len(self.over))

    def fires(self, fingerprint: str, text: str, at: float, now: datetime) -> AlertState:
        """An instance fires, again or still."""
        received = self.received
        if fingerprint in received or len(received) < INSTANCE_LIMIT:
            received = {**received, fingerprint: at}
        updated = replace(self, received=received, over=self.over - {fingerprint}, text=text or self.text)
        return updated._turned(Reading.FAILING, now)

    def resolved(self, fingerprint: str, now: datetime) -> AlertState:
        """An instance is over; the last one's end is the alert's."""
        received = {known: at for known, at in self.received.items() if known != fingerprint}
        over = self.over | {fingerprint} if len(self.over) < self.carried else self.over
        left = replace(self, received=received, over=over)
        return left if left.count else left._ended(Reading.PASSING, now)

    def expired(self, before: float, now: datetime) -> AlertState:
        """Instances without a notification since that time may have ended; without others the state is unknown."""
        if self.reading is not Reading.FAILING:
            return self
        received = {known: at for known, at in self.received.items() if at >= before}
        left = replace(self, received=received, carried=self.carried if self.carried_at >= before else 0)
        return left if left.count else left._ended(Reading.UNKNOWN, now)

    def signal(self, broker: int, name: str) -> Signal:
        """The signal to report; its value is how many instances fire."""
        return Signal(
            broker=broker,
            type=SignalType.ALERTMANAGER,
            source=name,
            reading=self.reading,
            since=self.since,
            message=self._message(name),
            value=None if self.reading is Reading.UNKNOWN else float(self.count),
        )

    def _message(self, name: str) -> str:
        if self.reading is Reading.FAILING:
            return f"{name} fires ({self.count}){': ' if self.text else ''}{self.text}"
        if self.reading is Reading.PASSING:
            return f"{name} is resolved"
        return f"{name} fired, and was neither repeated nor resolved"

    def _ended(self, reading: Reading, now: datetime) -> AlertState:
        return replace(self, received={}, carried=0, over=frozenset(), text="")._turned(reading, now)

    def _turned(self, reading: Reading, now: datetime) -> AlertState:
        return self if reading is self.reading else replace(self, reading=reading, since=now)


def carried_on(signal: Signal, at: float) -> AlertState:
    """The state that an earlier process's signal carries."""
    count = 0
    if signal.reading is Reading.FAILING:
        count = min(INSTANCE_LIMIT, max(1, round(signal.value or 1)))
    head, _, text = signal.message.partition(": ")
    return AlertState(signal.since, signal.reading, {}, count, at, frozenset(), text if head.endswith(")") else "")
