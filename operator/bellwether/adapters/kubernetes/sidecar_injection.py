"""Sidecar injection: the JSON patch that adds sidecars to a broker's pod, as an answer to an AdmissionReview.

In: sidecars by ServiceAccount, as the chart renders them; the body of a request of the API server. Out: the body of the
answer, which always allows the pod. Which pods are sent here is decided by the matchConditions of the
MutatingWebhookConfiguration. Called by ``bellwether sidecar-webhook``.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from bellwether.adapters.json_codec import parse
from bellwether.ports.errors import Terminal

Object = Mapping[str, Any]

AGENT = "bellwether-quarantine-agent"
"""The container that signals the broker's process."""
PROBER = "bellwether-storage"
"""The container that writes to the broker's volumes."""
SELF = "bellwether-self"
"""The container that reads the broker's sockets."""
BROKER = "kafka"
"""Strimzi's name for the broker's container."""
_DATA = re.compile(r"/var/lib/kafka/data(-\d+)?")
"""Where Strimzi mounts the volumes with log directories."""
_EXTERNAL = "tcp-external"
"""Strimzi's name for the port of a listener called external; those of other names may be internal."""


class Liveness(NamedTuple):
    """A liveness probe, in seconds and failures in a row, with the defaults of Kubernetes."""

    period: int
    failures: int

    @classmethod
    def of(cls, probe: Object) -> Liveness:
        """As a container states it."""
        return cls(probe.get("periodSeconds") or 10, probe.get("failureThreshold") or 3)

    @property
    def tolerated_seconds(self) -> int:
        """How long it fails until the container is ended."""
        return self.period * self.failures

    def failures_for(self, seconds: int) -> int:
        """The failureThreshold that tolerates so many seconds."""
        return -(-seconds // self.period)


class Quarantine(BaseModel):
    """What a quarantine agent needs of the pod. The broker's container is the one with ``volume``.

    ``tolerated_seconds`` is for how long its liveness probe may fail; ``user_of_pod``: the agent is of its user. It is
    of its group anyway: who has another one sees none of its sockets (ptrace(2)), and cannot shut it down in order.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)

    volume: str
    tolerated_seconds: int
    user_of_pod: bool


class FoundInPod(BaseModel):
    """What is found in the pod and not configured: the volumes, and the ``port`` of the external listener."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    port: bool


class Sidecars(BaseModel):
    """What the pods of one ServiceAccount get. ``quarantine``: None where no agent is among the containers."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)

    containers: list[dict[str, Any]] = Field(min_length=1)
    image_pull_secrets: list[dict[str, str]]
    quarantine: Quarantine | None = None
    found_in_pod: FoundInPod | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """Volumes of the broker, name to directory, and the port of its external listener; None if it is not known."""

    volumes: Mapping[str, str]
    port: int | None

    def fitted(self, container: dict[str, Any]) -> dict[str, Any]:
        """The container of a sidecar with these volumes; the last --port counts."""
        named = [f"--directory={name}={directory}" for name, directory in self.volumes.items()]
        if container["name"] == SELF and self.port is not None:
            named.append(f"--port={self.port}")
        read = {} if container["name"] == PROBER else {"readOnly": True}
        mounts = [{"name": name, "mountPath": directory, **read} for name, directory in self.volumes.items()]
        return {**container, "args": [*container.get("args", ()), *named], "volumeMounts": mounts}


def shape_of(pod: Object, *, port: bool) -> Shape | None:
    """The shape of a pod of Strimzi's; None if it is another pod. ``port``: find that of the external listener."""
    brokers = [one for one in pod.get("containers") or [] if one.get("name") == BROKER]
    mounts = brokers[0].get("volumeMounts") or [] if len(brokers) == 1 else []
    volumes = {one["name"]: one["mountPath"] for one in mounts if _DATA.fullmatch(one["mountPath"])}
    ports = brokers[0].get("ports") or [] if port and volumes else []
    outside = [one["containerPort"] for one in ports if one.get("name") == _EXTERNAL]
    return Shape(volumes, outside[0] if outside else None) if volumes else None


_ACCOUNTS = TypeAdapter(dict[str, Sidecars])


def read_sidecars(text: str) -> Mapping[str, Sidecars]:
    """Sidecars by the name of a ServiceAccount. Raises Terminal."""
    try:
        return _ACCOUNTS.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise Terminal(f"--sidecars: {field or 'not JSON'}: {first['msg']}: set it as the chart renders it") from None


def answer(body: bytes, sidecars: Mapping[str, Sidecars]) -> bytes:
    """Answer an AdmissionReview for a pod. ValueError if it is not one."""
    try:
        request = parse(body)["request"]
        uid, pod = str(request["uid"]), request["object"]["spec"]
        found = sidecars.get(pod.get("serviceAccountName") or "default")
        patch = list(_patch(pod, found)) if found is not None else []
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"not an AdmissionReview for a pod: {type(error).__name__}: {error}") from None
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if patch:
        encoded = base64.b64encode(json.dumps(patch).encode()).decode()
        response |= {"patchType": "JSONPatch", "patch": encoded}
    elif found is not None:
        response["warnings"] = ["bellwether adds no sidecars: it finds no data volume: list sidecars.dataVolumes"]
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return json.dumps(review).encode()


