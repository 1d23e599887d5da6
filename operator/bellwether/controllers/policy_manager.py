"""Watch policies and BrokerHealths with kopf, and start, update, wake and stop one policy controller for each policy.

Only ``kopf.on.event`` is used: it needs neither finalizers nor annotations, so a settled cluster causes no write. The
handlers wait for nothing but a lock that is held for moments, so they run in kopf's event loop and need no thread;
only the report on a LeaderRebalance without a policy has one. Lists come in pages, of each object only what is used is
held, and kopf computes no differences (decision 0120).
"""

from __future__ import annotations

import asyncio
import itertools
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import kopf
import structlog

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS
from bellwether.adapters.kubernetes.kept_fields import kept
from bellwether.adapters.kubernetes.kubeconfig import as_kubectl
from bellwether.api.v1alpha1.base_model import GROUP, VERSION
from bellwether.api.v1alpha1.leader_rebalance import policy_named
from bellwether.controllers.policy_controller import PolicyController, differs
from bellwether.ports.clock import jittered
from bellwether.telemetry.heartbeat import STUCK_SECONDS, Heartbeat

BEAT_SECONDS = 1.0

PAGE_SIZE = 20
"""Objects of one page of kopf's lists: at most 30 MB, as etcd holds objects of up to 1.5 MB."""

log = structlog.get_logger(__name__)


Policy = tuple[str, str]
"""Namespace and name of a policy, the name as the labels of Leases have it."""


class ApiLogin(kopf.ConnectionInfo):
    """Kopf's own way into the API, verifying certificates as the rest of us does."""

    def as_ssl_context(self) -> ssl.SSLContext:
        """Kopf's context, less strict."""
        return as_kubectl(super().as_ssl_context())


class NoDifferences(kopf.DiffBaseStorage):
    """What kopf computes to compare an object with its last state, which ``on.event`` does not use: nothing.

    Its own takes 20 ms of CPU for an object of 250 KiB with many fields, in the event loop of all watches.
    """

    def build(self, **_: Any) -> kopf.BodyEssence:
        """An empty essence."""
        return kopf.BodyEssence({})

    def fetch(self, **_: Any) -> None:
        """No state is stored."""

    def store(self, **_: Any) -> None:
        """Nothing is stored."""


