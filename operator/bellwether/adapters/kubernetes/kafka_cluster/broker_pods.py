"""Poll the broker pods of one policy every few seconds, if the policy detects restarts.

In: ``spec.maintenance.pods``. Out: which broker's pod exists, is ready or is terminating, and why pods cannot be
listed. Called by ``controllers.cluster_connection``. While the API is unavailable the last result counts: a failure of
the operator is no restart of a broker (invariant 5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bellwether.adapters.kubernetes.api_client import PODS, KubernetesClient, Object
from bellwether.adapters.kubernetes.kafka_cluster import strimzi_parsing
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.model.strimzi import Pod
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError

LOOK_SECONDS = 3.0

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
"""Annotation of a pod with the name of its main container."""

BROKER_CONTAINER = "kafka"
"""Name of the broker's container in Strimzi's pods and most charts."""

_NUMBER = re.compile(r"-(\d{1,10})$")
_OVER = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """Namespace and labels of the pods, and the broker id of pod 0."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    first: int = 0

    @classmethod
    def of(cls, policy: LeadershipPolicy) -> Wanted | None:
        """The pods of a policy; None if it does not detect restarts."""
        pods = policy.spec.maintenance.pods if policy.spec.maintenance is not None else None
        if pods is None:
            return None
        strimzi, namespace = policy.spec.kafka.strimzi, policy.metadata.namespace
        if pods.selector is not None or strimzi is None:
            return cls(namespace, tuple(sorted(pods.labels.items())), pods.first_broker_id)
        labels = {strimzi_parsing.CLUSTER_LABEL: strimzi.cluster_name, strimzi_parsing.BROKER_LABEL: "true"}
        return cls(strimzi.namespace or namespace, tuple(sorted(labels.items())), pods.first_broker_id)


class PodWatch:
    """Polls the pods. Used by one thread."""

    def __init__(self, api: KubernetesClient, clock: Clock, every_seconds: float = LOOK_SECONDS) -> None:
        self._api = api
        self._clock = clock
        self._every = every_seconds
        self._wanted: Wanted | None = None
        self._look_at = 0.0
        self.seen: Mapping[int, Pod] | None = None
        """The pods by broker at the last poll; None before the first poll, or if restarts are not detected."""
        self.problem = ""
        """Why restarts cannot be detected; empty if they can."""

    def want(self, wanted: Wanted | None) -> None:
        """Set the pods to poll."""
        if wanted != self._wanted:
            self._wanted, self._look_at = wanted, 0.0
            self.seen, self.problem = None, ""

    def look(self) -> Mapping[int, Pod] | None:
        """The pods, polled again if that is due. Never raises: ``problem`` contains the error."""
        wanted, now = self._wanted, self._clock.monotonic()
        if wanted is None or now < self._look_at:
            return self.seen
        self._look_at = now + self._every
        try:
            bodies = self._api.list(PODS, wanted.namespace, dict(wanted.labels))
        except BellwetherError as error:
            self.problem = f"pods cannot be listed: {error}"
            return self.seen
        self.seen, twice = by_broker(bodies, wanted.first)
        self.problem = _problem(wanted, self.seen, twice)
        return self.seen


def by_broker(bodies: Iterable[Object], first: int = 0) -> tuple[dict[int, Pod], tuple[str, ...]]:
    """Pods by broker, and the names of pods with the same number, which cannot be assigned to a broker."""
    found: dict[int, list[Pod]] = {}
    for body in bodies:
        number = _NUMBER.search(str(body["metadata"]["name"]))
        if number is not None and (body.get("status") or {}).get("phase") not in _OVER:
            found.setdefault(first + int(number[1]), []).append(_pod(body))
    twice = sorted(pod.name for pods in found.values() if len(pods) > 1 for pod in pods)
    return {broker: pods[0] for broker, pods in sorted(found.items()) if len(pods) == 1}, tuple(twice)


def _pod(body: Object) -> Pod:
    broker, status = _broker_container(body), body.get("status") or {}
    # Not the pod's own condition: a sidecar that is not ready, or a readiness gate, is no fault of the broker.
    ready = any(c.get("name") == broker and c.get("ready") for c in status.get("containerStatuses") or ())
    return Pod(str(body["metadata"]["name"]), ready, leaving=bool(body["metadata"].get("deletionTimestamp")))


def _broker_container(body: Object) -> str | None:
    """The container that runs the broker: the pod's default container, else ``kafka``, else the first."""
    names = [str(c["name"]) for c in (body.get("spec") or {}).get("containers") or ()]
    default = (body["metadata"].get("annotations") or {}).get(DEFAULT_CONTAINER)
    return next((name for name in (default, BROKER_CONTAINER, *names) if name in names), None)


def _problem(wanted: Wanted, seen: Mapping[int, Pod], twice: tuple[str, ...]) -> str:
    selector = ",".join(f"{key}={value}" for key, value in wanted.labels)
    if twice:
        some = ", ".join(twice[:4])
        return (
            f"pods {some} have the same number and cannot be assigned to brokers: select only the broker"
            f" pods ({selector})"
        )
    if not seen:
        return (
            f"no pod in namespace {wanted.namespace} has the labels {selector} and a name that ends in a"
            " number: correct spec.maintenance.pods.selector"
        )
    return ""
