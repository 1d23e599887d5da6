"""Which LeaderRebalance a policy uses, and why it uses no other."""

from __future__ import annotations

import pytest

from bellwether.api.v1alpha1.base_model import InvalidObject
from bellwether.api.v1alpha1.leader_rebalance import ChosenRebalance
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.settings.rebalance import Rebalance
from testkit.kubernetes.api_objects import Body, policy, rebalance


def named(name: str, created: str = "2026-11-29T01:00:00Z", **spec: object) -> Body:
    body = rebalance(name, **spec)  # type: ignore[arg-type]
    body["metadata"]["creationTimestamp"] = created
    return body


def chosen(*bodies: Body, **spec: object) -> ChosenRebalance:
    return LeadershipPolicy.read(policy(**spec)).with_rebalances(bodies).rebalances


def used(found: ChosenRebalance) -> str | None:
    return found.used.metadata.name if found.used is not None else None


def test_rebalance_of_another_policy_is_not_used():
    assert chosen(rebalance(policy="other")) == ChosenRebalance()


def test_rebalance_of_the_policy_reaches_the_core():
    found = LeadershipPolicy.read(policy())
    assert found.policy().rebalance is None
    assert found.with_rebalances([rebalance()]).policy().rebalance == Rebalance()


def test_oldest_of_several_is_used_and_named_to_the_others():
    found = chosen(named("a", "2026-11-29T02:00:00Z"), named("b"))
    assert (used(found), {name: why for name, (_, why) in found.unused.items()}) == (
        "b",
        {"a": "policy main uses LeaderRebalance b, which is older or first by name: delete one of them"},
    )


def test_of_equally_old_ones_the_first_by_name_is_used():
    assert used(chosen(named("b"), named("a"))) == "a"


def test_a_rebalance_of_a_file_is_younger_than_stored_ones():
    assert used(chosen(rebalance("a"), named("b"))) == "b"


def test_a_rebalance_that_is_being_deleted_is_not_used():
    going = named("a", "2026-11-29T00:00:00Z")
    going["metadata"]["deletionTimestamp"] = "2026-11-29T03:00:00Z"
    assert (used(chosen(going, named("b"))), [*chosen(going).unused]) == ("b", [])


def test_an_invalid_rebalance_is_not_used_and_names_its_field():
    found = chosen(named("a", schedule="0 25 * * *"), named("b", "2026-11-29T02:00:00Z"))
    assert (used(found), [*found.unused]) == (None, ["a", "b"])
    assert "spec.schedule: '0 25 * * *' is not a schedule" in found.unused["a"][1]


def test_preferred_racks_with_a_placement_are_not_used():
    racks = {"preferredRacks": ["a"]}
    found = chosen(named("a", objective=racks), placement={"racks": ["b"]})
    assert used(found) is None
    assert "spec.objective.preferredRacks: must not be set" in found.unused["a"][1]
    assert used(chosen(named("a", objective=racks))) == "a"


def test_the_former_field_of_a_policy_is_refused_with_the_new_form():
    with pytest.raises(InvalidObject) as refused:
        LeadershipPolicy.read(policy(rebalance={"schedule": "0 4 * * *"}))
    assert "spec.rebalance: has become a LeaderRebalance" in str(refused.value)
    assert "kind: LeaderRebalance, metadata: {name: NAME}, spec: {policy: THIS POLICY, THESE FIELDS}" in str(
        refused.value
    )
