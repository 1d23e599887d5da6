"""LeaderRebalance: rebalancing of the leaders of one LeadershipPolicy's cluster by measured load.

It names its policy in ``spec.policy``; which object a policy uses is chosen by ``choose_rebalance``, for the operator,
the sampler and the CLI. The operator writes the status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import Field

from bellwether.api.v1alpha1.base_model import InvalidObject, Object
from bellwether.api.v1alpha1.spec.rebalance_spec import LeaderRebalanceSpec
from bellwether.api.v1alpha1.status.rebalance_status import LeaderRebalanceStatus

APPROVE_ANNOTATION = "bellwether.dev/approve-plan"
"""Annotation that names the digest of the plan that may be applied."""

REQUEST_ANNOTATION = "bellwether.dev/rebalance"
"""Annotation that asks for a plan now, once for each new value."""


class LeaderRebalance(Object):
    """Rebalances the leaders of one Kafka cluster by measured load: plans that are proposed, approved and applied in
    waves.
    """

    longest_name: ClassVar[int] = 63

    kind: Literal["LeaderRebalance"] = "LeaderRebalance"
    spec: LeaderRebalanceSpec
    status: LeaderRebalanceStatus = Field(default_factory=LeaderRebalanceStatus)


@dataclass(frozen=True, slots=True)
class ChosenRebalance:
    """The LeaderRebalance that a policy uses, and why it does not use others that name it, by name.

    ``body`` is the object that is used, or would be if it were valid; empty if none names the policy.
    """

    used: LeaderRebalance | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    unused: Mapping[str, tuple[Mapping[str, Any], str]] = field(default_factory=dict)


def policy_named(body: Mapping[str, Any]) -> str:
    """The policy that an object names, which may be invalid; empty if none."""
    spec = body.get("spec")
    return str(spec.get("policy") or "") if isinstance(spec, Mapping) else ""


def choose_rebalance(policy: str, bodies: Iterable[Mapping[str, Any]], *, placed: bool = False) -> ChosenRebalance:
    """Of the LeaderRebalances of a namespace the one of a policy: the oldest that names it, by time and then by name.

    One without a creation time, which is not in the API yet, is the youngest.
    ``placed``: the policy has ``spec.placement``, which decides for its plans, too.
    """
    mine = [body for body in bodies if policy_named(body) == policy and not _head(body).get("deletionTimestamp")]
    if not mine:
        return ChosenRebalance()
    first, *others = sorted(mine, key=_age)
    text = f"policy {policy} uses LeaderRebalance {_name(first)}, which is older or first by name: delete one of them"
    unused = {_name(body): (body, text) for body in others}
    try:
        used = LeaderRebalance.read(first)
        if placed and used.spec.objective.preferred_racks:
            text = "must not be set: spec.placement of the policy also applies to load plans: remove it"
            raise InvalidObject(f"LeaderRebalance {_name(first)}: spec.objective.preferredRacks: {text}")
    except InvalidObject as error:
        return ChosenRebalance(None, first, {_name(first): (first, str(error)), **unused})
    return ChosenRebalance(used, first, unused)


def _age(body: Mapping[str, Any]) -> tuple[bool, str, str]:
    created = str(_head(body).get("creationTimestamp") or "")
    return not created, created, _name(body)


def _head(body: Mapping[str, Any]) -> Mapping[str, Any]:
    found = body.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _name(body: Mapping[str, Any]) -> str:
    return str(_head(body).get("name") or "")
