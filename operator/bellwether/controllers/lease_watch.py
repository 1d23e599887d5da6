"""Watch the probers' Leases, on a thread of its own for each watched namespace.

In: the API. Out: each Lease that was added, changed or deleted, for ``policy_manager``. Every prober renews its Lease
every two seconds, so that nearly all events of a settled cluster are of Leases: kopf takes some milliseconds of CPU for
each, this watch a tenth of one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import structlog

from bellwether.adapters.kubernetes.api_client import LEASES, KubernetesClient, Object
from bellwether.adapters.kubernetes.object_names import PROBER_LABEL
from bellwether.ports.clock import Clock, jittered
from bellwether.ports.errors import BellwetherError, Terminal
from bellwether.telemetry.heartbeat import STUCK_SECONDS, Heartbeat

WATCH_SECONDS = 30
"""After so long a watch is renewed; without an event for longer, its connection is dead."""

RETRY_SECONDS, REFUSED_SECONDS = 2.0, 15.0
"""Pauses after a failure, and after one that a person must resolve."""

GATHER_SECONDS, DRAIN_SECONDS = 0.25, 0.02
"""After 20 ms of events it sleeps while more arrive: to wake for each one costs more than to take it."""

LARGEST_LEASE = 16 << 10
"""Bytes; ours have one. Anyone with the Kubernetes role ``edit`` may make Leases with the label."""

LONGEST_FIELD = 256
"""Characters of a Lease's holder or time; the holder is a pod's name with a number."""

PROBERS = {PROBER_LABEL: "true"}

log = structlog.get_logger(__name__)


class LeaseWatch(threading.Thread):
    """Calls ``deliver`` with the type of each event and the Lease; ``namespace`` None: of all namespaces."""

    def __init__(
        self,
        api: KubernetesClient,
        namespace: str | None,
        deliver: Callable[[str | None, dict[str, Any]], None],
        clock: Clock,
    ) -> None:
        super().__init__(name=f"lease-watch-{namespace or 'all'}", daemon=True)
        self._api = api
        self._namespace = namespace
        self._deliver = deliver
        self._clock = clock
        self._known: dict[tuple[str, str], Object] = {}
        self._heartbeat = Heartbeat("the watch of the probers' Leases", clock.monotonic)
        self._stop_requested = threading.Event()

    def problems(self, bound_seconds: float = STUCK_SECONDS) -> list[str]:
        """That the thread has died, or is stuck."""
        if self.ident is None or self._stop_requested.is_set():
            return []
        if not self.is_alive():
            return [f"{self._heartbeat.what} has died"]
        found = self._heartbeat.unhealthy_reason(bound_seconds)
        return [] if found is None else [found]

    def request_stop(self) -> None:
        """End after the next event."""
        self._stop_requested.set()

    def run(self) -> None:
        """Watch until stopped; after a failure, from a new list on."""
        problem: str | None = None
        while not self._stop_requested.is_set():
            pause = RETRY_SECONDS
            try:
                version = self.list()
                while not self._stop_requested.is_set():
                    version = self.watch(version)
                    problem = None
            except BellwetherError as error:
                if str(error) != problem:
                    problem = str(error)
                    log.warning("lease_watch_failed", error=problem)
                if isinstance(error, Terminal):
                    pause = REFUSED_SECONDS
            except Exception:
                log.exception("lease_watch_failed_unexpectedly")
            self._stop_requested.wait(jittered(pause))

    def list(self) -> str:
        """Deliver all Leases as they are, and those that are gone since; returns the version to go on from."""
        self._heartbeat.beat()
        found, version = self._api.list_version(LEASES, self._namespace, PROBERS, LARGEST_LEASE, _trimmed)
        gone = self._known.keys() - {_key(lease) for lease in found}
        for lease in [self._known[key] for key in gone]:
            self._take("DELETED", lease)
        for lease in found:
            self._take(None, lease)
        return version

    def watch(self, version: str) -> str:
        """Deliver events until the API server ends the watch; returns the version to go on from."""
        drained = self._clock.monotonic()
        self._heartbeat.rest()  # while it waits for an event, only the time limit of its connection matters
        for event, lease in self._api.watch(LEASES, self._namespace, PROBERS, version, WATCH_SECONDS):
            self._heartbeat.beat()
            version = lease["metadata"]["resourceVersion"]
            if event != "BOOKMARK":
                self._take(event, lease)
            if self._clock.monotonic() - drained > DRAIN_SECONDS:
                self._stop_requested.wait(GATHER_SECONDS)
                drained = self._clock.monotonic()
            if self._stop_requested.is_set():
                break
            self._heartbeat.rest()
        return version

    def _take(self, event: str | None, lease: Object) -> None:
        lease = _trimmed(lease)
        if event == "DELETED":
            self._known.pop(_key(lease), None)
        else:
            self._known[_key(lease)] = lease
        self._deliver(event, lease)


def _trimmed(lease: Object) -> Object:
    """What is used of a Lease: each is kept."""
    metadata, spec = lease["metadata"], lease.get("spec") or {}
    return {
        "metadata": {
            key: metadata[key] for key in ("namespace", "name", "resourceVersion", "labels") if key in metadata
        },
        "spec": {key: str(spec[key])[:LONGEST_FIELD] for key in ("holderIdentity", "renewTime") if spec.get(key)},
    }


def _key(lease: Object) -> tuple[str, str]:
    return lease["metadata"]["namespace"], lease["metadata"]["name"]
