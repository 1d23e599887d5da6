"""Write status by server-side apply, only when it differs (invariant 8).

In: a status as plain values. Out: server-side apply under the operator's field manager, which never sets ``signals``:
those belong to the probers. If another process overwrites it, such as a former leader that was frozen, the watches
report that and it is written again. Called by ``controllers`` at the end of each reconcile.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection
from dataclasses import dataclass

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import (
    BROKER_HEALTHS,
    LEADER_REBALANCES,
    POLICIES,
    KubernetesClient,
    Object,
    Resource,
)
from bellwether.adapters.kubernetes.api_errors import NotFound

MANAGER = "bellwether-operator"


@dataclass(frozen=True, slots=True)
class _Written:
    """The last known status, and the resource version at which it was seen."""

    status: str
    version: int


class StatusWriter:
    """Writes the operator's part of the status of policies and of BrokerHealths. Safe to use from several threads."""

    def __init__(self, api: KubernetesClient) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._last: dict[tuple[str, str, str], _Written] = {}

    def write_policy(self, namespace: str, name: str, status: Object) -> bool:
        """Write the policy's status if it differs; True if it was written. A deleted policy is ignored."""
        return self._write(POLICIES, namespace, name, status)

    def write_rebalance(self, namespace: str, name: str, status: Object) -> bool:
        """Write the status of a LeaderRebalance if it differs; True if it was written."""
        return self._write(LEADER_REBALANCES, namespace, name, status)

    def write_broker_health(self, namespace: str, policy: str, broker: int, status: Object) -> bool:
        """Write the operator's part of one broker's status if it differs; True if it was written."""
        if "signals" in status:
            raise ValueError("status.signals belongs to the probers: remove it")
        return self._write(BROKER_HEALTHS, namespace, object_names.broker_health(policy, broker), status)

    def stored_brokers(self, namespace: str, policy: str, brokers: Collection[int]) -> frozenset[int]:
        """Those of the brokers whose last written status is still stored, as far as is known."""
        prefix = object_names.broker_health(policy, 0)[:-1]
        with self._lock:
            return frozenset(b for b in brokers if (BROKER_HEALTHS.plural, namespace, f"{prefix}{b}") in self._last)

    def overwritten(self, resource: Resource, found: Object) -> bool:
        """Whether a newer version of an object has another status than was last written; if so it will be written.

        Resource versions of one kind are ordered (KEP-5504): a version older than the last write is ignored.
        """
        key = (resource.plural, found["metadata"]["namespace"], found["metadata"]["name"])
        with self._lock:
            last = self._last.get(key)
            if last is None or _version(found) <= last.version or _status_of(found) == last.status:
                return False
            del self._last[key]
        return True

    def saw(self, resource: Resource, found: Object) -> None:
        """Record an object that was just listed, so that an equal status is neither read again nor written."""
        metadata = found["metadata"]
        with self._lock:
            self._last[resource.plural, metadata["namespace"], metadata["name"]] = _Written(
                _status_of(found), _version(found)
            )

    def forget(self, namespace: str, policy: str) -> None:
        """Forget a deleted policy."""
        prefix = f"{object_names.broker_health(policy, 0)[:-1]}"
        mine = (POLICIES.plural, BROKER_HEALTHS.plural)
        with self._lock:
            for key in [k for k in self._last if k[0] in mine and k[1] == namespace]:
                if key[2] == policy or key[2].startswith(prefix):
                    del self._last[key]

    def _write(self, resource: Resource, namespace: str, name: str, status: Object) -> bool:
        key, wanted = (resource.plural, namespace, name), json.dumps(status, sort_keys=True)
        with self._lock:
            last = self._last.get(key)
        if last is not None and last.status == wanted:
            return False
        try:
            # After a restart it may be stored already.
            found = self._api.get(resource, namespace, name) if last is None else None
            if written := found is None or _status_of(found) != wanted:
                found = self._api.apply(resource, namespace, name, {"status": status}, MANAGER, sub="status")
        except NotFound:
            with self._lock:
                self._last.pop(key, None)
            return False
        with self._lock:
            self._last[key] = _Written(wanted, _version(found))
        return written


def _status_of(found: Object) -> str:
    """The operator's part of an object's status as text, equal for equal content."""
    status = {key: value for key, value in (found.get("status") or {}).items() if key != "signals"}
    return json.dumps(status, sort_keys=True)


def _version(found: Object) -> int:
    version = str(found["metadata"].get("resourceVersion", ""))
    return int(version) if version.isdigit() else 0
