"""Quarantine agent of one broker: read its order, hold or release the process, and report what was done.

In: the source of orders, the broker's process, settings that may change. Out: the process held or released, and
``Quarantine`` signals, posted on changes. Called by ``bellwether quarantine-agent``. One thread does it all, so a hold
and its release cannot race.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import structlog

from bellwether.core.model.quarantine_order import MAX_HOLD_SECONDS
from bellwether.core.quarantine.agent import (
    AgentAction,
    AgentState,
    OrderRead,
    ProcessState,
    hold_failed,
    release_if_held,
    step,
)
from bellwether.core.settings.policy import Quarantine, QuarantineMode
from bellwether.core.signals import QUARANTINE_AGENT, Reading, Signal
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics

TICK_SECONDS = 0.5
READ_SECONDS = 1.0
"""How often orders are read, so that one that ends is seen at once."""


class BrokerProcess(Protocol):
    """The process of the agent's broker."""

    def state(self) -> ProcessState:
        """How it is now."""

    def remedy(self) -> str:
        """Why it cannot be held, with figures, and what to set; empty where that is not known."""

    def hold(self) -> None:
        """Shut it down, and stop it as soon as no client is left. Takes seconds. Raises Transient when that fails."""

    def release(self) -> None:
        """Let it go on; nothing happens to one that runs. Raises Transient."""

    def guarded(self) -> bool:
        """Whether it would be released should we die this moment; asking is a sign of life."""


class Orders(Protocol):
    """Reads the agent's orders. Raises Transient or Terminal."""

    def read(self) -> OrderRead:
        """The current order for its broker, and whether another broker is held."""


class QuarantineAgent:
    """One broker's quarantine agent. ``post`` is called with changed signals, on the agent's own thread.

    ``leads`` is whether it holds the Lease of its source: a second agent with the same broker id is a standby and
    holds nothing. Once ``ending`` is set, a held broker is released. ``max_hold_seconds`` is the longest hold,
    whatever an order says.
    """

    def __init__(
        self,
        broker: int,
        source: str,
        process: BrokerProcess,
        orders: Orders,
        post: Callable[[Signal], None],
        clock: Clock,
        metrics: ProbeMetrics | None = None,
        *,
        leads: Callable[[], bool] = lambda: True,
        ending: threading.Event | None = None,
        max_hold_seconds: float = MAX_HOLD_SECONDS,
    ) -> None:
        self._broker = broker
        self._source = source
        self._process = process
        self._orders = orders
        self._post = post
        self._metrics = metrics
        self._clock = clock
        self._leads = leads
        self._ending = ending or threading.Event()
        self._ceiling = max_hold_seconds
        self._log = structlog.get_logger(__name__).bind(broker=broker)
        self._lock = threading.Lock()
        self._watch = AgentState()
        self._wanted = True
        self._posted: tuple[Reading, str] | None = None
        self._since = clock.now()
        self._failing = ""
        self._refused = ""
        self._read_due = float("-inf")
        self._beat = clock.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="quarantine-agent", daemon=True)

    @property
    def watch(self) -> AgentState:
        """Its state."""
        return self._watch

    def start(self) -> None:
        """Start; a broker that is found held is released at once."""
        self._thread.start()

    def configure(self, settings: Quarantine | None) -> None:
        """Apply these settings; without a policy, or with quarantine disabled, release a held broker."""
        self._wanted = settings is not None and settings.mode is QuarantineMode.ENABLED

    def repeat(self) -> None:
        """Post the current signal again, changed or not."""
        self._posted = None

    def alive(self) -> bool:
        """Whether the thread is alive and not stuck."""
        return self._thread.is_alive() and self._clock.monotonic() - self._beat < 10.0

    def stop(self, timeout_seconds: float = 5.0) -> None:
        """Release a held broker and stop."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)
        with self._lock:
            self._release("the quarantine agent has stopped")

    def reconcile(self) -> None:
        """Read the order once, and act."""
        with self._lock:
            self._beat = self._clock.monotonic()
            read = self._read()
            # A read may hang: how the process is, and what time it is, is asked afterwards.
            state, guarded = self._process.state(), self._watch.held is None or self._process.guarded()
            at = self._clock.monotonic()
            self._watch, act = step(self._watch, read, state, at, self._ceiling, guarded=guarded)
            # Without permission to read orders it cannot hold: the operator must not count on it.
            trouble = self._watch.trouble or self._refused
            if self._watch.trouble and (remedy := self._process.remedy()):
                trouble = f"{trouble}: {remedy}"
            self._watch = replace(self._watch, trouble=trouble)
            self._do(act)
            if not self._wanted:
                self._release("the policy no longer quarantines")
            if self._ending.is_set():
                self._release("the quarantine agent is stopping")
            self._post_changes()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.reconcile()
            except Exception:
                # A defect must not leave a broker held.
                self._log.exception("reconcile_failed_unexpectedly")
                self._give_up()
            self._stop.wait(TICK_SECONDS)

    def _give_up(self) -> None:
        """Release a held broker. If that fails, the next reconcile finds it held and tries again."""
        try:
            with self._lock:
                self._release("the quarantine agent failed")
        except Exception:
            self._log.exception("broker_not_released")

    def _read(self) -> OrderRead | None:
        """The current order; None if it cannot be read, or was read less than a second ago."""
        now = self._clock.monotonic()
        if now < self._read_due or not self._wanted or not self._leads() or self._ending.is_set():
            return None
        self._read_due = now + READ_SECONDS
        try:
            read = self._orders.read()
        except (Transient, Terminal) as error:
            if self._failing != str(error):
                self._log.warning("quarantine_orders_not_read", error=str(error))
            self._failing = str(error)
            self._refused = str(error) if isinstance(error, Terminal) else self._refused
            return None
        self._failing = self._refused = ""
        return read

    def _do(self, act: AgentAction) -> None:
        try:
            if act is AgentAction.HOLD:
                self._log.warning("broker_holding", reason=self._watch.message)
                self._process.hold()
            elif act is AgentAction.RELEASE:
                self._process.release()
                self._log.warning("broker_released", reason=self._watch.message)
        except (Transient, Terminal) as error:
            self._log.error("process_signal_failed", action=str(act), error=str(error))
            self._watch = hold_failed(self._watch, str(error))

    def _release(self, why: str) -> None:
        self._watch, act = release_if_held(self._watch, why)
        self._do(act)

    def _post_changes(self) -> None:
        current = self._watch.reading, self._watch.message
        if current == self._posted:
            return
        if self._posted is None or self._posted[0] is not current[0]:
            self._since = self._clock.now()
        self._posted = current
        signal = Signal(
            broker=self._broker,
            type=QUARANTINE_AGENT,
            source=self._source,
            reading=current[0],
            since=self._since,
            message=current[1],
            value=float(self._watch.number),
        )
        if self._metrics is not None:
            self._metrics.judged(signal)
        self._post(signal)