def _patch(pod: Object, sidecars: Sidecars) -> Iterator[Object]:
    needs, identity = sidecars.quarantine, dict[str, int]()
    containers = sidecars.containers
    if sidecars.found_in_pod is not None:
        shape = shape_of(pod, port=sidecars.found_in_pod.port)
        if shape is None:
            return
        containers = [shape.fitted(one) for one in containers]
        needs = needs and needs.model_copy(update={"volume": next(iter(shape.volumes))})
    if needs is not None:
        yield {"op": "add", "path": "/spec/shareProcessNamespace", "value": True}
        brokers = [(i, c) for i, c in enumerate(pod.get("containers") or []) if _mounts(c, needs.volume)]
        if brokers:
            identity = _identity(pod, brokers[0][1], needs.user_of_pod)
        for index, container in brokers:
            yield from _raised_threshold(index, container.get("livenessProbe"), needs.tolerated_seconds)
    for container in containers:
        yield {"op": "add", "path": "/spec/containers/-", "value": _with_identity(container, identity)}
    before = pod.get("imagePullSecrets") or []
    more = [one for one in sidecars.image_pull_secrets if one not in before]
    if more:
        yield {"op": "add", "path": "/spec/imagePullSecrets", "value": [*before, *more]}


def _mounts(container: Object, volume: str) -> bool:
    return any(mount["name"] == volume for mount in container.get("volumeMounts") or [])


def _identity(pod: Object, broker: Object, user_of_pod: bool) -> dict[str, int]:
    """The agent's ``runAsUser`` and ``runAsGroup``, as far as the broker's container, or else its pod, states them."""
    stated = dict[str, int]()
    for context in (pod.get("securityContext") or {}, broker.get("securityContext") or {}):
        stated |= {key: int(context[key]) for key in ("runAsUser", "runAsGroup") if context.get(key) is not None}
    if not user_of_pod or not stated.get("runAsUser"):  # no sidecar runs as root
        stated.pop("runAsUser", None)
    return stated


def _with_identity(container: dict[str, Any], identity: Mapping[str, int]) -> dict[str, Any]:
    if not identity or container["name"] != AGENT:
        return container
    return {**container, "securityContext": {**container["securityContext"], **identity}}


def _raised_threshold(index: int, probe: Object | None, seconds: int) -> Iterator[Object]:
    """A held broker fails its liveness probe, which must not end it before its hold is over."""
    if probe is not None and (liveness := Liveness.of(probe)).tolerated_seconds < seconds:
        path = f"/spec/containers/{index}/livenessProbe/failureThreshold"
        yield {"op": "add", "path": path, "value": liveness.failures_for(seconds)}
