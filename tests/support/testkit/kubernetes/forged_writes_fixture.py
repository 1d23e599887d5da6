"""A stage for forged writes: two policies with brokers, probers of all sorts, and RBAC that was given too generously.

What is refused here is refused by admission alone.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES, KubernetesClient, Object, connect
from bellwether.adapters.kubernetes.objects.broker_health_objects import BrokerHealths
from realparts.apiserver import ApiServer
from testkit.kubernetes.chart_accounts import FULL, OPERATOR, Accounts, Grant

BROKERS = (1, 2, 3)
ZONE_A, ZONE_B = f"{FULL}-prober-reachability-zone-a", f"{FULL}-prober-reachability-zone-b"
RULES, SIDECARS, SINGLE, STRANGER = f"{FULL}-prober-prometheus", "brokers", "single", "default"
GENEROUS = {
    "rules": [
        {"apiGroups": ["bellwether.dev"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["*"]},
    ]
}


class Stage:
    """Clients by account. ``main`` and ``other`` are policies of three brokers each, in ``namespace``."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.namespace = server.create_namespace(f"bound-{uuid.uuid4().hex[:8]}")
        self.admin: KubernetesClient = connect(server.kubeconfig)
        probers: list[dict[str, Any]] = [
            {"kind": "Reachability", "vantage": "zone-a"},
            {"kind": "Reachability", "vantage": "zone-b"},
            {"kind": "Prometheus"},
        ]
        self.accounts = Accounts(
            server,
            self.namespace,
            {
                "watchNamespaces": [self.namespace],
                "probers": probers,
                "sidecars": {
                    "accounts": [
                        {"name": SIDECARS, "policy": "main", "firstBrokerIds": {"kafka-broker": 2}},
                        {"name": SINGLE, "policy": "main", "brokerIds": [3]},
                    ],
                    "quarantineAgent": {"enabled": True},
                },
            },
        )
        for account in (SIDECARS, SINGLE, STRANGER):
            self.accounts.make(account)
        self._be_generous()
        for policy in ("main", "other"):
            body = {
                "apiVersion": POLICIES.api_version,
                "kind": POLICIES.kind,
                "metadata": {"name": policy, "namespace": self.namespace},
                "spec": {"mode": "Observe", "kafka": {"bootstrapServers": ["kafka.invalid:9092"]}},
            }
            made = self.admin.create(POLICIES, self.namespace, body)
            BrokerHealths(self.by(OPERATOR), SystemClock()).ensure_broker_healths(made, BROKERS)

    def by(self, account: str, pod: str = "") -> KubernetesClient:
        """A client that is that account, with a token of a pod of that name where one is given."""
        return self.accounts.client(account, pod)

    def health(self, broker: int, policy: str = "main") -> Object:
        """A broker's object as it is."""
        return self.admin.get(BROKER_HEALTHS, self.namespace, object_names.broker_health(policy, broker))

    def signals(self, broker: int) -> dict[tuple[str, str], str]:
        """Readings by type and source."""
        found = (self.health(broker).get("status") or {}).get("signals") or []
        return {(e["type"], e["source"]): e["reading"] for e in found}

    def apply(self, api: KubernetesClient, broker: int, *entries: Object, manager: str = "m", **status: Any) -> Object:
        """Server-side apply to a status, by force as probers do."""
        body = {"status": {**status, **({"signals": list(entries)} if entries else {})}}
        return api.apply(
            BROKER_HEALTHS, self.namespace, object_names.broker_health("main", broker), body, manager, sub="status"
        )

    def _be_generous(self) -> None:
        subjects = [
            {"kind": "ServiceAccount", "name": account, "namespace": self.namespace}
            for account in (ZONE_A, ZONE_B, RULES, SIDECARS, SINGLE, STRANGER, OPERATOR)
        ]
        version = "rbac.authorization.k8s.io/v1"
        metadata = {"name": "too-generous", "namespace": self.namespace}
        reference = {"apiGroup": version.partition("/")[0], "kind": "Role", "name": "too-generous"}
        role = {"apiVersion": version, "kind": "Role", "metadata": metadata, **GENEROUS}
        binding = {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": reference,
            "subjects": subjects,
        }
        items = {"apiVersion": "v1", "kind": "List", "items": [role, binding]}
        self.server.kubectl("apply", "-f", "-", stdin=json.dumps(items))
        grant = Grant("bellwether.dev", "brokerhealths", "delete", self.namespace, "Role", "too-generous")
        self.accounts.until_allowed(self.accounts.user(STRANGER), [grant])


def entry(type_: str, source: str, reading: str = "Passing", *, lease: str = "", policy: str = "main") -> Object:
    """An entry as that prober would write it."""
    place = "rules" if type_ == "Prometheus" else source
    return {
        "type": type_,
        "source": source,
        "reading": reading,
        "since": "2026-01-01T00:00:00Z",
        "proberUID": "0b0c3a9e-0000-4000-8000-000000000000",
        "sequence": 1,
        "leaseName": lease or object_names.prober_lease(policy, type_, place),
    }
