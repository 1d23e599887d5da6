"""Refusals that the operator acts on by what they are: a namespace that ends, a definition that is too old."""

from __future__ import annotations

import pytest

from bellwether.adapters.kubernetes.api_client import NamespaceEnding, OutdatedDefinition, _refusal
from bellwether.ports.errors import Terminal, Transient
from testkit.messages import assert_wording

TYPED = "failed to create typed patch object (kafka/main; bellwether.dev/v1alpha1, Kind=LeadershipPolicy): "


def refusal(status: int, message: str, what: str = "leadershippolicies kafka/main") -> Terminal | Transient:
    return _refusal(status, ('{"message": "%s"}' % message).encode(), "PATCH", what)  # noqa: UP031 - JSON has braces


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize(
    ("detail", "field"),
    [
        (".status.plan: field not declared in schema", ".status.plan"),
        ("errors:\\n  .status.plan.blocked: field not declared in schema\\n  .x: y", ".status.plan.blocked"),
    ],
)
def test_a_field_that_the_served_definition_does_not_know_is_named_with_the_remedy(
    status: int, detail: str, field: str
) -> None:
    error = refusal(status, TYPED + detail)
    assert isinstance(error, OutdatedDefinition)
    assert_wording(str(error))
    assert "kubectl apply -f crds/" in str(error)


def test_another_kinds_schema_is_none_of_our_definitions() -> None:
    error = refusal(500, ".spec.x: field not declared in schema", "jobs kafka/plan")
    assert not isinstance(error, OutdatedDefinition)


def test_a_terminating_namespace_is_not_a_missing_permission() -> None:
    text = "configmaps is forbidden: unable to create new content in namespace kafka because it is being terminated"
    assert isinstance(refusal(403, text, "configmaps kafka/x"), NamespaceEnding)
    assert not isinstance(refusal(403, "configmaps is forbidden", "configmaps kafka/x"), NamespaceEnding)
