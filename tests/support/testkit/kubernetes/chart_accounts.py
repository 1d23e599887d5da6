"""The chart's accounts, with exactly the rights that it gives them, on a real API server.

In: an API server, a namespace, values of the chart. Out: kubeconfigs of its ServiceAccounts by tokens from the API,
what each was granted, and a way to take one verb away for a while. Rendered by real Helm; applied by the administrator.
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bellwether.adapters.kubernetes.api_client import KubernetesClient, Object, Resource, connect
from realparts.apiserver import ApiServer
from realparts.helm import Helm
from waiting import until

CHART = Path(__file__).parents[4] / "helm" / "bellwether"
RELEASE = "bw"
FULL = "bw-bellwether"
OPERATOR, SAMPLER = f"{FULL}-operator", f"{FULL}-sampler"

_RBAC = "rbac.authorization.k8s.io/v1"
_ROLES = {
    "Role": Resource(f"/apis/{_RBAC}", "roles", _RBAC, "Role"),
    "ClusterRole": Resource(f"/apis/{_RBAC}", "clusterroles", _RBAC, "ClusterRole"),
}
_REVIEWS = Resource(
    "/apis/authorization.k8s.io/v1", "subjectaccessreviews", "authorization.k8s.io/v1", "SubjectAccessReview"
)
_ADMISSION = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_BINDINGS = ("RoleBinding", "ClusterRoleBinding")
_TAKES_EFFECT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Grant:
    """One verb on one kind of object, in one namespace or (empty) everywhere, by the role that gives it."""

    group: str
    resource: str
    verb: str
    namespace: str
    kind: str
    role: str
    names: tuple[str, ...] = ()


def rendered(values: Mapping[str, Any], namespace: str, release: str = RELEASE) -> list[Object]:
    """Every object of the chart with these values, as real Helm renders it. Raises HelmFailed."""
    with tempfile.TemporaryDirectory() as home:
        return Helm(Path(home)).template(CHART, values, release=release, namespace=namespace)


def granted(objects: list[Object], account: str) -> list[Grant]:
    """What the bindings among some objects give to a ServiceAccount, ``name`` or ``namespace/name``."""
    found = []
    for binding in (one for one in objects if one["kind"] in _BINDINGS):
        subjects = [s for s in binding.get("subjects") or [] if s["kind"] == "ServiceAccount"]
        if not any(account in (s["name"], f"{s.get('namespace')}/{s['name']}") for s in subjects):
            continue
        reference, namespace = binding["roleRef"], binding["metadata"].get("namespace", "")
        for role in objects:
            same = (role["kind"], role["metadata"]["name"]) == (reference["kind"], reference["name"])
            if same and (role["kind"] == "ClusterRole" or role["metadata"].get("namespace", "") == namespace):
                found += of_role(role, namespace)
    return found


def of_role(role: Object, namespace: str) -> list[Grant]:
    """What a role gives to whom it is bound to in a namespace."""
    return [
        Grant(group, resource, verb, namespace, role["kind"], role["metadata"]["name"], names)
        for rule in role["rules"]
        for names in [tuple(rule.get("resourceNames") or ())]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


class Accounts:
    """See the module. ``objects`` are what was applied: accounts, roles, bindings and admission."""

    def __init__(self, server: ApiServer, namespace: str, values: Mapping[str, Any]) -> None:
        self.server = server
        self.namespace = namespace
        self._api: KubernetesClient = connect(server.kubeconfig)
        self._clients: dict[tuple[str, str], KubernetesClient] = {}
        whole = rendered(values, namespace)
        kinds = ("ServiceAccount", *_ROLES, *_BINDINGS, *_ADMISSION)
        self.objects = [one for one in whole if one["kind"] in kinds]
        self._applied(self.objects)
        self._await_all()

    def remove(self) -> None:
        """Remove the objects outside namespaces: they would bind others."""
        for kind in (*_ADMISSION, "ClusterRole", "ClusterRoleBinding"):
            names = [o["metadata"]["name"] for o in self.objects if o["kind"] == kind]
            if names:
                self.server.kubectl("delete", kind.lower(), "--ignore-not-found", *names)

    def user(self, account: str) -> str:
        """The name that the API server knows an account by."""
        return f"system:serviceaccount:{self.namespace}:{account}"

    def make(self, account: str) -> None:
        """A ServiceAccount that the chart does not make, as that of brokers' pods."""
        self.server.kubectl("create", "serviceaccount", account, "-n", self.namespace)

    def kubeconfig(self, account: str, pod: str = "") -> Path:
        """A kubeconfig with a token of the account, bound to a pod of that name where one is given."""
        plain = self.server.service_account_kubeconfig(self.namespace, account)
        if not pod:
            return plain
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": pod, "namespace": self.namespace},
            "spec": {"serviceAccountName": account, "containers": [{"name": "c", "image": "none.invalid/none"}]},
        }
        self._applied([body])
        bound = ("--bound-object-kind", "Pod", "--bound-object-name", pod)
        token = self.server.kubectl("create", "token", account, "-n", self.namespace, *bound).strip()
        config = json.loads(plain.read_text())
        config["users"][0]["user"] = {"token": token}
        path = plain.with_name(f"{plain.name}-{pod}")
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        return path

    def client(self, account: str, pod: str = "") -> KubernetesClient:
        """A client that is that account, as ``kubeconfig`` has it; made once, as both take a while."""
        if (account, pod) not in self._clients:
            self._clients[account, pod] = connect(self.kubeconfig(account, pod))
        return self._clients[account, pod]

    def grants(self, account: str) -> list[Grant]:
        """What the chart gives to an account."""
        return granted(self.objects, account)

    @contextmanager
    def without(
        self, account: str, group: str, resource: str, verb: str, namespace: str | None = None
    ) -> Iterator[None]:
        """Take one verb away from an account for a while, in whatever role of the chart gives it."""
        taken = [
            grant
            for grant in self.grants(account)
            if (grant.group, grant.resource, grant.verb) == (group, resource, verb)
            and namespace in (None, grant.namespace)
        ]
        assert taken, f"the chart gives no {verb} on {resource} to {account}"
        where = {(grant.kind, grant.role) for grant in taken}
        roles = [o for o in self.objects if (o["kind"], o["metadata"]["name"]) in where]
        for role in roles:
            self._rules(role, [rest for rule in role["rules"] for rest in _less(rule, group, resource, verb)])
        try:
            self.until_allowed(self.user(account), taken, allowed=False)
            yield
        finally:
            for role in roles:
                self._rules(role, role["rules"])
            self.until_allowed(self.user(account), taken)

    def _rules(self, role: Object, rules: list[Any]) -> None:
        metadata = role["metadata"]
        # A merge patch goes to a cluster-scoped object where no namespace is named.
        self._api.merge(_ROLES[role["kind"]], metadata.get("namespace", ""), metadata["name"], {"rules": rules})

    def until_allowed(self, user: str, grants: Iterable[Grant], *, allowed: bool = True) -> None:
        """Wait until the API server goes by what was written of a user's grants: it hears of that a moment later."""
        groups = ["system:serviceaccounts"] if user.startswith("system:serviceaccount:") else []
        for grant in grants:
            kind, _, sub = grant.resource.partition("/")
            about = {"group": grant.group, "resource": kind, "subresource": sub, "verb": grant.verb}
            about |= {"name": "".join(grant.names[:1]), "namespace": grant.namespace}
            spec = {"user": user, "groups": [*groups, "system:authenticated"], "resourceAttributes": about}
            body = {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind, "metadata": {}, "spec": spec}

            def decided(body: dict[str, Any] = body) -> bool:
                return bool(self._api.create(_REVIEWS, "", body)["status"]["allowed"]) is allowed

            what = f"{grant.verb} on {grant.resource} is {'allowed' if allowed else 'refused'}"
            until(decided, _TAKES_EFFECT_SECONDS, what)

    def _await_all(self) -> None:
        """Of each role that an account has."""
        subjects = [s for one in self.objects if one["kind"] in _BINDINGS for s in one.get("subjects") or []]
        for account in {(s.get("namespace"), s["name"]) for s in subjects if s["kind"] == "ServiceAccount"}:
            user = ":".join(("system:serviceaccount", *account))
            grants = granted(self.objects, "/".join(account))
            self.until_allowed(user, {(g.kind, g.role, g.namespace): g for g in grants}.values())

    def _applied(self, objects: list[Object]) -> None:
        body = {"apiVersion": "v1", "kind": "List", "items": objects}
        self.server.kubectl("apply", "-f", "-", stdin=json.dumps(body))


def _less(rule: Mapping[str, Any], group: str, resource: str, verb: str) -> Iterator[Object]:
    """A rule without one verb on one resource, as one or two rules."""
    if group not in rule["apiGroups"] or resource not in rule["resources"] or verb not in rule["verbs"]:
        yield dict(rule)
        return
    others = [one for one in rule["resources"] if one != resource]
    verbs = [one for one in rule["verbs"] if one != verb]
    if others:
        yield {**copy.deepcopy(dict(rule)), "resources": others}
    if verbs:
        yield {**copy.deepcopy(dict(rule)), "resources": [resource], "verbs": verbs}