class PolicyManager:
    """The loops of all policies that this process watches."""

    def __init__(
        self,
        make: Callable[[dict[str, Any]], PolicyController],
        forget: Callable[[str, str], None],
        unused: Callable[[Sequence[dict[str, Any]]], None] = lambda _: None,
    ) -> None:
        """``unused`` reports LeaderRebalances whose policy may not exist; it may take long."""
        self._make = make
        self._forget = forget
        self.unused = unused
        self._lock = threading.RLock()
        self._loops: dict[Policy, PolicyController] = {}
        self._left: list[PolicyController] = []
        """Loops that may not have ended yet: of deleted policies, and those that were given up and replaced."""
        # BrokerHealths and Leases may arrive before their policy does, by their policy and then by name.
        self._healths: dict[Policy, dict[str, dict[str, Any]]] = {}
        self._leases: dict[Policy, dict[str, dict[str, Any]]] = {}
        self._rebalances: dict[Policy, dict[str, dict[str, Any]]] = {}

    def policy(self, event: str | None, body: dict[str, Any]) -> None:
        """A LeadershipPolicy was seen, changed or deleted."""
        key = _key(body, body["metadata"]["name"])
        with self._lock:
            loop = self._loops.get(key)
            if event == "DELETED":
                self._loops.pop(key, None)
                if loop is not None:
                    loop.request_stop()
                    self._left.append(loop)
                self._forget(body["metadata"]["namespace"], body["metadata"]["name"])
                return
            if loop is None or not loop.is_alive():
                loop = self._loops[key] = self._make(body)
                loop.on_end = partial(self._ended, key, loop)
                for found in self._healths.get(key, {}).values():
                    loop.signals.on_broker_health(found)
                for found in self._leases.get(key, {}).values():
                    loop.signals.on_lease(found)
                loop.start()
                return
        loop.update(body)

    def health(self, event: str | None, body: dict[str, Any]) -> None:
        """A BrokerHealth was seen, changed or deleted."""
        policy = (body.get("spec") or {}).get("policyRef") or {}
        loop = self._note(self._healths, _key(body, str(policy.get("name", ""))), event, body)
        if loop is not None:
            gone = event == "DELETED"
            if loop.signals.on_broker_health_gone(body) if gone else loop.signals.on_broker_health(body):
                loop.wake()
            if not gone:
                loop.compare(BROKER_HEALTHS, body)

    def source(self, body: Mapping[str, Any]) -> None:
        """A SignalSource was seen, changed or deleted."""
        for loop in list(self._loops.values()):
            if loop.namespace == body["metadata"]["namespace"]:
                loop.source_changed(body["metadata"]["name"])

    def rebalance(self, event: str | None, body: dict[str, Any]) -> None:
        """A LeaderRebalance was seen, changed or deleted."""
        key = _key(body, policy_named(body))
        before = self._rebalances.get(key, {}).get(body["metadata"]["name"])
        loop = self._note(self._rebalances, key, event, body)
        fresh = before is None or event == "DELETED" or differs(before["metadata"], body["metadata"])
        if loop is not None and fresh:
            loop.rebalance_changed()

    def without_policy(self, namespace: str, policy: str) -> list[dict[str, Any]]:
        """The LeaderRebalances of a policy that the watches have not delivered, or have seen deleted."""
        key = namespace, object_names.legal(policy)
        return [] if key in self._loops else self.rebalances(namespace, policy)

    def rebalances(self, namespace: str, policy: str) -> list[dict[str, Any]]:
        """The LeaderRebalances that name a policy, as far as the watch has delivered them."""
        with self._lock:
            return [*self._rebalances.get((namespace, object_names.legal(policy)), {}).values()]

    def lease(self, event: str | None, body: dict[str, Any]) -> None:
        """A prober's Lease was seen, renewed or deleted."""
        label = (body["metadata"].get("labels") or {}).get(object_names.POLICY_LABEL, "")
        loop = self._note(self._leases, (body["metadata"]["namespace"], label), event, body)
        if loop is not None and (
            loop.signals.on_lease_gone(body) if event == "DELETED" else loop.signals.on_lease(body)
        ):
            loop.wake()

    def _note(
        self, objects: dict[Policy, dict[str, dict[str, Any]]], key: Policy, event: str | None, body: dict[str, Any]
    ) -> PolicyController | None:
        """Keep an object of a policy, or forget it; returns the policy's loop."""
        with self._lock:
            known = objects.setdefault(key, {})
            if event == "DELETED":
                known.pop(body["metadata"]["name"], None)
            else:
                known[body["metadata"]["name"]] = body
            if not known:
                del objects[key]
            return self._loops.get(key)

    def _ended(self, key: Policy, loop: PolicyController) -> None:
        """A loop has ended: forget a deleted policy again, as a last reconcile may have reported since."""
        with self._lock:
            if key not in self._loops:
                self._forget(loop.namespace, loop.policy_name)

    def known(self) -> frozenset[tuple[str, str]]:
        """The policies that the watches have delivered, by namespace and name."""
        return frozenset((loop.namespace, loop.policy_name) for loop in list(self._loops.values()))

    def problems(self, bound_seconds: float = STUCK_SECONDS) -> list[str]:
        """Problems that only a restart resolves: of all loops, if no one goes on. Takes no lock: a stuck thread may
        hold it.
        """
        found = [loop.problems(bound_seconds) for loop in list(self._loops.values())]
        return [text for texts in found for text in texts] if all(found) else []

    def give_up_stuck(self, bound_seconds: float = STUCK_SECONDS) -> None:
        """Give up a loop that is stuck or whose thread has died, and begin another one in its place.

        One at each call, as it may take seconds. A policy has at most one loop that was replaced and has not ended: if
        the next one is stuck as well, it is not replaced before.
        """
        with self._lock:
            self._left = [loop for loop in self._left if loop.is_alive()]
            present, left = dict(self._loops), list(self._left)
        for loop in [*left, *present.values()]:
            problems = [] if loop.given_up else loop.problems(bound_seconds)
            if problems:
                loop.give_up("; ".join(problems), deleted=loop in left)
                break
        replaced = {(loop.namespace, loop.policy_name) for loop in left}
        for key, loop in present.items():
            if loop.given_up and (loop.namespace, loop.policy_name) not in replaced:
                self._replace(key, loop)

    def _replace(self, key: Policy, loop: PolicyController) -> None:
        with self._lock:
            if self._loops.get(key) is loop:  # it may have been deleted meanwhile
                del self._loops[key]
                self._left.append(loop)
                self.policy(None, loop.body)

    def request_stop(self, timeout_seconds: float) -> None:
        """End all loops, giving their Leases up. The timeout is for all of them: a pod has 30 s to end."""
        loops, end = list(self._loops.values()), time.monotonic() + timeout_seconds
        for loop in loops:
            loop.request_stop()
        for loop in loops:
            loop.join(max(0.0, end - time.monotonic()))


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
        settings.watching.chunk_size = PAGE_SIZE
        settings.persistence.diffbase_storage = NoDifferences()
        settings.networking.request_timeout = 30
        settings.networking.error_backoffs = EndlessBackoff()
        settings.scanning.disabled = True  # ``readiness`` looks after the kinds: kopf asks for no right to watch them

    @kopf.on.event(GROUP, VERSION, "leadershippolicies", registry=registry)
    async def policy_seen(event: Mapping[str, Any], body: kopf.Body, **_: Any) -> None:
        loops.policy(event.get("type"), kept(dict(body)))
        metadata = body["metadata"]
        await report_unused(loops.without_policy(metadata["namespace"], metadata["name"]))

    @kopf.on.event(GROUP, VERSION, "brokerhealths", registry=registry)
    async def health_seen(event: Mapping[str, Any], body: kopf.Body, **_: Any) -> None:
        loops.health(event.get("type"), kept(dict(body)))

    @kopf.on.event(GROUP, VERSION, "signalsources", registry=registry)
    async def source_seen(body: kopf.Body, **_: Any) -> None:
        loops.source(body)

    @kopf.on.event(GROUP, VERSION, "leaderrebalances", registry=registry)
    async def rebalance_seen(event: Mapping[str, Any], body: kopf.Body, **_: Any) -> None:
        found = kept(dict(body))
        loops.rebalance(event.get("type"), found)
        unused = loops.without_policy(found["metadata"]["namespace"], policy_named(found))
        await report_unused([found] if found in unused else [])

    async def report_unused(found: Sequence[dict[str, Any]]) -> None:
        if found:
            await asyncio.to_thread(loops.unused, found)

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


def _key(body: dict[str, Any], policy: str) -> Policy:
    return body["metadata"]["namespace"], object_names.legal(policy)
