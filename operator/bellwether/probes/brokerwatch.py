"""Watches one broker from one vantage, on threads of its own, so that one broker's silence delays no other's probe.

In: addresses (from the roster, then from the broker's own word) and settings that may change. Out: a ``Signal`` each
time that there is news. A new question starts every period although an earlier one still waits for its answer; answers
count in the order in which their questions were asked, so a black hole is known after failureThreshold periods and one
timeout.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol

import structlog

from bellwether.core.detection import Reachability
from bellwether.core.signals import Signal
from bellwether.ports import Clock, Terminal, Transient
from bellwether.probes.sightings import Answer, Round, Sighting

# Beyond its timeout a question is given this long to be scheduled and to say so itself.
GRACE_SECONDS = 0.3
_MOST_QUESTIONS = 64


class Asker(Protocol):
    """Asks one broker at one address. Raises Transient or Terminal for what says nothing about the broker."""

    def ask(self, address: str, broker_id: int, timeout_seconds: float) -> Answer:
        """One question, over within its timeout."""
        ...


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a broker can be asked, as ``host:port``; empty where it is not known. ``external`` is the first guess."""

    internal: str = ""
    external: str = ""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Stands for a question that did not come back: looking up a name, say, obeys no timeout."""

    message: str
    seconds: float
    ok: bool = False
    stage: str = "Connect"
    weaker: bool = False

    @property
    def advertised(self) -> Mapping[str, str]:
        """Nothing was said."""
        return {}


@dataclass(frozen=True, slots=True)
class _Asked:
    address: str
    external: Future[Answer] | None
    internal: Future[Answer] | None
    deadline: float
    timeout: float


class Observer(Protocol):
    """Is told what is measured, for metrics; ``telemetry`` has the real one."""

    def asked(self, broker: int, path: str, answer: Answer) -> None:
        """One answer over ``external`` or ``internal``."""
        ...

    def judged(self, signal: Signal) -> None:
        """A broker's reading, after each round."""
        ...

    def gone(self, broker: int) -> None:
        """The broker is no longer watched."""
        ...


class BrokerWatch:
    """The rounds of one broker. ``settings`` is called before each one; ``post`` is called with news, on its thread."""

    def __init__(
        self,
        broker: int,
        source: str,
        seat: Seat,
        asker: Callable[[], Asker],
        settings: Callable[[], Reachability],
        post: Callable[[Signal], None],
        clock: Clock,
        observer: Observer,
    ) -> None:
        self.broker = broker
        self._source = source
        self._seat = seat
        self._external = seat.external
        self._asker = asker
        self._settings = settings
        self._post = post
        self._clock = clock
        self._observer = observer
        self._log = structlog.get_logger(__name__).bind(broker=broker, vantage=source)
        self._sighting = Sighting()
        self._told: tuple[str, ...] | None = None
        self._warned = ""
        self.beat = clock.monotonic()
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(_MOST_QUESTIONS, thread_name_prefix=f"ask-{broker}")
        self._thread = threading.Thread(target=self._run, name=f"watch-{broker}", daemon=True)

    @property
    def sighting(self) -> Sighting:
        """What is known now."""
        return self._sighting

    @property
    def external(self) -> str:
        """The external address that is asked; empty until it was learned."""
        return self._external

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def move(self, seat: Seat) -> None:
        """Follow what metadata says; an address that it does not name is kept as last known."""
        external = seat.external or self._seat.external
        if seat.external and seat.external != self._seat.external:
            self._external = seat.external
        self._seat = Seat(seat.internal or self._seat.internal, external)

    def repeat(self) -> None:
        """Tell the present word again, news or not (this prober has just become its vantage's voice)."""
        self._told = None

    def stop(self) -> None:
        """Stop watching; a question under way ends by itself."""
        self._stop.set()

    def join(self, timeout_seconds: float) -> None:
        """Wait for the thread's end."""
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        asked: deque[_Asked] = deque()
        due = self._clock.monotonic()
        while not self._stop.is_set():
            settings = self._settings()
            now = self._clock.monotonic()
            if now >= due:
                self.beat = now
                asked.append(self._ask(settings))
                due = max(due + settings.period_seconds, now)
            before = self._external
            self._collect(asked, min(due, now + 0.25))
            if self._external and not before:
                due = self._clock.monotonic()  # just learned: no need to wait for the next period
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._observer.gone(self.broker)

    def _ask(self, settings: Reachability) -> _Asked:
        asker, timeout = self._asker(), settings.timeout_seconds
        external, internal = self._external, self._seat.internal
        return _Asked(
            external,
            self._pool.submit(asker.ask, external, self.broker, timeout) if external else None,
            self._pool.submit(asker.ask, internal, self.broker, timeout) if internal else None,
            self._clock.monotonic() + timeout + GRACE_SECONDS,
            timeout,
        )

    def _collect(self, asked: deque[_Asked], until: float) -> None:
        """Take finished rounds in the order in which they were begun, until it is time for something else."""
        while asked and not self._stop.is_set():
            first = asked[0]
            futures = [f for f in (first.external, first.internal) if f is not None]
            left = max(0.0, min(until, first.deadline) - self._clock.monotonic())
            waiting = wait(futures, timeout=left).not_done
            if waiting and self._clock.monotonic() < first.deadline:
                return
            self._take(asked.popleft())
        self._stop.wait(max(0.0, until - self._clock.monotonic()))

    def _take(self, asked: _Asked) -> None:
        trouble, answers = "", []
        for path, future, address in (
            ("external", asked.external, asked.address),
            ("internal", asked.internal, self._seat.internal),
        ):
            answer: Answer | None = None
            if future is not None and not future.done():
                answer = NoAnswer(f"{address}: no answer within {asked.timeout} s", asked.timeout)
            elif future is not None:
                try:
                    answer = future.result()
                except (Transient, Terminal, ValueError) as error:
                    trouble = str(error)
            if answer is not None:
                self._observer.asked(self.broker, path, answer)
            answers.append(answer)
        self._judge(Round(asked.address, answers[0], answers[1], trouble))

    def _judge(self, seen: Round) -> None:
        settings = self._settings()
        if seen.trouble:
            self._warn(seen.trouble, "this vantage cannot measure; what it finds here is no evidence")
        self._learn(seen, settings)
        self._sighting = self._sighting.after(seen, settings, self._clock.now())
        word = self._sighting.word(self.broker, self._source)
        if word is None or self._stop.is_set():
            return
        self._observer.judged(word)
        news = self._sighting.news()
        if news != self._told:
            self._told = news
            self._post(word)

    def _learn(self, seen: Round, settings: Reachability) -> None:
        """Follow the address that the broker itself advertises for the external listener."""
        said = {**_said(seen.external), **_said(seen.internal)}
        if not said:
            if not self._external and seen.internal is not None and seen.internal.ok:
                self._warn(seen.internal.message, "the broker does not say where its external listener is")
            return
        address = said.get(settings.listener, "")
        if not address:
            names = ", ".join(sorted(said))
            problem = f"the broker advertises {names}, not {settings.listener}"
            self._warn(problem, "set detection.externalReachability.listener to the external listener's name")
        elif address != self._external:
            self._log.info("external address learned", address=address, before=self._external or None)
            self._external = address

    def _warn(self, problem: str, event: str) -> None:
        """Say a trouble once, not each second."""
        if problem != self._warned:
            self._warned = problem
            self._log.warning(event, error=problem)


def _said(answer: Answer | None) -> Mapping[str, str]:
    return answer.advertised if answer is not None and answer.ok else {}
