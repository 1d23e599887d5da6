"""Watch policies and BrokerHealths with kopf, and start, update, wake and stop one policy controller for each policy.

Only ``kopf.on.event`` is used: it needs neither finalizers nor annotations, so a settled cluster causes no write.
"""

from __future__ import annotations

import asyncio
import itertools
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import kopf
import structlog

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS
from bellwether.adapters.kubernetes.tls_verification import as_kubectl
from bellwether.api.v1alpha1.base_model import GROUP, VERSION
from bellwether.controllers.policy_controller import PolicyController
from bellwether.controllers.policy_quota import PolicyQuota
from bellwether.jitter import jittered
from bellwether.telemetry.heartbeat import STUCK_SECONDS, Heartbeat

BEAT_SECONDS = 1.0

log = structlog.get_logger(__name__)


class ApiLogin(kopf.ConnectionInfo):
    """Kopf's own way into the API, verifying certificates as the rest of us does."""

    def as_ssl_context(self) -> ssl.SSLContext:
        """Kopf's context, less strict."""
        return as_kubectl(super().as_ssl_context())


class PolicyManager:
    """The loops of all policies that this process watches and that have a place in their namespace's quota.

    ``later`` is called with each policy that is to be settled (``settle``) on another thread: it got or lost its place.
    """

    def __init__(
        self,
        make: Callable[[dict[str, Any]], PolicyController],
        forget: Callable[[str, str], None],
        quota: PolicyQuota | None = None,
        later: Callable[[tuple[str, str]], None] = lambda _: None,
    ) -> None:
        self._make = make
        self._forget = forget
        self._later = later
        self._lock = threading.RLock()
        self._quota = quota or PolicyQuota(0)
        self._loops: dict[tuple[str, str], PolicyController] = {}
        # Loops of policies that lost their place; the generation of each policy that waits for one.
        self._ending: dict[tuple[str, str], PolicyController] = {}
        self._waiting: dict[tuple[str, str], object] = {}
        self._deleted: list[tuple[tuple[str, str], PolicyController]] = []
        # BrokerHealths and Leases may arrive before their policy does. Leases by namespace and the label of the policy,
        # then by name; kopf does not watch them, so that they outlast a run of it.
        self._healths: dict[tuple[str, str], dict[str, Any]] = {}
        self._leases: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
        self._labels: dict[tuple[str, str], tuple[str, str]] = {}

    def policy(self, event: str | None, body: dict[str, Any]) -> None:
        """A LeadershipPolicy was seen, changed or deleted."""
        key = (body["metadata"]["namespace"], body["metadata"]["name"])
        label = (key[0], object_names.legal(key[1]))
        with self._lock:
            self._labels[label] = key
            changed = self._quota.gone(key) if event == "DELETED" else self._quota.seen(body)
            for other in changed - {key}:
                self._place_changed(other)
            self._forget_deleted()
            loop = self._loops.get(key)
            if event == "DELETED":
                self._loops.pop(key, None)
                self._waiting.pop(key, None)
                self._ending.pop(key, None)
                self._labels.pop(label)
                if loop is not None:
                    loop.request_stop()
                    self._deleted.append((key, loop))
                self._forget(*key)
                return
            if not self._quota.has_place(key):
                generation = body["metadata"].get("generation")
                if key not in self._waiting or self._waiting[key] != generation:
                    self._place_changed(key)
                    self._waiting[key] = generation
                return
            if self._still_ending(key):
                self._later(key)
                return
            self._waiting.pop(key, None)
            if loop is None or not loop.is_alive():
                loop = self._loops[key] = self._make(body)
                for found in [h for h in self._healths.values() if _policy_of(h) == key]:
                    loop.signals.on_broker_health(found)
                for found in self._leases.get(label, {}).values():
                    loop.signals.on_lease(found)
                loop.start()
                return
        loop.update(body)

    def health(self, event: str | None, body: dict[str, Any]) -> None:
        """A BrokerHealth was seen, changed or deleted."""
        key = (body["metadata"]["namespace"], body["metadata"]["name"])
        gone = event == "DELETED"
        with self._lock:
            if gone:
                self._healths.pop(key, None)
            else:
                self._healths[key] = body
            loop = self._loops.get(_policy_of(body))
        if loop is not None:
            news = loop.signals.on_broker_health_gone(body) if gone else loop.signals.on_broker_health(body)
            if news:
                loop.wake()
            if not gone:
                loop.compare(BROKER_HEALTHS, body)

    def lease(self, event: str | None, body: dict[str, Any]) -> None:
        """A prober's Lease was seen, renewed or deleted."""
        metadata, gone = body["metadata"], event == "DELETED"
        label = (metadata["namespace"], (metadata.get("labels") or {}).get(object_names.POLICY_LABEL, ""))
        with self._lock:
            known = self._leases.setdefault(label, {})
            if gone:
                known.pop(metadata["name"], None)
            else:
                known[metadata["name"]] = body
            if not known:
                del self._leases[label]
            key = self._labels.get(label)
            loop = self._loops.get(key) if key is not None else None
        if loop is not None and (loop.signals.on_lease_gone(body) if gone else loop.signals.on_lease(body)):
            loop.wake()

    def _forget_deleted(self) -> None:
        """Forget deleted policies again once their loops have ended: a last reconcile may have reported since."""
        for one in [(key, loop) for key, loop in self._deleted if not loop.is_alive()]:
            self._deleted.remove(one)
            if one[0] not in self._loops:
                self._forget(*one[0])

    def _place_changed(self, key: tuple[str, str]) -> None:
        """A policy got or lost its place: end its loop in the second case, and have it settled."""
        loop = None if self._quota.has_place(key) else self._loops.pop(key, None)
        if loop is not None:
            loop.request_stop()
            self._ending[key] = loop
            self._waiting[key] = loop.body["metadata"].get("generation")
        self._later(key)

    def _still_ending(self, key: tuple[str, str]) -> bool:
        """Whether the loop of a policy that lost its place is at work still."""
        loop = self._ending.get(key)
        if loop is not None and not loop.is_alive():
            del self._ending[key]
            loop = None
        return loop is not None

    def settle(
        self,
        key: tuple[str, str],
        read: Callable[[tuple[str, str]], dict[str, Any] | None],
        refuse: Callable[[dict[str, Any], str], None],
    ) -> bool:
        """Start a policy that got a place, and report one that has none. False while its former loop is ending.

        ``read`` gets its object, None if it is gone; ``refuse`` reports it. Raises what they raise.
        """
        with self._lock:
            if self._still_ending(key):
                return False
        body = read(key)
        if body is None:
            return True
        with self._lock:  # it may have been deleted meanwhile
            if self._quota.has_place(key):
                self.policy(None, body)
                return True
            waits = key in self._waiting
        if waits:
            self._forget(*key)
            refuse(body, self._quota.refusal(key[0]))
        return True

    def known(self) -> frozenset[tuple[str, str]]:
        """The policies that the watches have delivered, by namespace and name."""
        return self._quota.known()

    def problems(self, bound_seconds: float = STUCK_SECONDS) -> list[str]:
        """Problems of any loop that only a restart resolves. Takes no lock: a stuck thread may hold it."""
        return [text for loop in list(self._loops.values()) for text in loop.problems(bound_seconds)]

    def request_stop(self, timeout_seconds: float) -> None:
        """End all loops, giving their Leases up, and forget what was seen."""
        with self._lock:
            loops = dict(self._loops)
            for known in (self._loops, self._healths, self._labels, self._ending, self._waiting, self._quota):
                known.clear()
        for loop in loops.values():
            loop.request_stop()
        for key, loop in loops.items():
            loop.join(timeout_seconds)
            self._forget(*key)


