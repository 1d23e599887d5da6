"""Of an object all is held that is used, and nothing that others put there; which manager owns a field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import LEADER_REBALANCES, SIGNAL_SOURCES
from bellwether.adapters.kubernetes.kept_fields import kept, owner_of
from bellwether.adapters.kubernetes.objects.leader_rebalances import with_rebalances
from bellwether.adapters.kubernetes.objects.signal_sources import with_sources
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi

APPROVE = "bellwether.dev/approve-plan"
OVERRIDE = {"f:spec": {"f:override": {"f:state": {}, "f:reason": {}}}}


def managed(*entries: Any) -> dict[str, Any]:
    return {"metadata": {"managedFields": list(entries)}}


def entry(manager: str, fields: Any, time: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields}


def test_the_manager_that_owns_the_field_is_named() -> None:
    found = managed(entry("bellwether-operator", {"f:spec": {"f:brokerId": {}}}), entry("kubectl-patch", OVERRIDE))
    assert owner_of(found, "spec", "override") == "field manager kubectl-patch"


def test_of_several_the_last_one_counts() -> None:
    found = managed(
        entry("argocd", OVERRIDE, "2026-01-01T00:00:02Z"), entry("kubectl", OVERRIDE, "2026-01-01T00:00:01Z")
    )
    assert owner_of(found, "spec", "override") == "field manager argocd"


def test_an_annotation_is_found_by_its_whole_name() -> None:
    fields = {"f:metadata": {"f:annotations": {"f:bellwether.dev/approve-plan": {}}}}
    found = managed(entry("kubectl-annotate", fields))
    path = ("metadata", "annotations", "bellwether.dev/approve-plan")
    assert owner_of(found, *path) == "field manager kubectl-annotate"


@pytest.mark.parametrize(
    "found",
    [
        {"metadata": {}},
        managed(),
        managed(entry("kubectl", {"f:spec": {}})),
        managed(entry("kubectl", None)),
        managed("nonsense"),
    ],
)
def test_a_field_without_owner_has_no_name(found: dict[str, Any]) -> None:
    assert owner_of(found, "spec", "override") == ""


def test_large_sources_and_rebalances_are_left_out_as_by_the_operator() -> None:
    api, large = MemoryApi(), {"padding": "x" * (300 << 10)}
    for kind, body in ((SIGNAL_SOURCES, api_objects.at_prometheus()), (LEADER_REBALANCES, api_objects.rebalance())):
        api.put(kind, body)
        api.put(kind, {**body, "metadata": {**body["metadata"], "name": "large", "annotations": large}})
    policy = LeadershipPolicy.read(api_objects.naming(api_objects.at_prometheus()["metadata"]["name"], "large"))
    assert "no SignalSource large exists" in str(with_sources(api, policy).sources)
    used = with_rebalances(api, policy).rebalance
    assert used is not None
    assert used.metadata.name == api_objects.LOADS


def test_only_what_is_used_of_an_object_is_kept() -> None:
    many = {f"f:padding-{number}": {} for number in range(10_000)}
    approved = entry("kubectl", {"f:metadata": {"f:annotations": {f"f:{APPROVE}": {}, **many}, "f:labels": many}})
    overridden = entry("gitops", {"f:spec": {"f:override": {}}, "f:status": many})
    body = {
        "kind": "BrokerHealth",
        "spec": {"brokerId": 1},
        "status": {"leaders": 2},
        "metadata": {
            "name": "main-1",
            "annotations": {APPROVE: "x", "padding": "x" * 200_000},
            "labels": {"padding": "x"},
            "managedFields": [approved, overridden, entry("others", many)],
        },
    }
    found = kept(body)
    assert found["metadata"]["annotations"] == {APPROVE: "x"}
    assert len(json.dumps(found)) < 1000
    assert [found[key] for key in ("kind", "spec", "status")] == [body[key] for key in ("kind", "spec", "status")]
    assert owner_of(found, "spec", "override") == "field manager gitops"
    assert owner_of(found, "metadata", "annotations", APPROVE) == "field manager kubectl"
    assert kept(found) == found
