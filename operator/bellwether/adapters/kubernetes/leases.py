"""Leases: which operator may move the leaders of a Kafka cluster (invariant 7), and which prober reports for a source.

In: the Lease object of the API and the monotonic clock of this process; no other clock is trusted. Out:
``seconds_left``, which the executor checks before each batch. A cluster's Lease is named after Kafka's cluster id, and
its annotations contain the policy that holds it, so two policies for one Kafka cluster find each other. A thread renews
it.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from datetime import datetime

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import LEASES, KubernetesClient, Object
from bellwether.adapters.kubernetes.api_errors import Conflict, NotFound
from bellwether.ports.clock import Clock, jittered
from bellwether.ports.errors import BellwetherError, Fenced, LeaseUnconfirmed, Terminal, Transient
from bellwether.telemetry.heartbeat import STUCK_SECONDS, Heartbeat

CLUSTER_ANNOTATION = "bellwether.dev/kafka-cluster-id"
PROCESS_ANNOTATION = "bellwether.dev/process"
POLICY_ANNOTATION = "bellwether.dev/policy"


def micro_time(moment: datetime) -> str:
    """Format a time as the API's MicroTime."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class HeldLease:
    """One coordination.k8s.io Lease that this process holds or waits for.

    ``policy`` is ``namespace/name``; together with ``holder`` it is the identity of the holder. A Lease of another
    holder is free if it was not renewed, by the clock of this process, for its duration plus ``margin_seconds``, or was
    released. The Lease of another policy, also a released one, is free after twice that time, so that after a restart
    the policy that had it is first. ``renew_seconds`` must allow several attempts within the duration.
    """

    def __init__(
        self,
        api: KubernetesClient,
        namespace: str,
        name: str,
        policy: str,
        clock: Clock,
        *,
        duration_seconds: int,
        renew_seconds: float,
        margin_seconds: float = 0.0,
        holder: str | None = None,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        # Three attempts that hang must fit into the duration.
        self._api = api.with_timeout(min(api.timeout_seconds, max(renew_seconds, duration_seconds / 3)))
        self.namespace = namespace
        self._policy = policy
        self._clock = clock
        self._duration = duration_seconds
        self._renew_every = renew_seconds
        self._margin = margin_seconds
        self._annotations = {**(annotations or {}), POLICY_ANNOTATION: policy}
        self._labels = dict(labels or {})
        self.name = name
        self.holder = holder or str(uuid.uuid4())
        # ``_io`` is held during requests; ``_state`` is not, so that seconds_left() does not wait for the network.
        self._io = threading.Lock()
        self._state = threading.Lock()
        self.released_by = ""
        """The process that released the Lease before this one acquired it; empty if it was not released."""
        self._held: Object | None = None
        self._held_until = 0.0
        self._seen: tuple[str, float] | None = None
        self._owner: str | None = None
        self._lost: str | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._pulse = Heartbeat(f"the renewal of Lease {namespace}/{name}", clock.monotonic)

    def unhealthy_reason(self, bound_seconds: float = STUCK_SECONDS) -> str | None:
        """The failure to renew a held Lease, if any: its thread is dead or stuck."""
        thread, stop = self._thread, self._stop
        with self._state:
            ours = self._held is not None and self._lost is None
        # Not needed if the Lease was lost or has expired: the next ``acquire`` starts another thread.
        if thread is None or not ours or stop.is_set() or self.seconds_left() == 0:
            return None
        return self._pulse.unhealthy_reason(bound_seconds) if thread.is_alive() else f"{self._pulse.what} has died"

    @property
    def owner(self) -> str | None:
        """The current holder of the Lease for display; None if it is free or held by this process."""
        with self._state:
            return self._owner

    @property
    def lost(self) -> str | None:
        """Why this process lost the Lease; None otherwise. Reset by the next ``acquire``."""
        with self._state:
            return self._lost

    def seconds_left(self) -> float:
        """Seconds for which this process certainly holds the Lease, counted from before the last renewal was sent."""
        with self._state:
            return max(0.0, self._held_until - self._clock.monotonic()) if self._lost is None else 0.0

    def check(self) -> None:
        """Raise Fenced if the Lease was lost."""
        lost = self.lost
        if lost is not None:
            raise Fenced(lost)

    def confirm(self) -> None:
        """Read the Lease from the API, right before a request that changes something.

        Raises Fenced if another process holds it, LeaseUnconfirmed if it cannot be read.
        Pauses of this process's machine are not in its own clocks, and may be longer than the Lease.
        """
        self.check()
        try:
            found = self._api.find(LEASES, self.namespace, self.name)
        except (Transient, Terminal) as error:
            raise LeaseUnconfirmed(f"the Lease {self.namespace}/{self.name} cannot be read: {error}") from error
        holder = ((found or {}).get("spec") or {}).get("holderIdentity")
        if found is None or holder != self.holder or annotation(found, POLICY_ANNOTATION) != self._policy:
            raise self._lose(found)

    def acquire(self) -> bool:
        """Try once to acquire the Lease; True if this process holds it, and renews it from now on.

        Otherwise try again after ``renew_seconds``. Raises Transient if the API is unavailable, Terminal if it rejects
        the request.
        """
        with self._io:
            if self.seconds_left() > 0:
                return True
            taken = self._take()
        if taken:
            self._stop.set()
            self._stop = threading.Event()
            self._pulse.beat()
            thread = threading.Thread(
                target=self._renew_until, args=(self._stop,), name=f"lease-{self.name}", daemon=True
            )
            thread.start()
            self._thread = thread
        return taken

    def wait(self, stop: threading.Event) -> bool:
        """Acquire the Lease, waiting as long as needed, also for the API; False if ``stop`` was set first."""
        while not stop.is_set():
            try:
                if self.acquire():
                    return True
            except Transient:
                pass  # try again
            stop.wait(jittered(self._renew_every))
        return False

    def release(self) -> None:
        """Release the Lease, so that the next holder need not wait. Call it only after the last batch has been
        answered.
        """
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=2 * self._renew_every + self._api.timeout_seconds)
        with self._io:
            held = self._held
            with self._state:
                self._held_until, self._held = 0.0, None
            if held is None or self._lost is not None:
                return
            body = {**held, "spec": {**held["spec"], "holderIdentity": "", "renewTime": micro_time(self._clock.now())}}
            try:
                self._api.replace(LEASES, self.namespace, body)
            except (NotFound, Transient):
                return  # it expires, or another process holds it already

    def _take(self) -> bool:
        found = self._api.find(LEASES, self.namespace, self.name)
        sent = self._clock.monotonic()
        if found is not None and not self._free(found, sent):
            return False
        free = found is not None and not (found.get("spec") or {}).get("holderIdentity")
        self.released_by = annotation(found, PROCESS_ANNOTATION) if found is not None and free else ""
        try:
            if found is None:
                written = self._api.create(LEASES, self.namespace, self._fresh(None))
            else:
                written = self._api.replace(LEASES, self.namespace, self._fresh(found))
        except Conflict:
            return False
        self._hold(written, sent)
        return True

    def _free(self, found: Object, now: float) -> bool:
        spec = found.get("spec") or {}
        other, policy = spec.get("holderIdentity") or "", annotation(found, POLICY_ANNOTATION)
        ours = policy in ("", self._policy)
        if ours and other in ("", self.holder):
            return True
        with self._state:
            renewed = f"{other} {spec.get('renewTime')}"  # by its text: others change the version, too
            if self._seen is None or self._seen[0] != renewed:
                self._seen = (renewed, now)
            waited = now - self._seen[1]
            self._owner = f"policy {policy or 'unknown'} (holder {other or 'none'})"
        free_after = float(spec.get("leaseDurationSeconds") or self._duration) + self._margin
        return waited > (free_after if ours else 2 * free_after)

    def _fresh(self, found: Object | None) -> Object:
        now = micro_time(self._clock.now())
        transitions = int(((found or {}).get("spec") or {}).get("leaseTransitions") or 0) + 1 if found else 0
        metadata: Object = dict(found["metadata"]) if found else {"name": self.name, "namespace": self.namespace}
        metadata.pop("managedFields", None)
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **self._annotations}
        metadata["labels"] = {**(metadata.get("labels") or {}), **self._labels}
        return {
            "metadata": metadata,
            "spec": {
                "holderIdentity": self.holder,
                "leaseDurationSeconds": self._duration,
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        }

    def _hold(self, written: Object, sent: float) -> None:
        with self._state:
            self._held, self._held_until = written, sent + self._duration
            self._seen, self._owner, self._lost = None, None, None

    def _renew_until(self, stop: threading.Event) -> None:
        while not stop.wait(self._renew_every):
            self._pulse.beat()
            if not self._worth_renewing():
                continue
            with self._io:
                try:
                    self._renew()
                except (Transient, Terminal):
                    continue  # seconds_left() decreases; the next attempt may still be in time
                except Fenced:
                    self._thread = None
                    return

    def _worth_renewing(self) -> bool:
        """Whether the holder is still active; subclasses can override it."""
        return True

    def _renew(self) -> None:
        held = self._held
        if held is None:
            return
        sent = self._clock.monotonic()
        body = {**held, "spec": {**held["spec"], "renewTime": micro_time(self._clock.now())}}
        try:
            self._hold(self._api.replace(LEASES, self.namespace, body), sent)
        except Conflict:
            current = self._api.find(LEASES, self.namespace, self.name)
            if current is not None and self._still_ours(current):
                # A renewal was written but its response was lost, or only metadata was changed.
                with self._state:
                    self._held = current
                return
            raise self._lose(current) from None
        except NotFound:
            raise self._lose(None) from None

    def _still_ours(self, current: Object) -> bool:
        holder = (current.get("spec") or {}).get("holderIdentity")
        return holder == self.holder and annotation(current, POLICY_ANNOTATION) == self._policy

    def _why_lost(self, current: Object) -> str:
        other = (current.get("spec") or {}).get("holderIdentity") or "none"
        return f"policy {annotation(current, POLICY_ANNOTATION) or 'unknown'} (holder {other}) holds it"

    def _lose(self, current: Object | None) -> BellwetherError:
        why = "it was deleted" if current is None else self._why_lost(current)
        with self._state:
            self._lost = f"lost the Lease {self.namespace}/{self.name}: {why}"
            self._held, self._held_until = None, 0.0
            return Fenced(self._lost)


class ClusterLease(HeldLease):
    """``ports.kubernetes.Leadership``: the Lease of one Kafka cluster, in the operator's namespace.

    ``margin_seconds`` is the hard timeout of a Kafka request: a new holder waits that much longer than the duration of
    the Lease after the last renewal, so that a batch that the old holder sent at the last moment has ended.
    """

    def __init__(
        self,
        api: KubernetesClient,
        namespace: str,
        cluster_id: str,
        policy: str,
        clock: Clock,
        *,
        duration_seconds: int = 10,
        renew_seconds: float = 2.0,
        margin_seconds: float = 2.0,
        holder: str | None = None,
        process: str = "",
    ) -> None:
        super().__init__(
            api,
            namespace,
            object_names.cluster_lease(cluster_id),
            policy,
            clock,
            duration_seconds=duration_seconds,
            renew_seconds=renew_seconds,
            margin_seconds=margin_seconds,
            holder=holder,
            annotations={CLUSTER_ANNOTATION: cluster_id, PROCESS_ANNOTATION: process},
        )


def annotation(found: Object, name: str) -> str:
    """An annotation of an object; empty if it has none."""
    return str((found["metadata"].get("annotations") or {}).get(name) or "")
