"""Create, adopt and delete the BrokerHealth objects of a policy, and remove entries of stale probers.

In: the policy object and the broker ids. Out: created, adopted and deleted objects. Called by ``controllers`` at each
reconcile; a settled cluster causes one list request and no write.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress

import structlog

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, KubernetesClient, Object
from bellwether.adapters.kubernetes.api_errors import Conflict, NotFound
from bellwether.adapters.kubernetes.objects.status_writer import MANAGER
from bellwether.ports.clock import Clock

MADE_LABEL = "app.kubernetes.io/managed-by"
GONE_AFTER_SECONDS = 3600.0

log = structlog.get_logger(__name__)


class BrokerHealths:
    """Maintains the BrokerHealth objects of policies."""

    def __init__(self, api: KubernetesClient, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        # By policy and Lease: its last renewal, and since when there was no other.
        self._silent: dict[tuple[str, str], dict[str, tuple[str, float]]] = {}

    def ensure_broker_healths(self, policy: Object, ids: Collection[int]) -> Mapping[int, str]:
        """Create one object for each id, and delete those of other brokers that the operator created. Returns the uids.

        An object that a user created first, to override a broker early, is adopted. One that a user created for an
        unknown broker is left alone, and the policy's status names it.
        """
        namespace, name = policy["metadata"]["namespace"], policy["metadata"]["name"]
        labels = {MADE_LABEL: "bellwether", object_names.POLICY_LABEL: object_names.legal(name)}
        found = {o["metadata"]["name"]: o for o in self._api.list(BROKER_HEALTHS, namespace, labels)}
        wanted = {object_names.broker_health(name, broker): broker for broker in ids}
        for object_name, broker in sorted(wanted.items(), key=lambda one: one[1]):
            if object_name in found:
                continue
            body = _broker_health(policy, broker)
            found[object_name] = self._api.apply(BROKER_HEALTHS, namespace, object_name, body, MANAGER)
        for object_name, one in found.items():
            if object_name in wanted or one["metadata"].get("deletionTimestamp"):
                continue
            with suppress(NotFound, Conflict):  # deleted already, or just changed: the next call decides again
                self._api.delete(BROKER_HEALTHS, namespace, object_name, one["metadata"]["resourceVersion"])
        return {broker: found[one]["metadata"]["uid"] for one, broker in wanted.items()}

    def collect(self, namespace: str, policy: str, gone_after_seconds: float = GONE_AFTER_SECONDS) -> tuple[str, ...]:
        """Remove the entries of probers whose Lease has been missing or not renewed for that long, by this process's
        clock.

        Returns the removed entries as ``<object>: <type>/<source>``.
        """
        labels = {object_names.POLICY_LABEL: object_names.legal(policy)}
        leases = self._api.list(LEASES, namespace, {**labels, object_names.PROBER_LABEL: "true"})
        renewals = {o["metadata"]["name"]: str((o.get("spec") or {}).get("renewTime") or "") for o in leases}
        removed = []
        healths, now = self._api.list(BROKER_HEALTHS, namespace, labels), self._clock.monotonic()
        before, silent = self._silent.pop((namespace, policy), {}), {}
        for one in healths:
            for lease in {str(e.get("leaseName")) for e in (one.get("status") or {}).get("signals") or []}:
                known, renewal = before.get(lease), renewals.get(lease, "")
                silent[lease] = known if known is not None and known[0] == renewal else (renewal, now)
        if silent:
            self._silent[namespace, policy] = silent
        for one in healths:
            entries = (one.get("status") or {}).get("signals") or []
            gone = [e for e in entries if now - silent[str(e.get("leaseName"))][1] > gone_after_seconds]
            if gone and self._remove(namespace, one, [e for e in entries if e not in gone]):
                removed += [f"{one['metadata']['name']}: {e.get('type')}/{e.get('source')}" for e in gone]
        return tuple(removed)

    def forget(self, namespace: str, policy: str) -> None:
        """Forget a deleted policy."""
        self._silent.pop((namespace, policy), None)

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
