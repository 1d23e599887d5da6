"""Outbox: deliver changed signals in the background, so that no measurement waits for the API.

In: signals, posted by measuring threads when they change. Out: one write for the last signal of each source about each
broker, from a separate thread. While the receiver is away only the last signals are kept, and written when it is back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from bellwether.core.signals import Signal
from bellwether.ports.clock import Clock, jittered
from bellwether.ports.errors import Terminal, Transient


class SignalWriter(Protocol):
    """Where a prober's own entries are kept. Raises Transient or Terminal."""

    def write(self, signal: Signal) -> None:
        """Replace this prober's entry on the signal's broker."""

    def forget(self, broker: int, source: str) -> None:
        """Take this prober's entry of that source on a broker away; a broker that has none is fine."""


_Key = tuple[int, str]


@dataclass(slots=True)
class _Waiting:
    """One source's last undelivered signal about one broker; None deletes the entry."""

    signal: Signal | None
    due: float
    failures: int = 0


class Outbox:
    """Posted signals by broker and source, and the thread that delivers them.

    An entry that cannot be written is tried again after a pause of its own, so it holds no other entry's news back.
    ``on_result`` receives the result of each attempt, for metrics; ``spread`` is applied to each pause, so that probers
    that failed together do not come back together.
    """

    def __init__(
        self,
        writer: SignalWriter,
        clock: Clock,
        *,
        first_pause_seconds: float = 0.5,
        longest_pause_seconds: float = 5.0,
        on_result: Callable[[bool], None] = lambda _ok: None,
        spread: Callable[[float], float] = jittered,
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._first_pause = first_pause_seconds
        self._longest_pause = longest_pause_seconds
        self._on_result = on_result
        self._spread = spread
        self._log = structlog.get_logger(__name__)
        self._changed = threading.Condition()
        self._waiting: dict[_Key, _Waiting] = {}
        self._stopping = False
        self._thread = threading.Thread(target=self._deliver, name="outbox", daemon=True)

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def unhealthy_reason(self) -> str | None:
        """Reports that the delivery thread has died."""
        started = self._thread.ident is not None
        dead = started and not self._thread.is_alive() and not self._stopping
        return "the thread that delivers signals has died" if dead else None

    def post(self, signal: Signal) -> None:
        """Queue a signal for delivery; an older one of its source about the same broker is dropped."""
        self._put((signal.broker, signal.source), signal)

    def forget(self, broker: int, source: str) -> None:
        """Have this prober's entry of that source on a broker removed."""
        self._put((broker, source), None)

    def clear(self) -> None:
        """Drop everything that was not delivered yet (another replica of this vantage speaks from now on)."""
        with self._changed:
            self._waiting.clear()

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """Deliver what can be delivered in this time, then end."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def _put(self, key: _Key, signal: Signal | None) -> None:
        with self._changed:
            self._waiting[key] = _Waiting(signal, due=self._clock.monotonic())
            self._changed.notify_all()

    def _deliver(self) -> None:
        while (chosen := self._next()) is not None:
            key, item = chosen
            problem = self._try(key, item.signal)
            with self._changed:
                if problem is None:
                    continue
                newer = self._waiting.get(key)
                item.failures += 1
                pause = min(self._longest_pause, self._first_pause * 2.0 ** min(item.failures - 1, 10))
                item.due = self._clock.monotonic() + self._spread(pause)
                if newer is None and not self._stopping:
                    self._waiting[key] = item
            if item.failures == 1:
                self._log.warning(
                    "signal_not_written",
                    broker=key[0],
                    source=key[1],
                    error=problem,
                )

    def _next(self) -> tuple[_Key, _Waiting] | None:
        """The item that has been due for longest, once one is due; None when it is time to end."""
        with self._changed:
            while True:
                now = self._clock.monotonic()
                key, item = min(self._waiting.items(), key=lambda pair: pair[1].due, default=((-1, ""), None))
                if item is not None and (item.due <= now or self._stopping):
                    del self._waiting[key]
                    return key, item
                if self._stopping:
                    return None
                self._changed.wait(None if item is None else item.due - now)

    def _try(self, key: _Key, signal: Signal | None) -> str | None:
        broker, source = key
        try:
            if signal is None:
                self._writer.forget(broker, source)
            else:
                self._writer.write(signal)
        except (Transient, Terminal) as error:
            self._on_result(False)
            return str(error)
        self._on_result(True)
        if signal is None:
            self._log.info("signal_removed", broker=broker, source=source)
        else:
            posted = {"reading": str(signal.reading), "control": str(signal.control), "message": signal.message}
            self._log.info("signal_written", broker=broker, source=source, **posted)
        return None
