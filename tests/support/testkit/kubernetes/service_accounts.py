"""Operator, probers, sampler and people as processes with the chart's accounts.

In: an audited API server, brokers. Out: a ``Crew``: a ``Site`` whose processes carry tokens of ServiceAccounts, which
have what the chart gives them, in a namespace apart from the policy's; and a Secret that policies refer to.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, POLICIES, SECRETS, Object
from bellwether.adapters.kubernetes.kept_fields import kept
from bellwether.adapters.kubernetes.objects.broker_health_objects import BrokerHealths
from bellwether.adapters.kubernetes.objects.quarantine_orders import COMPONENT, LeaseOrders
from realparts.auditing import AuditedApiServer, Call
from realparts.kafka import KafkaCluster
from realparts.processes import ManagedProcess
from testkit.kafka.formatted_directories import broker_process, formatted
from testkit.kubernetes.chart_accounts import FULL, OPERATOR, Accounts, Grant, of_role
from testkit.processes.sites import POLICY, Site
from testkit.values.builders import after
from testkit.values.quarantine_inputs import ordered
from waiting import limit

CREDENTIALS, TOKEN = "kafka-credentials", "a-token-hard-to-guess"
REACHABILITY, REPLICATION = f"{FULL}-prober-reachability-zone-a", f"{FULL}-prober-replication"
RULES, SIDECARS = f"{FULL}-prober-prometheus", "brokers"
PERSON = "ann"


class Crew:
    """See the module. ``home`` is the release's namespace; policies are in ``site.namespace``.

    ``everywhere``: the operator watches all namespaces. ``values`` of the chart are added to those that all crews have.
    """

    def __init__(
        self,
        server: AuditedApiServer,
        kafka: KafkaCluster,
        directory: Path,
        *,
        everywhere: bool = False,
        **values: Any,
    ) -> None:
        self.server = server
        self.site = Site(server, kafka, directory)
        self.namespaces = [self.site.namespace]  # of policies
        self.home = server.create_namespace(f"home-{uuid.uuid4().hex[:8]}")
        self.everywhere = everywhere
        self.directory = directory
        whole: dict[str, Any] = {
            "watchNamespaces": [] if everywhere else [self.site.namespace],
            "watchAllNamespaces": everywhere,
            "rbac": {"secretNames": [CREDENTIALS]},
            "spark": {"enabled": True, "namespaces": [self.site.namespace]},
            "probers": [
                {"kind": "Reachability", "vantage": "zone-a"},
                {"kind": "Replication"},
                {"kind": "Prometheus"},
            ],
            "sidecars": {
                "quarantineAgent": {"enabled": True},
                "accounts": [
                    {
                        "name": SIDECARS,
                        "namespace": self.home,
                        "policy": POLICY,
                        "policyNamespace": self.site.namespace,
                    }
                ],
            },
            "load": {"stores": {"default": {"namespaces": ["*"], "uri": "s3://samples"}}},
            "sampler": {"enabled": True},
            **values,
        }
        self.accounts = Accounts(server, self.home, whole)
        self.accounts.make(SIDECARS)
        self._keep_credentials()

    # Processes

    def operator(self, *arguments: str, **environment: str) -> ManagedProcess:
        """``bellwether operator`` by its account."""
        kubeconfig = str(self.accounts.kubeconfig(OPERATOR))
        if not self.everywhere:
            return self.site.operator("--lease-namespace", self.home, *arguments, KUBECONFIG=kubeconfig, **environment)
        ports = ("--metrics-port", "0", "--health-port", "0")
        command = [sys.executable, "-m", "bellwether", "operator", "--lease-namespace", self.home, *ports]
        variables = {"KUBECONFIG": kubeconfig, **environment}
        return self.site.start("operator", [*command, "--log-format", "json", *arguments], variables)

    def prober(
        self, account: str, kind: str, *arguments: str, pod: str = "", policy: str | None = POLICY
    ) -> ManagedProcess:
        """``bellwether probe KIND`` by that account, for a policy or for all of the namespace."""
        which = ["--policy", policy] if policy else []
        command = [sys.executable, "-m", "bellwether", "probe", kind, *which, "-n", self.site.namespace]
        kubeconfig = self.accounts.kubeconfig(account, pod)
        return self.site.start(kind, [*command, "--log-format", "json", *arguments], {"KUBECONFIG": str(kubeconfig)})

    def disk(self, broker: int) -> Path:
        """A log directory of that broker, in which no broker runs."""
        return formatted(self.directory / f"disk-{broker}", broker, self.site.kafka.cluster_id)

    def agent(self, broker: int) -> ManagedProcess:
        """``bellwether quarantine-agent`` of a broker, next to a process that takes the broker's place."""
        beside = self.site.start(f"locker-{broker}", broker_process(self.disk(broker)))
        where = ["--policy", POLICY, "-n", self.site.namespace, "--lease-namespace", self.home]
        which = ["--pid", str(beside.pid), "--log-format", "json"]
        kubeconfig = self.accounts.kubeconfig(SIDECARS, f"kafka-{broker}")
        command = [sys.executable, "-m", "bellwether", "quarantine-agent", *where, *which]
        return self.site.start(f"agent-{broker}", command, {"KUBECONFIG": str(kubeconfig)})

    def order_that_is_over(self, broker: int) -> None:
        """The order to hold a broker that an earlier operator ended and did not remove."""
        policy = f"{self.site.namespace}/{POLICY}"
        LeaseOrders(self.site.api, self.home, policy).keep({broker: ordered(broker, ended_at=after(9))})

    def orders(self) -> list[Object]:
        """The Leases that order a hold, those that are over included."""
        return self.site.api.list(LEASES, self.home, {object_names.COMPONENT_LABEL: COMPONENT})

    def ran(self, kubeconfig: Path, *arguments: str, seconds: float = 90) -> subprocess.CompletedProcess[str]:
        """A command of ``bellwether`` that ends by itself."""
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        command = [sys.executable, "-m", "bellwether", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, check=False)

    def person(self, *roles: str) -> Path:
        """A kubeconfig of a user who has these ClusterRoles of the chart (by their ends) in the policy's namespace."""
        namespace = self.site.namespace
        name = f"{PERSON}-{namespace}"
        for end in roles:
            role = next(
                o for o in self.accounts.objects if o["kind"] == "ClusterRole" and o["metadata"]["name"].endswith(end)
            )
            whole = role["metadata"]["name"]
            self.site.kubectl("create", "rolebinding", f"ann{end}", f"--clusterrole={whole}", f"--user={name}")
            self.accounts.until_allowed(name, of_role(role, namespace))
        return self.server.kubeconfig_for(name)

    # What exists beforehand

    def secured(self, **more: Any) -> Object:
        """``spec.kafka`` for the listener that wants TLS and a password, both in the Secret."""
        known = self.site.kafka.security
        assert known is not None
        return {
            "bootstrapServers": known.bootstrap.split(","),
            "tls": {"caSecretName": CREDENTIALS},
            "sasl": {
                "mechanism": "SCRAM-SHA-512",
                "username": known.username,
                "passwordSecretName": CREDENTIALS,
            },
            **more,
        }

    def healths(self, policy: Object, *brokers: int) -> None:
        """BrokerHealths of the operator's making, where no operator runs."""
        BrokerHealths(self.site.api, SystemClock()).ensure_broker_healths(policy, brokers)

    def entry(self, broker: int, type_: str) -> Object:
        """An entry of that kind on a broker; empty where there is none."""
        found = self.site.api.find(BROKER_HEALTHS, self.site.namespace, f"{POLICY}-{broker}") or {}
        entries = (found.get("status") or {}).get("signals") or []
        return next((dict(e) for e in entries if e["type"] == type_), {})

    def policy(self, **spec: Any) -> Object:
        """The site's policy, made or changed."""
        if self.site.api.find(POLICIES, self.site.namespace, POLICY) is None:
            return self.site.policy(**spec)
        self.site.change(**spec)
        return self.site.policy_now()

    # What became of it

    def calls(self, account: str) -> set[Call]:
        """What an account has asked of the API so far."""
        return self.server.calls(self.accounts.user(account))

    def unused(self, account: str) -> set[Grant]:
        """Grants that no request has made use of."""
        used = {(c.group, c.resource, verb, c.namespace) for c in self.calls(account) for verb in _verbs(c)}
        return {
            grant
            for grant in self.accounts.grants(account)
            if not any(
                (grant.group, grant.resource, grant.verb) == one[:3] and grant.namespace in ("", one[3]) for one in used
            )
        }

    def close(self) -> None:
        """End everything; what binds other namespaces goes, too, and so do the policies.

        An operator of all namespaces that comes next would take them up, and one of them would claim the cluster.
        """
        self.site.close()
        for namespace in self.namespaces:
            self._remove_policies(namespace)
        self.accounts.remove()

    def _remove_policies(self, namespace: str) -> None:
        """Without what their deletion would restore: no operator runs any more."""
        patient = self.site.api.with_timeout(limit(60))
        for policy in patient.list_version(POLICIES, namespace, None, 2 << 20, kept)[0]:
            name = policy["metadata"]["name"]
            if "deletionTimestamp" not in policy["metadata"]:
                patient.delete(POLICIES, namespace, name)
            if policy["metadata"].get("finalizers"):
                patient.merge(POLICIES, namespace, name, {"metadata": {"finalizers": None}})

    def _keep_credentials(self) -> None:
        known = self.site.kafka.security
        assert known is not None
        values = {"ca.crt": known.ca.read_bytes(), "password": known.password.encode(), "token": TOKEN.encode()}
        body = {
            "apiVersion": SECRETS.api_version,
            "kind": SECRETS.kind,
            "metadata": {"name": CREDENTIALS, "namespace": self.site.namespace},
            "data": {key: base64.b64encode(value).decode() for key, value in values.items()},
        }
        self.site.api.create(SECRETS, self.site.namespace, body)


def _verbs(call: Call) -> tuple[str, ...]:
    """The verbs of RBAC that a request needed; server-side apply creates what is not there."""
    if call.code in (401, 403):
        return ()
    return (call.verb, "create") if (call.verb, call.code) == ("patch", 201) else (call.verb,)
