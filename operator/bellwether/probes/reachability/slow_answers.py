"""Find brokers that answer one vantage far more slowly than their peers do: their path has too little bandwidth.

In: how long good answers of each broker took, outside and inside. Out: which brokers are slow, and so are asked with a
request of a client's size. Called by ``broker_watch``. A small request still gets through where the batches of clients
wait.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median

SLOW_RATIO = 10.0
"""A broker whose answers take so many times as long as its peers' median, and as its own internal listener, is slow.

Distance changes a latency by a few times between brokers of one cluster, a queue by a hundred times.
"""

LEAST_SLOW_SECONDS = 0.1
"""An answer that is not later than its peers' by so much is not called slow, whatever the ratio."""

SLOW_IN_A_ROW = 3
"""A single late answer is a lost packet, or this process."""

CLIENT_BYTES = 16384
"""Bytes of a request of a client's size: ``batch.size`` of a producer, by default."""


@dataclass(frozen=True, slots=True)
class _Last:
    seconds: float
    slow: int = 0


class SlowAnswers:
    """The last good answers of all brokers of one vantage, by listener. Not for use by several threads."""

    def __init__(self) -> None:
        self._last: defaultdict[str, dict[int, _Last]] = defaultdict(dict)

    def answered(self, listener: str, broker: int, seconds: float, inside: float | None) -> None:
        """A request was answered in so many seconds, one over the internal listener in ``inside``."""
        peers = [last.seconds for other, last in self._last[listener].items() if other != broker]
        usual = max([median(peers), *([] if inside is None else [inside])]) if peers else None
        late = usual is not None and seconds >= max(SLOW_RATIO * usual, usual + LEAST_SLOW_SECONDS)
        was = self._last[listener].get(broker)
        self._last[listener][broker] = _Last(seconds, (was.slow if was is not None else 0) + 1 if late else 0)

    def slow(self, listener: str, broker: int) -> bool:
        """Whether a broker's last answers there took far longer than those of its peers."""
        last = self._last[listener].get(broker)
        return last is not None and last.slow >= SLOW_IN_A_ROW

    def forget(self, broker: int) -> None:
        """It is not watched any more."""
        for last in self._last.values():
            last.pop(broker, None)
