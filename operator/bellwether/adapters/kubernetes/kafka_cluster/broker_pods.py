"""Poll the broker pods of one policy every few seconds, if the policy detects restarts.

In: ``spec.maintenance.pods``, and what the brokers advertise. Out: which broker's pod exists, is ready or is
terminating, and why pods cannot be listed, or be matched to a broker. Called by ``controllers.cluster_connection``.
While the API is unavailable the last result counts: a failure of the operator is no restart of a broker (invariant 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import PODS, KubernetesClient, Object
from bellwether.adapters.kubernetes.kafka_cluster import strimzi_parsing
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.model.broker_identity import UNMATCHED, Hosts, Named, Pod, claims, match, node_id, ordinal
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError
from bellwether.ports.world import PodSource

LOOK_SECONDS = 3.0

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
"""Annotation of a pod with the name of its main container."""

BROKER_CONTAINER = "kafka"
"""Name of the broker's container in Strimzi's pods and most charts."""

_ID_LABELS = (object_names.BROKER_LABEL, "brokerId")
_OVER = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """Namespace and labels of the pods, and the broker id of pod 0 if the policy states it."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    first: int | None = None

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
        self.seen: tuple[tuple[Named, Pod], ...] | None = None
        """The pods at the last poll; None before the first poll, or if restarts are not detected."""
        self._settled: Mapping[str, int] = {}
        self._brokers: frozenset[int] = frozenset()
        self._unread = self._unmatched = ""

    @property
    def problem(self) -> str:
        """Why restarts cannot be detected, of some broker at least; empty if they can."""
        return self._unread or self._unmatched

    @property
    def source(self) -> PodSource | None:
        """``by_broker``; None if the policy does not detect restarts."""
        return self.by_broker if self._wanted is not None else None

    def want(self, wanted: Wanted | None) -> None:
        """Set the pods to poll."""
        if wanted != self._wanted:
            self._wanted, self._look_at = wanted, 0.0
            self.seen, self._settled, self._unread, self._unmatched = None, {}, "", ""

    def look(self) -> object:
        """The pods, polled again if that is due. Never raises: ``problem`` contains the error."""
        wanted, now = self._wanted, self._clock.monotonic()
        if wanted is None or now < self._look_at:
            return self.seen
        self._look_at = now + self._every
        try:
            bodies = self._api.list(PODS, wanted.namespace, dict(wanted.labels))
        except BellwetherError as error:
            self._unread = f"pods cannot be listed: {error}"
            return self.seen
        there = [body for body in bodies if (body.get("status") or {}).get("phase") not in _OVER]
        self.seen, self._unread = tuple((_named(body, wanted), _pod(body)) for body in there), ""
        return self.seen

    def by_broker(self, hosts: Hosts) -> Mapping[int, Pod] | None:
        """The pod of each broker as last polled; None before the first poll. A broker without one has none, or
        ``UNMATCHED`` while some pod is not surely that of one broker, or there is none at all: ``problem`` says so.
        """
        wanted, seen = self._wanted, self.seen
        if wanted is None or seen is None:
            return None
        if hosts.keys() != self._brokers:
            self._brokers, self._settled = frozenset(hosts), {}
        things = [named for named, _ in seen]
        matches = match(things, hosts, self._settled)
        self._settled, twice = matches.settled, claims(things, matches.of)
        pods = zip(matches.of, seen, strict=True)
        found = {one.broker: pod for one, (_, pod) in pods if one.broker is not None and one.broker not in twice}
        problems = [f"{' and '.join(texts[:3])} both claim to be broker {broker}" for broker, texts in twice.items()]
        problems += [one.problem for one in matches.of if one.problem and one.kind != "unknown"]
        self._unmatched = _problem(wanted, problems, found)
        return dict(sorted(({b: UNMATCHED for b in hosts if self._unmatched} | found).items()))


def _named(body: Object, wanted: Wanted) -> Named:
    """What the API shows of a pod that identifies its broker; ``apps.kubernetes.io/pod-index`` is no node id."""
    metadata, status = body["metadata"], body.get("status") or {}
    name, labels = str(metadata["name"]), metadata.get("labels") or {}
    ids = [number for label in _ID_LABELS if (number := node_id(str(labels.get(label, "")))) is not None]
    number = ordinal(name)
    if wanted.first is not None and number is not None:
        ids.append(wanted.first + number)
    addresses = [str(one.get("ip", "")) for one in status.get("podIPs") or ()]
    strimzi = name if strimzi_parsing.CLUSTER_LABEL in labels else ""
    return Named(f"pod {name}", tuple(ids), (name,), tuple(addresses), wanted.namespace, strimzi)


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


def _problem(wanted: Wanted, problems: list[str], found: Mapping[int, Pod]) -> str:
    selector = ",".join(f"{key}={value}" for key, value in wanted.labels)
    if problems:
        more = f" (and {len(problems) - 1} more pods)" if len(problems) > 1 else ""
        return (
            f"{problems[0]}{more}; or label the pod {object_names.BROKER_LABEL}, or select only the broker pods of one"
            f" StatefulSet ({selector}) and set spec.maintenance.pods.firstBrokerId"
        )
    if not found:
        return (
            f"no pod in namespace {wanted.namespace} has the labels {selector}: correct spec.maintenance.pods.selector"
        )
    return ""
