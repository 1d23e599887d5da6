"""A refusal names the account, what it lacks, and where it is granted."""

from __future__ import annotations

import pytest

from bellwether.adapters.kubernetes import api_errors
from bellwether.adapters.kubernetes.api_errors import NamespaceEnding, OutdatedDefinition, denied
from bellwether.ports.errors import Terminal, Transient
from testkit.messages import assert_wording

RBAC = (
    'brokerhealths.bellwether.dev "main-1" is forbidden: User "system:serviceaccount:kafka:bw-prober" cannot patch '
    'resource "brokerhealths/status" in API group "bellwether.dev" in the namespace "kafka"'
)


def test_missing_verb_is_named_with_account_and_granting_role() -> None:
    assert_wording(denied("PATCH brokerhealths kafka/main-1", RBAC))


def test_what_is_asked_for_of_all_namespaces_needs_cluster_role() -> None:
    said = 'leases is forbidden: User "ann" cannot list resource "leases" in API group "x" at the cluster scope'
    text = denied("GET leases */*", said)
    assert_wording(text)


def test_the_core_group_has_a_name_for_people() -> None:
    said = 'secrets "a" is forbidden: User "ann" cannot get resource "secrets" in API group "" in the namespace "n"'
    assert_wording(denied("GET secrets n/a", said))


def test_an_admission_refusal_is_quoted_and_names_no_missing_verb() -> None:
    said = (
        "brokerhealths.bellwether.dev \"main-1\" is forbidden: ValidatingAdmissionPolicy 'bw-probers' with binding "
        "'bw-probers' denied request: kafka/bw-prober may write StorageLatency/broker-1 only"
    )
    text = denied("PATCH brokerhealths kafka/main-1", said)
    assert_wording(text)


def test_a_refusal_in_unknown_words_keeps_them() -> None:
    assert "it said so" in denied("GET leases n/a", "it said so")
    assert "no reason given" in denied("GET leases n/a", "")


TYPED = "failed to create typed patch object (kafka/main; bellwether.dev/v1alpha1, Kind=LeadershipPolicy): "


def refusal(status: int, message: str, what: str = "leadershippolicies kafka/main") -> Terminal | Transient:
    body = ('{"message": "%s"}' % message).encode()  # noqa: UP031 - JSON has braces
    return api_errors.refusal(status, body, "PATCH", what, ours=what.startswith("leadershippolicies"))


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize(
    ("detail", "field"),
    [
        (".status.plan: field not declared in schema", ".status.plan"),
        ("errors:\\n  .status.plan.blocked: field not declared in schema\\n  .x: y", ".status.plan.blocked"),
    ],
)
def test_field_unknown_to_served_definition_is_named_with_remedy(status: int, detail: str, field: str) -> None:
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
