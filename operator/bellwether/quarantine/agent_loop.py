"""Quarantine agent of one broker: read its order, pause or release the process, and report what was done.

In: where orders stand, the broker's process, settings that may change. Out: the process paused or released, and signals
of the kind ``Quarantine``. Called by ``bellwether quarantine-agent``. One thread does everything, so that nothing
is paused by one hand and released by another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

import structlog

from bellwether.core.quarantine.agent import AgentAction, AgentState, OrderRead, pause_failed, release_if_paused, step
from bellwether.core.settings.detection import QUARANTINE_AGENT
from bellwether.core.settings.policy import Quarantine, QuarantineMode
from bellwether.core.signals import Reading, Signal
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.quarantine.agent_ports import BrokerProcess, Orders

TICK_SECONDS = 0.5
READ_SECONDS = 1.0
"""How often orders are read, so that one that ends is seen at once."""


class Observer(Protocol):
    """Is told the quarantine agent's word, for metrics; ``telemetry`` has the real one."""

    def judged(self, signal: Signal) -> None:
        """The word, on news."""
        ...


class QuarantineAgent:
    """One broker's quarantine agent. ``post`` is called with news, on the quarantine agent's own thread.

    ``speaks`` tells whether its word is heard: a second agent of the same broker, such as one with a wrong id beside
    another, stands by, and nobody would know whom it pauses. Once ``ending`` is set whoever is paused is released.
    """

    def __init__(
        self,
        broker: int,
        source: str,
        process: BrokerProcess,
        orders: Orders,
        post: Callable[[Signal], None],
        clock: Clock,
        observer: Observer | None = None,
        *,
        speaks: Callable[[], bool] = lambda: True,
        ending: threading.Event | None = None,
    ) -> None:
        self._broker = broker
        self._source = source
        self._process = process
        self._orders = orders
        self._post = post
        self._observer = observer
        self._clock = clock
        self._speaks = speaks
        self._ending = ending or threading.Event()
        self._log = structlog.get_logger(__name__).bind(broker=broker)
        self._lock = threading.Lock()
        self._watch = AgentState()
        self._wanted = True
        self._told: tuple[Reading, str] | None = None
        self._since = clock.now()
        self._failing = ""
        self._read_due = float("-inf")
        self._beat = clock.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="quarantine-agent", daemon=True)

    @property
    def watch(self) -> AgentState:
        """What it knows now."""
        return self._watch

    def start(self) -> None:
        """Begin to watch; a broker that is found paused is released at once."""
        self._thread.start()

    def configure(self, settings: Quarantine | None) -> None:
        """Go on under these settings; where nobody is to be quarantined, or the policy is gone, release whoever is."""
        self._wanted = settings is not None and settings.mode is QuarantineMode.ENABLED

    def repeat(self) -> None:
        """Tell the present word again, news or not."""
        self._told = None

    def alive(self) -> bool:
        """Whether it is at its post."""
        return self._thread.is_alive() and self._clock.monotonic() - self._beat < 10.0

    def stop(self, timeout_seconds: float = 5.0) -> None:
        """Release whoever is paused, and end."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)
        with self._lock:
            self._relieve("the quarantine agent has ended")

    def turn(self) -> None:
        """Look once, and act."""
        with self._lock:
            self._beat = self._clock.monotonic()
            read = self._read()
            # A read may hang: how the process is, and what time it is, is asked afterwards.
            state, guarded = self._process.state(), self._watch.paused is None or self._process.guarded()
            self._watch, act = step(self._watch, read, state, self._clock.monotonic(), guarded=guarded)
            self._do(act)
            if not self._wanted:
                self._relieve("the policy no longer quarantines")
            if self._ending.is_set():
                self._relieve("the quarantine agent was asked to end")
            self._tell()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.turn()
            except Exception:
                # A defect must not leave a broker paused.
                self._log.exception("the quarantine agent's turn failed in a way that it should not")
                self._give_up()
            self._stop.wait(TICK_SECONDS)

    def _give_up(self) -> None:
        """Release whoever is paused. Where that fails as well the next turn finds them paused, and tries again."""
        try:
            with self._lock:
                self._relieve("the quarantine agent failed")
        except Exception:
            self._log.exception("the broker could not be released")

    def _read(self) -> OrderRead | None:
        """What stands now; None where nothing was heard, or it was asked a moment ago."""
        now = self._clock.monotonic()
        if now < self._read_due or not self._wanted or not self._speaks() or self._ending.is_set():
            return None
        self._read_due = now + READ_SECONDS
        try:
            read = self._orders.read()
        except (Transient, Terminal) as error:
            if self._failing != str(error):
                self._log.warning("its orders cannot be read", error=str(error))
            self._failing = str(error)
            return None
        self._failing = ""
        return read

    def _do(self, act: AgentAction) -> None:
        try:
            if act is AgentAction.PAUSE:
                self._log.warning("pausing the broker", why=self._watch.message)
                self._process.pause()
            elif act is AgentAction.RELEASE:
                self._process.release()
                self._log.warning("released the broker", why=self._watch.message)
        except (Transient, Terminal) as error:
            self._log.error("the broker's process does not obey", doing=str(act), error=str(error))
            self._watch = pause_failed(self._watch, str(error))

    def _relieve(self, why: str) -> None:
        self._watch, act = release_if_paused(self._watch, why)
        self._do(act)

    def _tell(self) -> None:
        word = self._watch.reading, self._watch.message
        if word == self._told:
            return
        if self._told is None or self._told[0] is not word[0]:
            self._since = self._clock.now()
        self._told = word
        said = Signal(
            broker=self._broker,
            type=QUARANTINE_AGENT,
            source=self._source,
            reading=word[0],
            since=self._since,
            message=word[1],
            value=float(self._watch.number),
        )
        if self._observer is not None:
            self._observer.judged(said)
        self._post(said)
