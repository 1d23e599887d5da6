"""The play: each step of ``steps``, described by ``story`` in sentences as it happens.

In: a set ``Stage``, a ``Watch``, the traffic. Out: ``Fault`` values with their times. Each wait has a limit, and
whatever ends too early (operator, prober, traffic) ends the wait at once. Called by ``__main__``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from demo import story
from demo.faults import Fault, FaultKind
from demo.health import Health
from demo.samples import Sample
from demo.settings import Settings
from demo.stage import Stage
from demo.steps import Act, Progress, Step, control_seconds, steps
from demo.traffic import Traffic
from demo.watch import Watch

HEALTHY_LIMIT = 120.0
MODE_LIMIT = 30.0
LEAVE_LIMIT = 120.0
RETURN_LIMIT = 120.0
TICK = 0.1
QUARANTINE = {"mode": "Enabled"}


class TookTooLong(RuntimeError):
    """A step did not come to its end within its limit."""


class Teller(Protocol):
    """Shows the story to a person."""

    def step(self, heading: str) -> None:
        """A step begins."""

    def say(self, label: str, sentence: str) -> None:
        """Something happened."""

    def show(self, command: str, output: str) -> None:
        """What a command prints."""


class Scenario:
    """Plays on one stage. ``progress`` is where it is, for the table."""

    def __init__(
        self, stage: Stage, watch: Watch, health: Health, traffic: Traffic, settings: Settings, teller: Teller
    ) -> None:
        self._stage = stage
        self._watch = watch
        self._health = health
        self._traffic = traffic
        self._settings = settings
        self._tell = teller
        self._calm = (0.0, 0.0)
        self.progress = Progress(steps(settings, stage.brokers))
        self.faults: list[Fault] = []

    def wait_healthy(self) -> None:
        """Wait until Bellwether calls every broker healthy."""
        brokers = self._stage.brokers
        self._until(lambda: self._health.words.all_healthy(brokers), HEALTHY_LIMIT, "every broker is Healthy")

    def play(self) -> None:
        """All the steps but the count. Raises TookTooLong, PartDied or TrafficFailed."""
        self._watch.ask(lambda seen: seen.begin())
        try:
            for _ in self.progress.steps[:-1]:
                self._act(self.begin())
        except BaseException:
            if self.faults and self.faults[-1].repaired is None:
                self._fix(self.faults[-1])
            raise

    def begin(self) -> Step:
        """Go on to the next step, and say so."""
        now = time.monotonic()
        step = self.progress.begin(now)
        self._tell.step(self.progress.heading(now))
        return step

    def _act(self, step: Step) -> None:
        match step.act:
            case Act.BASELINE:
                self._calm = self._measure_calm(self._settings.hold)
            case Act.WITHOUT:
                self._without(step)
            case Act.WITH:
                self._with(step)
            case Act.REPAIR:
                self._repair(self.faults[-1])

    def _without(self, step: Step) -> None:
        """The control: the same fault while the policy only observes, for about as long."""
        self._switch("Observe", observing=True)
        fault = self._break(step, acting=False)
        self._rest(control_seconds(self._settings), fault)
        self._fix(fault)
        self._until(
            lambda: self._health.words.all_healthy(self._stage.brokers), HEALTHY_LIMIT, "every broker is Healthy again"
        )
        self._watch.broken(None)
        self._switch("Enforce", observing=False)
        self._tell.say(story.CLIENTS, story.felt_without(fault, self._samples()))

    def _with(self, step: Step) -> None:
        if step.kind is FaultKind.STORAGE:
            self._health.change(quarantine=QUARANTINE)
            self._tell.say(story.CHANGED, story.quarantine_on(step.broker))
        fault = self._break(step, acting=True)
        fault.zero_leaders = self._until(
            lambda: self._seen_since(fault.began) and not self._watch.ask(lambda seen: seen.led_by(fault.broker)),
            LEAVE_LIMIT,
            f"broker {fault.broker} leads nothing",
            fault,
        )
        fault.moved = len(fault.led)
        self._tell.say(story.DID, story.moved(fault))
        if fault.quarantined:
            self._held(fault)
        self._rest(self._settings.hold, fault)
        control = next((f for f in self.faults if f.kind is step.kind and not f.acting), None)
        self._tell.say(story.CLIENTS, story.felt_with(fault, self._samples(), control, time.monotonic()))

    def _held(self, fault: Fault) -> None:
        """Its shutdown has moved the leaders: until it is held, and in no ISR."""
        name = f"broker {fault.broker}"
        self._until(lambda: self._stage.is_held(fault.broker), LEAVE_LIMIT, f"{name} is shut down and held", fault)
        fault.held = time.monotonic()
        self._until(lambda: not self._in_isrs(fault), LEAVE_LIMIT, f"{name} is in no ISR", fault)
        fault.out_of_isr = self._watch.ask(lambda seen: seen.at)
        self._tell.say(story.DID, story.held(fault))
        self._tell.show(*self._stage.explain(fault.broker))

    def _in_isrs(self, fault: Fault) -> bool:
        seen_since = self._seen_since(fault.held)
        return not seen_since or bool(self._watch.ask(lambda seen: seen.in_isr_of(fault.broker)))

    def _repair(self, fault: Fault) -> None:
        self._fix(fault)
        self._tell.say(story.REPAIRED, story.repaired(fault))
        if fault.quarantined:
            name = f"broker {fault.broker}"
            self._until(lambda: not self._stage.is_held(fault.broker), RETURN_LIMIT, f"{name} is released")
            fault.released = time.monotonic()
            started = self._stage.kafka.broker(fault.broker).start_if_ended
            self._until(started, RETURN_LIMIT, f"{name} is started again")
            fault.started = time.monotonic()
            self._tell.say(story.DID, story.released(fault))
        fault.in_place = self._until(
            lambda: self._seen_since(fault.repaired) and not self._watch.ask(lambda seen: seen.out_of_place()),
            RETURN_LIMIT + self._settings.stabilization,
            "every replica order and every leader is as at the start",
        )
        # Only now: until it has caught up, the broker's own metadata may still look as at the start.
        fault.noticed_at = self._watch.noticed_at
        self._tell.say(story.DID, story.restored(fault, self._settings.stabilization))
        # The broker that was broken is asked again only after this: its metadata may be a moment behind.
        self._calm = self._measure_calm(self._settings.rest)
        self._watch.broken(None)
        fault.ended = time.monotonic()

    def _break(self, step: Step, *, acting: bool) -> Fault:
        fault = Fault(step.kind, step.broker, self._calm, acting)
        self.faults.append(fault)
        fault.led = self._watch.ask(lambda seen: seen.led_by(fault.broker))
        self._watch.broken(fault.broker)
        fault.began = time.monotonic()
        (self._stage.cut if fault.kind is FaultKind.REACHABILITY else self._stage.slow)(fault.broker)
        self._tell.say(story.BROKEN, story.broke(fault, self._settings.delay_milliseconds))
        return fault

    def _fix(self, fault: Fault) -> None:
        now_led = self._watch.ask(lambda seen: seen.led_by(fault.broker))
        fault.moved = len(fault.led - now_led)
        fault.repaired = time.monotonic()
        (self._stage.join if fault.kind is FaultKind.REACHABILITY else self._stage.quicken)(fault.broker)

    def _switch(self, mode: str, *, observing: bool) -> None:
        """Change the policy's mode, and wait until the operator says that it has read it."""
        self._health.change(mode=mode)
        self._until(lambda: self._health.words.observing is observing, MODE_LIMIT, f"the policy is in mode {mode}")

    def _measure_calm(self, seconds: float) -> tuple[float, float]:
        began = time.monotonic()
        self._rest(seconds)
        span = began, time.monotonic()
        self._tell.say(story.CLIENTS, story.calm(self._samples(), span))
        return span

    def _samples(self) -> list[Sample]:
        """What is finished and what is late by now: until it is repaired, the slowest records are those still open."""
        return [*self._traffic.samples(), *self._traffic.late(time.monotonic())]

    def _hear(self, fault: Fault) -> None:
        """Say what Bellwether says of the broken broker, the first time that it calls it Sick."""
        word = self._health.words.of(fault.broker)
        if fault.judged is not None or word.verdict != "Sick":
            return
        fault.judged, fault.reason, fault.message = time.monotonic(), word.reason, word.message
        self._tell.say(story.SAW, story.saw(fault))
        if not fault.acting:
            self._tell.say(story.DID, story.only_observed(fault))

    def _seen_since(self, moment: float | None) -> bool:
        """Whether metadata was read after that moment: an older reading says nothing about it."""
        return moment is not None and self._watch.ask(lambda seen: seen.at) > moment

    def _rest(self, seconds: float, fault: Fault | None = None) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._check(fault)
            time.sleep(TICK)

    def _until(self, reached: Callable[[], bool], limit: float, expected: str, fault: Fault | None = None) -> float:
        """Wait; return when metadata showed it. Raises TookTooLong after ``limit`` seconds."""
        started = time.monotonic()
        while not reached():
            self._check(fault)
            if time.monotonic() - started > limit:
                raise TookTooLong(f"after {limit:g} s it is still not so that {expected}")
            time.sleep(TICK)
        return self._watch.ask(lambda seen: seen.at)

    def _check(self, fault: Fault | None) -> None:
        self._stage.check()
        self._traffic.check()
        if fault is not None:
            self._hear(fault)
