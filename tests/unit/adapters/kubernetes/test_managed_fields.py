"""Which manager owns a field."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.adapters.kubernetes.managed_fields import owner_of

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
