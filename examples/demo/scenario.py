"""The play: break, wait until nothing is led, mend, wait until all is back; twice, and again if asked.

In: a set ``Stage``, a ``Watch``, the traffic. Out: ``Fault`` values with their times. Each wait has a limit, and
whatever ends too early (operator, prober, traffic) ends the wait at once. Called by ``__main__``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from demo.faults import Fault, FaultKind
from demo.health import Health
from demo.settings import Settings
from demo.stage import Stage
from demo.traffic import Traffic
from demo.watch import Watch

HEALTHY_LIMIT = 120.0
LEAVE_LIMIT = 60.0
RETURN_LIMIT = 120.0
TICK = 0.1


class TookTooLong(RuntimeError):
    """A step did not come to its end within its limit."""


class Scenario:
    """Plays on one stage. ``step`` is what goes on now, for whoever shows it."""

    def __init__(self, stage: Stage, watch: Watch, health: Health, traffic: Traffic, settings: Settings) -> None:
        self._stage = stage
        self._watch = watch
        self._health = health
        self._traffic = traffic
        self._settings = settings
        self.step = "starting"
        self.faults: list[Fault] = []

    def wait_healthy(self) -> None:
        """Wait until Bellwether calls every broker healthy."""
        self.step = "waiting until every broker is Healthy"
        brokers = self._stage.brokers
        self._until(lambda: self._health.words.all_healthy(brokers), HEALTHY_LIMIT, "every broker is Healthy")

    def play(self) -> None:
        """All the faults, on other brokers each time. Raises TookTooLong, PartDied or TrafficFailed."""
        self._watch.ask(lambda seen: seen.begin())
        brokers, repeat = self._stage.brokers, self._settings.repeat
        for turn in range(repeat):
            cut, slow = brokers[turn % len(brokers)], brokers[(turn + 1) % len(brokers)]
            prefix = f"[{turn + 1}/{repeat}] " if repeat > 1 else ""
            if self._settings.only != "disk":
                self._suffer(FaultKind.REACHABILITY, cut, prefix, self._stage.cut, self._stage.join)
            if self._settings.only != "listener":
                self._suffer(FaultKind.STORAGE, slow, prefix, self._stage.slow, self._stage.quicken)
        self.step = "done"

    def _suffer(
        self, kind: FaultKind, broker: int, prefix: str, break_it: Callable[[int], None], mend_it: Callable[[int], None]
    ) -> None:
        fault = Fault(kind, broker, quiet_from=time.monotonic())
        self.faults.append(fault)
        what = f"{prefix}{kind}, broker {broker}"
        self._rest(f"{what}: measuring the quiet before")

        self.step = f"{what}: broken, waiting until it leads nothing"
        fault.led = self._watch.ask(lambda seen: seen.led_by(broker))
        self._watch.broken(broker)
        fault.began = time.monotonic()
        break_it(broker)
        try:
            fault.zero_leaders = self._until(
                lambda: self._seen_since(fault.began) and not self._watch.ask(lambda seen: seen.led_by(broker)),
                LEAVE_LIMIT,
                f"broker {broker} leads nothing",
            )
            self._rest(f"{what}: demoted and still broken, measuring")
            fault.in_isr = self._watch.ask(lambda seen: seen.in_isr_of(broker))
        finally:
            now_led = self._watch.ask(lambda seen: seen.led_by(broker))
            fault.moved = len(fault.led - now_led)
            fault.mended = time.monotonic()
            mend_it(broker)

        self.step = f"{what}: mended, waiting until orders and leaders are back"
        fault.in_place = self._until(
            lambda: self._seen_since(fault.mended) and not self._watch.ask(lambda seen: seen.out_of_place()),
            RETURN_LIMIT + self._settings.stabilization,
            "every replica order and every leader is as at the start",
        )
        # Only now: until it has caught up, the broker's own metadata may still look as at the start.
        fault.knows_at = self._watch.knows_at
        self._watch.broken(None)
        self._rest(f"{what}: back in place, measuring")
        fault.ended = time.monotonic()

    def _seen_since(self, moment: float | None) -> bool:
        """Whether metadata was read after that moment: an older reading says nothing about it."""
        return moment is not None and self._watch.ask(lambda seen: seen.at) > moment

    def _rest(self, step: str) -> None:
        self.step = step
        end = time.monotonic() + self._settings.hold
        while time.monotonic() < end:
            self._check()
            time.sleep(TICK)

    def _until(self, reached: Callable[[], bool], limit: float, wish: str) -> float:
        """Wait; return when metadata showed it. Raises TookTooLong after ``limit`` seconds."""
        started = time.monotonic()
        while not reached():
            self._check()
            if time.monotonic() - started > limit:
                raise TookTooLong(f"after {limit:g} s it is still not so that {wish}")
            time.sleep(TICK)
        return self._watch.ask(lambda seen: seen.at)

    def _check(self) -> None:
        self._stage.check()
        self._traffic.check()
