"""The configuration for kube-state-metrics is well formed, and every path in it leads somewhere in the definitions.

The shape is that of kube-state-metrics' documentation of custom resources (``CustomResourceStateMetrics``).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import yaml

from sourcetree import ROOT

CONFIGURATION = ROOT / "helm" / "bellwether" / "files" / "kube-state-metrics" / "custom-resources.yaml"
METADATA = {"name", "namespace", "creationTimestamp", "deletionTimestamp"}
RESOURCE = {"groupVersionKind", "metricNamePrefix", "labelsFromPath", "metrics"}
EACH = {
    "Gauge": ("gauge", {"path", "labelsFromPath", "valueFrom", "nilIsZero"}),
    "Info": ("info", {"path", "labelsFromPath"}),
}
# What a gauge can be made of: numbers, True and False in words, times.
COUNTABLE = {"integer", "number", "boolean", "string"}


def schemas() -> dict[str, Mapping[str, Any]]:
    """The schema of each kind, as it is served."""
    bodies = [yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.yaml")]
    return {b["spec"]["names"]["kind"]: b["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for b in bodies}


def found(schema: Mapping[str, Any], path: Sequence[str]) -> Mapping[str, Any] | None:
    """What a path leads to; the members of a list are meant by the list itself."""
    at: Mapping[str, Any] | None = schema
    for place, step in enumerate(path):
        if place == 1 and path[0] == "metadata":
            return {"type": "string"} if step in METADATA else None
        if at is None:
            return None
        within = at.get("items", at)
        at = within.get("properties", {}).get(step)
    return at


def faults(body: Mapping[str, Any]) -> list[str]:
    """What is wrong with a configuration."""
    wrong: list[str] = []
    known = schemas()
    if body.get("kind") != "CustomResourceStateMetrics" or set(body) != {"kind", "spec"}:
        wrong.append("it is no CustomResourceStateMetrics")
    for resource in body["spec"]["resources"]:
        kind = resource["groupVersionKind"]
        schema = known.get(kind["kind"])
        if schema is None or (kind["group"], kind["version"]) != ("bellwether.dev", "v1alpha1"):
            wrong.append(f"there is no {kind}")
            continue
        wrong += [f"{kind['kind']}: {key} is unknown" for key in set(resource) - RESOURCE]
        wrong += _dead_ends(schema, resource["labelsFromPath"], kind["kind"])
        for metric in resource["metrics"]:
            wrong += [f"{kind['kind']}.{metric['name']}: {text}" for text in _of_metric(schema, metric)]
    return wrong


def _of_metric(schema: Mapping[str, Any], metric: Mapping[str, Any]) -> list[str]:
    each = metric["each"]
    name, allowed = EACH.get(each["type"], ("", set()))
    if set(each) != {"type", name} or not metric.get("help"):
        return ["it is neither a gauge nor an info, or has no help"]
    how = each[name]
    wrong = [f"{key} is unknown" for key in set(how) - allowed]
    base = found(schema, how.get("path", []))
    if base is None:
        return [*wrong, f"{how['path']} leads nowhere"]
    wrong += _dead_ends(base, how.get("labelsFromPath", {}), "its labels")
    if name == "gauge":
        value = found(base, how["valueFrom"]) if "valueFrom" in how else base
        if value is None or value.get("type") not in COUNTABLE:
            wrong.append(f"{how.get('path')} {how.get('valueFrom', '')} is no figure")
    return wrong


def _dead_ends(schema: Mapping[str, Any], labels: Mapping[str, Sequence[str]], where: str) -> list[str]:
    return [f"{where}: label {name} leads nowhere" for name, path in labels.items() if found(schema, path) is None]


def configuration() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(CONFIGURATION.read_text())
    return loaded


def test_the_configuration_is_sound_and_every_path_leads_somewhere() -> None:
    assert faults(configuration()) == []


def test_both_kinds_tell_their_conditions() -> None:
    noted = {
        (resource["groupVersionKind"]["kind"], metric["name"])
        for resource in configuration()["spec"]["resources"]
        for metric in resource["metrics"]
    }
    assert {("LeadershipPolicy", "status_condition"), ("BrokerHealth", "status_condition")} <= noted


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        (("groupVersionKind", "kind"), "Policy", "there is no"),
        (("labelsFromPath", "policy"), ["metadata", "nam"], "leads nowhere"),
        (("labelsFromPath", "policy"), ["spec", "nothing"], "leads nowhere"),
        (("metrics", 1, "each", "gauge", "path"), ["status", "condition"], "leads nowhere"),
        (("metrics", 1, "each", "gauge", "valueFrom"), ["state"], "is no figure"),
        (("metrics", 1, "each", "gauge", "labelsFromPath"), {"type": ["kind"]}, "leads nowhere"),
        (("metrics", 1, "each", "gauge", "value"), ["status"], "is unknown"),
        (("metrics", 1, "each", "type"), "Counter", "neither a gauge nor an info"),
    ],
)
def test_what_is_wrong_is_found(path: Sequence[Any], value: Any, word: str) -> None:
    body = copy.deepcopy(configuration())
    at: Any = body["spec"]["resources"][0]
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    assert any(word in fault for fault in faults(body)), faults(body)
