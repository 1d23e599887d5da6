"""Status, written only when it says something new (law 8).

In: a status as plain values. Out: server-side apply under the operator's own field manager, which never names
``signals``: those are the probers'. Called by ``handlers`` at the end of each cycle.
"""

from __future__ import annotations

import json
import threading

from bellwether.adapters.kubernetes import names
from bellwether.adapters.kubernetes.client import BROKER_HEALTHS, POLICIES, KubernetesClient, NotFound, Object, Resource

MANAGER = "bellwether-operator"


class StatusWriter:
    """Writes the operator's part of the status of policies and of BrokerHealths. Safe to use from several threads."""

    def __init__(self, api: KubernetesClient) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._last: dict[tuple[str, str, str], str] = {}

    def write_policy(self, namespace: str, name: str, status: Object) -> bool:
        """Make this the policy's status; True when it had to be written. A policy that is gone is left in peace."""
        return self._write(POLICIES, namespace, name, status)

    def write_broker_health(self, namespace: str, policy: str, broker: int, status: Object) -> bool:
        """Make this the operator's part of one broker's status; True when it had to be written."""
        if "signals" in status:
            raise ValueError("status.signals belongs to the probers: leave it out")
        return self._write(BROKER_HEALTHS, namespace, names.broker_health(policy, broker), status)

    def forget(self, namespace: str, policy: str) -> None:
        """Drop what is remembered of a policy that is gone."""
        prefix = f"{names.broker_health(policy, 0)[:-1]}"
        with self._lock:
            for key in [k for k in self._last if k[1] == namespace and (k[2] == policy or k[2].startswith(prefix))]:
                del self._last[key]

    def _write(self, resource: Resource, namespace: str, name: str, status: Object) -> bool:
        key, wanted = (resource.plural, namespace, name), json.dumps(status, sort_keys=True)
        with self._lock:
            last = self._last.get(key)
        if last == wanted:
            return False
        try:
            if last is None and self._stands(resource, namespace, name, wanted):
                written = False
            else:
                self._api.apply(resource, namespace, name, {"status": status}, MANAGER, sub="status")
                written = True
        except NotFound:
            with self._lock:
                self._last.pop(key, None)
            return False
        with self._lock:
            self._last[key] = wanted
        return written

    def _stands(self, resource: Resource, namespace: str, name: str, wanted: str) -> bool:
        """Whether the status stands already, as after a restart."""
        found = self._api.get(resource, namespace, name)
        status = {key: value for key, value in (found.get("status") or {}).items() if key != "signals"}
        return json.dumps(status, sort_keys=True) == wanted
