"""Listener addresses of each broker by listener name, for plug-ins.

In: the cluster's metadata, and the listeners that each broker advertises. Out: addresses by broker. A
broker's last answer is kept while it does not answer. Called by ``bellwether probe plugin``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import structlog

from bellwether.core.model.cluster import Broker
from bellwether.kafka_connection import join_address
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.probes.reachability.broker_watch import ListenerClient

BOOTSTRAP = "BOOTSTRAP"
_ASK_SECONDS = 2.0
_ASK_AGAIN_SECONDS = 60.0
_ASKED_AT_ONCE = 16


class Listeners:
    """The addresses of one cluster's brokers, as far as they are known."""

    def __init__(self, listing: Callable[[], Mapping[int, Broker]], client: ListenerClient, clock: Clock) -> None:
        self._listing = listing
        self._client = client
        self._clock = clock
        self._log = structlog.get_logger(__name__)
        self._known: dict[int, dict[str, str]] = {}
        self._ask_at: dict[int, float] = {}
        self._unread = ""

    def refresh(self) -> Mapping[int, Mapping[str, str]]:
        """Look again; a cluster or a broker that does not answer changes nothing. Bounded in time."""
        try:
            found = self._listing()
        except (Transient, Terminal) as error:
            if not self._unread:
                self._log.warning("broker_list_failed", error=str(error))
            self._unread = str(error)
            return dict(self._known)
        if self._unread:
            self._log.info("broker_list_recovered", brokers=sorted(found))
            self._unread = ""
        now = self._clock.monotonic()
        asked = {}
        for broker in found.values():
            if not broker.host or broker.port <= 0:
                continue
            address = join_address(broker.host, broker.port)
            known = self._known.setdefault(broker.id, {})
            if known.get(BOOTSTRAP) != address or now >= self._ask_at.get(broker.id, now):
                asked[broker.id] = address
                self._ask_at[broker.id] = now + _ASK_AGAIN_SECONDS
        with ThreadPoolExecutor(_ASKED_AT_ONCE, thread_name_prefix="listeners") as pool:
            said = pool.map(lambda one: self._ask(*one), asked.items())
            for (broker_id, address), advertised in zip(asked.items(), said, strict=True):
                last = {name: at for name, at in self._known[broker_id].items() if name != BOOTSTRAP}
                self._known[broker_id] = {BOOTSTRAP: address, **(advertised or last)}
        return dict(self._known)

    def _ask(self, broker: int, address: str) -> Mapping[str, str]:
        try:
            answer = self._client.ask(address, broker, _ASK_SECONDS)
        except (Transient, Terminal, ValueError):
            return {}
        return answer.advertised if answer.ok else {}
