"""Restart every broker in turn, as a rollout tool does, and wait until every leader is back where it was.

In: brokers, an independent watch, settings. Out: a ``Rolled``. A broker stops, is started again at once, and the
next one follows once it is in every ISR. No one lends a hand: who brings leaders back is what is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from demo.observations import View
from demo.watch import Watch
from realparts.kafka import KafkaCluster
from restarts.figures import Restart, Rolled
from restarts.settings import Settings
from waiting import TooLate, until

ISR_SECONDS = 120.0
TICK = 0.1

Say = Callable[[str], None]


class TooSlow(RuntimeError):
    """A broker did not come back into every ISR."""


def roll(kafka: KafkaCluster, watch: Watch, settings: Settings, check: Callable[[], None], say: Say) -> Rolled:
    """One rolling restart, with quiet before it. ``check`` raises when a part has ended by itself."""
    watch.ask(lambda seen: seen.begin())
    quiet_from = time.monotonic()
    _rest(settings.quiet, check)
    restarts = []
    for broker in kafka.brokers:
        say(f"restarting broker {broker}")
        restarts.append(_restart(kafka, watch, broker, check))
        _rest(settings.gap, check)
    say("all are back; waiting for their leaders")
    balanced = _until(lambda: watch.ask(lambda seen: not seen.out_of_place()), settings.patience, check)
    if balanced is not None:
        _rest(settings.quiet, check)
    return Rolled(quiet_from, tuple(restarts), balanced, time.monotonic())


def _restart(kafka: KafkaCluster, watch: Watch, number: int, check: Callable[[], None]) -> Restart:
    broker = kafka.broker(number)
    watch.broken(number)
    began = time.monotonic()
    broker.stop()
    broker.start()
    up = time.monotonic()
    watch.broken(None)
    whole = _until(lambda: watch.ask(lambda seen: seen.at > up and _in_sync(seen.view)), ISR_SECONDS, check)
    if whole is None:
        raise TooSlow(f"broker {number} is not in every ISR {ISR_SECONDS:g} s after it came up")
    return Restart(number, began, up, whole)


def _in_sync(view: View) -> bool:
    return all(set(p.isr) == set(p.replicas) for p in view.values())


def _until(reached: Callable[[], bool], limit: float, check: Callable[[], None]) -> float | None:
    def now() -> bool:
        check()
        return reached()

    try:
        until(now, limit, every=TICK)
    except TooLate:
        return None
    return time.monotonic()


def _rest(seconds: float, check: Callable[[], None]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        check()
        time.sleep(TICK)
