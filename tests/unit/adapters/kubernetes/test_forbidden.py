"""Whoever is refused reads who lacks what, and where it is granted."""

from __future__ import annotations

from bellwether.adapters.kubernetes.forbidden import denied
from testkit.messages import assert_wording

RBAC = (
    'brokerhealths.bellwether.dev "main-1" is forbidden: User "system:serviceaccount:kafka:bw-prober" cannot patch '
    'resource "brokerhealths/status" in API group "bellwether.dev" in the namespace "kafka"'
)


def test_a_missing_verb_is_named_with_the_account_that_lacks_it_and_the_role_that_would_grant_it() -> None:
    assert_wording(denied("PATCH brokerhealths kafka/main-1", RBAC))


def test_what_is_asked_for_of_all_namespaces_needs_a_cluster_role() -> None:
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
