"""Limit on the policies of one namespace that are reconciled: the oldest ones have a place, the others wait.

Pure bookkeeping for ``policy_manager``, which calls it under its lock, and for probers and the sampler, which serve the
same policies. The order is that of creation, which the API server sets, so that all replicas choose the same policies
and a new policy displaces no older one. Policies that are being deleted come first: they restore their baselines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

PER_NAMESPACE = 100
"""Default of the limit. Each policy has a thread of its own, and a second one while it holds a Lease."""

Named = tuple[str, str]
"""Namespace and name of a policy."""

_Rank = tuple[bool, str, str]


def oldest(bodies: Iterable[dict[str, Any]], limit: int) -> frozenset[Named]:
    """Those of these policies that have a place; ``limit`` 0: all."""
    ranks: defaultdict[str, list[_Rank]] = defaultdict(list)
    for body in bodies:
        ranks[body["metadata"]["namespace"]].append(_rank(body["metadata"]))
    return frozenset((space, name) for space, found in ranks.items() for name in _placed(found, limit))


class PolicyQuota:
    """Which policies have a place; ``limit`` 0: all."""

    def __init__(self, limit: int = PER_NAMESPACE) -> None:
        self._limit = limit
        self._ranks: dict[str, dict[str, _Rank]] = {}
        self._placed: dict[str, frozenset[str]] = {}

    def seen(self, body: dict[str, Any]) -> frozenset[Named]:
        """A policy was seen; returns the policies that got or lost a place, also this one."""
        metadata = body["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        known = self._ranks.setdefault(namespace, {})
        rank = _rank(metadata)
        if known.get(name) == rank:
            return frozenset()
        known[name] = rank
        return self._place(namespace)

    def gone(self, key: Named) -> frozenset[Named]:
        """A policy was deleted; returns the policies that got or lost a place, also this one."""
        namespace, name = key
        if self._ranks.get(namespace, {}).pop(name, None) is None:
            return frozenset()
        found = self._place(namespace)
        if not self._ranks[namespace]:
            del self._ranks[namespace], self._placed[namespace]
        return found

    def has_place(self, key: Named) -> bool:
        """Whether a policy is to be reconciled."""
        return key[1] in self._placed.get(key[0], ())

    def known(self) -> frozenset[Named]:
        """All policies that were seen and not deleted."""
        return frozenset((namespace, name) for namespace, names in list(self._ranks.items()) for name in list(names))

    def clear(self) -> None:
        """Forget all."""
        self._ranks.clear()
        self._placed.clear()

    def refusal(self, namespace: str) -> str:
        """Why a policy of this namespace waits, and what to do."""
        return (
            f"namespace {namespace} has more than {self._limit} LeadershipPolicies, and only the {self._limit} oldest"
            " are reconciled: delete those that are not needed, or ask the administrator to raise"
            " --max-policies-per-namespace (chart value operator.maxPoliciesPerNamespace)"
        )

    def _place(self, namespace: str) -> frozenset[Named]:
        before, now = self._placed.get(namespace, frozenset()), _placed(self._ranks[namespace].values(), self._limit)
        self._placed[namespace] = now
        return frozenset((namespace, name) for name in before ^ now)


def _placed(ranks: Iterable[_Rank], limit: int) -> frozenset[str]:
    """Names of the policies of one namespace that have a place."""
    return frozenset(rank[-1] for rank in sorted(ranks)[: limit or None])


def _rank(metadata: dict[str, Any]) -> _Rank:
    return not metadata.get("deletionTimestamp"), str(metadata.get("creationTimestamp") or ""), metadata["name"]
