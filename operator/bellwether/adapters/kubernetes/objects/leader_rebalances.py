"""The LeaderRebalance of a policy, read from the API. Called by commands and the sampler; the operator lists itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bellwether.adapters.kubernetes.api_client import LEADER_REBALANCES, KubernetesClient
from bellwether.adapters.kubernetes.kept_fields import kept_list
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy


def with_rebalances(
    api: KubernetesClient, policy: LeadershipPolicy, namespace: str = "", changed: Iterable[Mapping[str, Any]] = ()
) -> LeadershipPolicy:
    """The policy with its LeaderRebalance, as in the API or with the ``spec`` that ``changed`` has for that name.

    Raises Transient or Terminal.
    """
    listed = kept_list(api, LEADER_REBALANCES, namespace or policy.metadata.namespace)
    known: dict[str, Mapping[str, Any]] = {body["metadata"]["name"]: body for body in listed}
    for body in changed:
        name = body["metadata"]["name"]
        known[name] = {**known.get(name, body), "spec": body.get("spec")}
    return policy.with_rebalances(known.values())
