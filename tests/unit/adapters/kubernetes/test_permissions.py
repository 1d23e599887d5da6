"""An account's lacks are reported one by one, each with what it is for and where it is granted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import KubernetesClient, Object, Resource
from bellwether.adapters.kubernetes.permissions import OPERATOR, PROBER, REVIEWS, SAMPLER, Need, Only, operator_lacks
from testkit.messages import assert_wording


class Reviewed(KubernetesClient):
    """Answers access reviews by a rule, and keeps what was asked."""

    def __init__(self, allows: Callable[[dict[str, str]], bool]) -> None:
        super().__init__(None)
        self._allows = allows
        self.asked: list[dict[str, str]] = []

    def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        assert (resource, namespace) == (REVIEWS, "")
        asked = body["spec"]["resourceAttributes"]
        self.asked.append(asked)
        return {**body, "status": {"allowed": self._allows(asked)}}


def test_who_has_everything_lacks_nothing() -> None:
    assert list(operator_lacks(Reviewed(lambda _: True), [], "ops")) == []


def test_a_missing_right_is_named_with_its_use_and_role() -> None:
    api = Reviewed(lambda asked: (asked["verb"], asked["resource"]) != ("create", "events"))
    assert_wording(list(operator_lacks(api, ["kafka"], "ops")))
    assert ["in a ClusterRole" in one for one in operator_lacks(api, [], "ops")] == [True]


def test_objects_of_the_operators_namespace_are_checked_in_that_namespace() -> None:
    api = Reviewed(lambda asked: asked.get("namespace") != "ops")
    missing = list(operator_lacks(api, ["kafka"], "ops"))
    assert len(missing) == 8
    assert all("in a Role of namespace ops" in one for one in missing)


def test_nothing_is_asked_of_whole_cluster_where_namespaces_are_named() -> None:
    named, every = Reviewed(lambda _: True), Reviewed(lambda _: True)
    list(operator_lacks(named, ["a", "b"], "ops"))
    list(operator_lacks(every, [], "ops"))
    assert {asked.get("namespace") for asked in named.asked} == {"a", "b", "ops"}
    assert not any(asked["resource"] == "customresourcedefinitions" for asked in [*named.asked, *every.asked])


def test_subresources_are_asked_for_by_their_own_name() -> None:
    api = Reviewed(lambda asked: asked["subresource"] != "status")
    assert {one.split()[2] for one in operator_lacks(api, [], "ops")} == {
        "leadershippolicies/status",
        "brokerhealths/status",
        "leaderrebalances/status",
    }


@pytest.mark.parametrize("role", [PROBER, SAMPLER])
def test_prober_and_sampler_write_nothing_that_is_operators(role: tuple[Need, ...]) -> None:
    writes = {(need.resource, verb) for need in role for verb in need.verbs if verb not in ("get", "list", "watch")}
    assert writes <= {("brokerhealths/status", "patch"), ("leases", "create"), ("leases", "update")}


def test_secrets_are_read_by_name_and_never_listed() -> None:
    found: list[Any] = [need for role in (OPERATOR, PROBER, SAMPLER) for need in role if need.resource == "secrets"]
    assert {(need.verbs, need.only) for need in found} == {(("get",), Only.SECRETS)}
