"""Create, adopt and delete the BrokerHealth objects of a policy, and remove entries of stale probers.

In: the policy object and the broker ids. Out: created, adopted and deleted objects. Called by ``controllers`` at each
reconcile; a settled cluster causes one list request and no write.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import (
    BROKER_HEALTHS,
    LEASES,
    Conflict,
    KubernetesClient,
    NotFound,
    Object,
)
from bellwether.adapters.kubernetes.objects.status_writer import MANAGER
from bellwether.ports.clock import Clock

MADE_LABEL = "app.kubernetes.io/managed-by"
GONE_AFTER_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Tidied:
    """What a call changed, by broker id."""

    made: tuple[int, ...] = ()
    deleted: tuple[int, ...] = ()


class BrokerHealths:
    """Maintains the BrokerHealth objects of policies."""

    def __init__(self, api: KubernetesClient, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._silent: dict[tuple[str, str], tuple[str, float]] = {}

    def ensure_broker_healths(self, policy: Object, ids: Collection[int]) -> Tidied:
        """Create one object for each id, and delete those of other brokers that the operator created.

        An object that a user created first, to override a broker early, is adopted. One that a user created for an
        unknown broker is left alone, and the policy's status names it.
        """
        namespace, name = policy["metadata"]["namespace"], policy["metadata"]["name"]
        found = {o["metadata"]["name"]: o for o in self._api.list(BROKER_HEALTHS, namespace)}
        wanted = {object_names.broker_health(name, broker): broker for broker in ids}
        made = []
        for object_name, broker in sorted(wanted.items(), key=lambda item: item[1]):
            if object_name not in found or not _ours(found[object_name], name):
                self._api.apply(BROKER_HEALTHS, namespace, object_name, _broker_health(policy, broker), MANAGER)
                made.append(broker)
        deleted = []
        for object_name, one in found.items():
            if object_name in wanted or not _ours(one, name) or one["metadata"].get("deletionTimestamp"):
                continue
            try:
                self._api.delete(BROKER_HEALTHS, namespace, object_name, one["metadata"]["resourceVersion"])
            except (NotFound, Conflict):
                continue  # deleted already, or just changed: the next call decides again
            deleted.append(int(one["spec"]["brokerId"]))
        return Tidied(tuple(made), tuple(sorted(deleted)))

    def collect(self, namespace: str, policy: str, gone_after_seconds: float = GONE_AFTER_SECONDS) -> tuple[str, ...]:
        """Remove the entries of probers whose Lease has been missing or not renewed for that long, by this process's
        clock.

        Returns the removed entries as ``<object>: <type>/<source>``.
        """
        labels = {object_names.POLICY_LABEL: object_names.legal(policy)}
        leases = self._api.list(LEASES, namespace, {**labels, object_names.PROBER_LABEL: "true"})
        renewals = {o["metadata"]["name"]: str((o.get("spec") or {}).get("renewTime") or "") for o in leases}
        removed = []
        for one in self._api.list(BROKER_HEALTHS, namespace, labels):
            entries = (one.get("status") or {}).get("signals") or []
            gone = [e for e in entries if self._is_gone(namespace, e, renewals, gone_after_seconds)]
            if gone and self._remove(namespace, one, [e for e in entries if e not in gone]):
                removed += [f"{one['metadata']['name']}: {e.get('type')}/{e.get('source')}" for e in gone]
        return tuple(removed)

    def _is_gone(self, namespace: str, entry: Object, renewals: dict[str, str], after: float) -> bool:
        now, lease = self._clock.monotonic(), str(entry.get("leaseName"))
        renewal = renewals.get(lease, "")
        since = self._silent.get((namespace, lease))
        if since is None or since[0] != renewal:
            since = self._silent[namespace, lease] = (renewal, now)
        return now - since[1] > after

    def _remove(self, namespace: str, one: Object, kept: list[Object]) -> bool:
        patch = {
            "metadata": {"resourceVersion": one["metadata"]["resourceVersion"]},
            "status": {"signals": kept},
        }
        try:
            self._api.merge(BROKER_HEALTHS, namespace, one["metadata"]["name"], patch, sub="status")
        except (NotFound, Conflict):
            return False  # a prober has just written: the next call tries again
        return True


def _ours(found: Object, policy: str) -> bool:
    labels = found["metadata"].get("labels") or {}
    return labels.get(MADE_LABEL) == "bellwether" and labels.get(object_names.POLICY_LABEL) == object_names.legal(
        policy
    )


def _broker_health(policy: Object, broker: int) -> Object:
    metadata = policy["metadata"]
    return {
        "metadata": {
            "labels": {
                MADE_LABEL: "bellwether",
                object_names.POLICY_LABEL: object_names.legal(metadata["name"]),
                object_names.BROKER_LABEL: str(broker),
            },
            "ownerReferences": [
                {
                    "apiVersion": policy["apiVersion"],
                    "kind": policy["kind"],
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                }
            ],
        },
        "spec": {"brokerId": broker, "policyRef": {"name": metadata["name"]}},
    }
