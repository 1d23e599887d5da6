"""Replay settings: read the recorded policy, and change it for a replay that asks "what if".

In: the settings section of a trace's state (``spec`` without ``kafka``), a policy's file, ``path=value`` pairs. Out: a
``LeadershipPolicy``. Called by the recorder (``settings_section``) and by ``bellwether replay``. Terminal names the
path that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.signal_source import SignalSource
from bellwether.ports.errors import Terminal
from bellwether.recording.traces.merge_patch import Document, Json

NO_LOADS = "demotion.capacity.maxBytesPerSecond limits nothing here: partition loads are not recorded"
NOWHERE = "left-out.invalid:9092"

Setting = tuple[tuple[str, ...], Json]

_CAPACITY = ("demotion", "capacity")
_LOAD_LIMIT = "maxBytesPerSecond"

# What only probers read: they counted by it when the trace was recorded.
_PROBERS = frozenset(
    {
        "bootstrapServers",
        "periodSeconds",
        "timeoutSeconds",
        "failureThreshold",
        "successThreshold",
        "produceMilliseconds",
        "fetchMilliseconds",
        "thresholdSeconds",
        "url",
        "brokerLabel",
    }
)


def settings_section(policy: LeadershipPolicy) -> dict[str, Json]:
    """What a trace keeps of a policy: ``spec`` without connection, addresses, Secrets' names, pods; in
    addition its SignalSources.
    """
    body = policy.spec.body()
    del body["kafka"]
    body.pop("maintenance", None)  # what the pods did was recorded, wherever they were looked for
    detection = body.get("detection") or {}
    (detection.get("externalReachability") or {}).pop("bootstrapServers", None)
    sources = [{"name": one.source.metadata.name, "spec": _of_source(one.source)} for one in policy.sources.used]
    return {**body, "sources": sources} if sources else body


def _of_source(source: SignalSource) -> dict[str, Any]:
    spec = source.spec.body()
    if prometheus := spec.get("prometheus"):
        kept = {key: prometheus[key] for key in ("periodSeconds", "rules")}
        return {"prometheus": {"url": "http://left-out", **kept}}
    return {"plugin": {key: value for key, value in spec["plugin"].items() if key != "settings"}}


def policy_of(section: Document, name: str, namespace: str, changes: Iterable[Setting] = ()) -> LeadershipPolicy:
    """The policy of a trace, with some fields changed. Raises InvalidObject, or Terminal for a path that leads nowhere.

    A path starts below ``spec``: ``promotion.stabilizationSeconds``. A limit by load is left out (``limits_loads``).
    """
    spec: dict[str, Any] = _copied(section)
    sources = spec.pop("sources", ())
    spec["kafka"] = {"bootstrapServers": [NOWHERE]}
    for path, value in changes:
        _put(spec, path, value)
    if limits_loads(spec):
        capacity = {k: v for k, v in spec["demotion"]["capacity"].items() if k != _LOAD_LIMIT}
        spec["demotion"] = {**spec["demotion"], "capacity": capacity or None}
    metadata = {"name": name, "namespace": namespace}
    policy = LeadershipPolicy.read({"kind": "LeadershipPolicy", "metadata": metadata, "spec": spec})
    return policy.with_sources({"metadata": {"name": one["name"]}, "spec": one["spec"]} for one in sources)


def limits_loads(section: Document) -> bool:
    """Whether these settings limit brokers by load, which no replay can: say ``NO_LOADS``."""
    demotion = section.get("demotion")
    capacity = demotion.get("capacity") if isinstance(demotion, Mapping) else None
    return isinstance(capacity, Mapping) and capacity.get(_LOAD_LIMIT) is not None


def setting(text: str) -> Setting:
    """One ``path=value``; the value is YAML, so numbers, words, lists and true are what they look like."""
    path, equals, value = text.partition("=")
    steps = tuple(path.strip().removeprefix("spec.").split("."))
    if not equals or not all(steps):
        raise Terminal(f"--set {text!r} is not PATH=VALUE, as in promotion.stabilizationSeconds=10")
    try:
        return steps, yaml.safe_load(value)
    except yaml.YAMLError:
        raise Terminal(f"--set {path}: the value is not YAML") from None


def without_effect(changed: Setting) -> str | None:
    """Why a setting makes no difference to a replay; None when it may make one."""
    path, value = changed
    name = ".".join(path)
    if path[0] == "kafka":
        return f"{name} changes nothing: a replay connects to no cluster"
    if path == (*_CAPACITY, _LOAD_LIMIT):
        return NO_LOADS
    if path == _CAPACITY and isinstance(value, Mapping) and _LOAD_LIMIT in value:
        return NO_LOADS
    if path[0] == "detection" and len(path) > 2 and path[-1] in _PROBERS:
        return f"{name} changes no signal: the probers applied it when the trace was recorded"
    return None


def _put(spec: dict[str, Any], path: tuple[str, ...], value: Json) -> None:
    place: Any = spec
    for depth, step in enumerate(path[:-1], 1):
        place = place.setdefault(step, {})
        if not isinstance(place, dict):
            raise Terminal(f"--set {'.'.join(path)}: {'.'.join(path[:depth])} has no fields")
    place[path[-1]] = value


def _copied(section: Document) -> dict[str, Any]:
    return {k: _copied(v) if isinstance(v, Mapping) else v for k, v in section.items()}