def register(registry: kopf.OperatorRegistry, loops: PolicyManager, *, pulse: Heartbeat | None = None) -> None:
    """Put the watches into a kopf registry. ``pulse`` beats while kopf's event loop goes round."""
    beating: list[asyncio.Task[None]] = []

    @kopf.on.login(registry=registry)
    def log_in(**login: Any) -> kopf.ConnectionInfo | None:
        found = kopf.login_with_kubeconfig(**login) or kopf.login_with_service_account(**login)
        return None if found is None else ApiLogin(**vars(found))

    @kopf.on.startup(registry=registry)
    async def live(**_: Any) -> None:
        if pulse is not None:
            beating.append(asyncio.create_task(_beat(pulse)))

    @kopf.on.startup(registry=registry)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.peering.standalone = True  # our own Lease decides who acts
        settings.posting.enabled = False  # events are ours to write
        settings.watching.server_timeout = 300
        settings.watching.client_timeout = 330
        settings.networking.request_timeout = 30
        settings.networking.error_backoffs = EndlessBackoff()
        settings.scanning.disabled = True  # ``definitions`` looks after the kinds: kopf asks for no right to watch them

    @kopf.on.event(GROUP, VERSION, "leadershippolicies", registry=registry)
    def policy_seen(event: Mapping[str, Any], body: kopf.Body, **_: Any) -> None:
        loops.policy(event.get("type"), dict(body))

    @kopf.on.event(GROUP, VERSION, "brokerhealths", registry=registry)
    def health_seen(event: Mapping[str, Any], body: kopf.Body, **_: Any) -> None:
        loops.health(event.get("type"), dict(body))

    @kopf.on.cleanup(registry=registry)
    async def rest(**_: Any) -> None:
        while beating:
            beating.pop().cancel()
        if pulse is not None:
            pulse.rest()

    @kopf.on.cleanup(registry=registry)
    def stop(**_: Any) -> None:
        loops.request_stop(timeout_seconds=20)


class EndlessBackoff:
    """Pauses between tries that never come to an end: with kopf's own a minute without the API ends the process."""

    def __iter__(self) -> Iterator[float]:
        return map(jittered, itertools.chain((0.5, 1.0, 2.0), itertools.repeat(3.0)))


async def _beat(pulse: Heartbeat) -> None:
    while True:
        pulse.beat()
        await asyncio.sleep(BEAT_SECONDS)


def _policy_of(health: dict[str, Any]) -> tuple[str, str]:
    spec = health.get("spec") or {}
    return health["metadata"]["namespace"], str((spec.get("policyRef") or {}).get("name", ""))
