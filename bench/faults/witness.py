"""Looks on while a fault lasts, as people would: reads status and events from the Kubernetes API, metadata from Kafka.

In: a site's API and an independent ``demo.watch.Watch``. Out: the present ``Account``. Called by ``playing``; nothing
in here asks the operator itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from bellwether.adapters.kubernetes.api_client import EVENTS, POLICIES
from bellwether.core.reasons import Reason
from demo.health import Health, Words
from demo.watch import Watch
from faults.accounts import Account, Word, displaced
from testkit.processes.sites import POLICY, Site, condition

POLL_SECONDS = 0.2
EVENTS_SECONDS = 1.0
OF_A_RESTART = (Reason.BROKER_DOWN, Reason.UNREACHABLE, Reason.AT_MIN_ISR)
"""Reasons of warnings that each restart has: their alerts wait for 5 and 10 minutes."""

Answer = TypeVar("Answer")


class Witness:
    """A thread that looks until it is asked to stop; reading goes through ``ask``. ``began`` starts a new account."""

    def __init__(self, site: Site, watch: Watch) -> None:
        self._site = site
        self._watch = watch
        self._health = Health(site.server.kubeconfig, POLICY, site.namespace)
        self._lock = threading.Lock()
        self._account = Account()
        self._began = time.monotonic()
        self._known_events: set[str] = set()
        self._events_due = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self.words = Words()
        self.problem = ""

    def __enter__(self) -> Witness:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(15)

    @property
    def began(self) -> float:
        """When the present account began, on the monotonic clock."""
        return self._began

    def begin(self) -> None:
        """Now the fault begins: what was before is forgotten, but for the present state."""
        words, events = self._health.look(), self._events()
        self._watch.ask(lambda seen: seen.begin())
        with self._lock:
            self._account = Account()
            self._known_events = set(events)
            self._began = time.monotonic()
            self._hear(words, 0.0)

    def ask(self, question: Callable[[Account], Answer]) -> Answer:
        """The answer of what was said and seen, while nothing is added to it."""
        with self._lock:
            return question(self._account)

    def _look_on(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            began = self._began
            try:
                words, asked = self._health.look(), time.monotonic()
                events = self._events() if asked >= self._events_due else {}
                self._events_due = asked + EVENTS_SECONDS if events else self._events_due
                held = condition(
                    self._site.api.get(POLICIES, self._site.namespace, POLICY).get("status") or {}, "DemotionBlocked"
                )
            except Exception as problem:  # whatever it is, it is shown, and the next look tries again
                self.problem = str(problem)
                continue
            leaders, gone, at = self._watch.ask(lambda seen: (seen.leaders(), displaced(seen), seen.at))
            with self._lock:
                if began != self._began:
                    continue  # a new account began meanwhile: this look belongs to none
                self.words, self.problem = words, ""
                self._hear(words, asked - began)
                if at > began:
                    self._account.see(at - began, leaders, gone)
                for name in events.keys() - self._known_events:
                    self._account.page(events[name])
                if held.get("status") == "True":
                    self._account.page(f"DemotionBlocked: {held.get('message', '')}")

    def _hear(self, words: Words, at: float) -> None:
        for broker, said in words.brokers.items():
            self._account.hear(at, broker, Word(said.verdict, said.reason), demoted=said.demoted, message=said.message)
            if said.verdict == "Sick":
                self._account.page(f"broker {broker} is Sick ({said.reason})")

    def _events(self) -> dict[str, str]:
        """Warnings by name, each with what it says; without those that each restart has, as their alerts wait."""
        found = self._site.api.list(EVENTS, self._site.namespace)
        return {
            one["metadata"]["name"]: f"event {one['regarding']['name']} {one['reason']}: {one.get('note', '')}"
            for one in found
            if one.get("type") == "Warning" and one["reason"] not in OF_A_RESTART
        }
