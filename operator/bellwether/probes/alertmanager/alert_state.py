"""State of one alert on one broker: which instances are firing, and the resulting signal. Pure, and bounded.

In: instances as they fire and are resolved, and the word of an earlier process. Out: a ``Signal``. Called by
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
    """One alert on one broker. ``heard`` has the monotonic time when each firing instance was last told of.

    ``carried`` counts the instances that an earlier process had seen fire, ``over`` those of them that were resolved
    since: which they are is known only once they are told of again. ``carried_at`` is when they were taken over.
    """

    since: datetime
    reading: Reading = Reading.PASSING
    heard: dict[str, float] = field(default_factory=dict)
    carried: int = 0
    carried_at: float = 0.0
    over: frozenset[str] = frozenset()
    text: str = ""

    @property
    def count(self) -> int:
        """How many instances fire, as far as is known."""
        return max(len(self.heard), self.carried - len(self.over))

    def fires(self, fingerprint: str, text: str, at: float, now: datetime) -> AlertState:
        """An instance fires, anew or still."""
        heard = self.heard
        if fingerprint in heard or len(heard) < INSTANCE_LIMIT:
            heard = {**heard, fingerprint: at}
        told = replace(self, heard=heard, over=self.over - {fingerprint}, text=text or self.text)
        return told._turned(Reading.FAILING, now)

    def resolved(self, fingerprint: str, now: datetime) -> AlertState:
        """An instance is over; the last one's end is the alert's."""
        heard = {known: at for known, at in self.heard.items() if known != fingerprint}
        over = self.over | {fingerprint} if len(self.over) < self.carried else self.over
        left = replace(self, heard=heard, over=over)
        return left if left.count else left._ended(Reading.PASSING, now)

    def expired(self, before: float, now: datetime) -> AlertState:
        """Instances that were last told of before that time may be over by now; without another nothing is known."""
        if self.reading is not Reading.FAILING:
            return self
        heard = {known: at for known, at in self.heard.items() if at >= before}
        left = replace(self, heard=heard, carried=self.carried if self.carried_at >= before else 0)
        return left if left.count else left._ended(Reading.UNKNOWN, now)

    def word(self, broker: int, name: str) -> Signal:
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
        return replace(self, heard={}, carried=0, over=frozenset(), text="")._turned(reading, now)

    def _turned(self, reading: Reading, now: datetime) -> AlertState:
        return self if reading is self.reading else replace(self, reading=reading, since=now)


def carried_on(word: Signal, at: float) -> AlertState:
    """What an earlier process's word stands for."""
    count = 0
    if word.reading is Reading.FAILING:
        count = min(INSTANCE_LIMIT, max(1, round(word.value or 1)))
    head, _, text = word.message.partition(": ")
    return AlertState(word.since, word.reading, {}, count, at, frozenset(), text if head.endswith(")") else "")
