"""Kubernetes API permissions that each process needs, and which of them an account lacks.

In: a client, and the namespaces of the process. Out: a message for each missing permission, from
SelfSubjectAccessReview. The chart's roles and ``docs/security/permissions.md`` contain the same table: tests compare
them, and show on a real API server that each permission is used and needed. Called by ``bellwether operator``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bellwether import documentation
from bellwether.adapters.kubernetes.api_client import KubernetesClient, Object, Resource

REVIEWS = Resource(
    "/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews", "authorization.k8s.io/v1", "SelfSubjectAccessReview"
)
BELLWETHER, COORDINATION, STRIMZI = "bellwether.dev", "coordination.k8s.io", "kafka.strimzi.io"


class Where(StrEnum):
    """Namespaces in which a permission is needed."""

    POLICIES = "each namespace with policies"
    LEASES = "the operator's namespace"
    CLUSTER = "the cluster"


class Only(StrEnum):
    """Condition under which a permission is needed."""

    ALWAYS = ""
    SECRETS = "policies reference Secrets"
    JOBS = "load plans are computed in Jobs"
    STRIMZI = "policies name a Strimzi cluster"
    RESTARTS = "policies detect restarts"
    KILLED = "an operator was killed while it sent"
    EVERYWHERE = "all namespaces are watched"
    SEVERAL = "one process serves several policies"


@dataclass(frozen=True, slots=True)
class Need:
    """Verbs on one resource type. ``resource`` may be a subresource such as ``brokerhealths/status``."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    where: Where = Where.POLICIES
    only: Only = Only.ALWAYS


OPERATOR = (
    Need(
        BELLWETHER,
        "leadershippolicies",
        ("get", "list", "watch", "patch"),
        "policies; patch: the finalizer that restores baselines on deletion",
    ),
    Need(BELLWETHER, "leadershippolicies/status", ("patch",), "status of a policy"),
    Need(
        BELLWETHER,
        "brokerhealths",
        ("get", "list", "watch", "create", "patch", "delete"),
        "one object for each broker, created by server-side apply",
    ),
    Need(BELLWETHER, "brokerhealths/status", ("patch",), "status of a broker"),
    Need(BELLWETHER, "signalsources", ("list", "watch"), "rules and plug-ins that policies name"),
    Need(BELLWETHER, "leaderrebalances", ("list", "watch"), "load plans of policies"),
    Need(BELLWETHER, "leaderrebalances/status", ("patch",), "status of a load plan"),
    Need(
        "",
        "configmaps",
        ("get", "list", "create", "update", "patch", "delete"),
        "undo records; patch: their finalizer",
    ),
    Need(COORDINATION, "leases", ("list", "watch"), "age of the signals of each prober"),
    Need("events.k8s.io", "events", ("create", "patch"), "Kubernetes events"),
    Need("", "secrets", ("get",), "credentials for Kafka", only=Only.SECRETS),
    Need("batch", "jobs", ("get", "create"), "load plans", only=Only.JOBS),
    Need("", "pods", ("list",), "why a Job does not start or has failed", only=Only.JOBS),
    Need(
        STRIMZI,
        "kafkas",
        ("get", "list"),
        "how to reach the cluster; list: the names that exist, for messages",
        only=Only.STRIMZI,
    ),
    Need(STRIMZI, "kafkausers", ("get",), "user for the connection", only=Only.STRIMZI),
    Need(STRIMZI, "kafkarebalances", ("list",), "whether the cluster is being rebalanced", only=Only.STRIMZI),
    Need("", "pods", ("list",), "pod of each broker", only=Only.STRIMZI),
    Need("", "pods", ("list",), "whether a broker's pod is terminating or not ready", only=Only.RESTARTS),
    Need(
        COORDINATION,
        "leases",
        ("get", "list", "create", "update", "delete"),
        "the Lease of each Kafka cluster; quarantine orders",
        Where.LEASES,
    ),
    Need("", "namespaces", ("get",), "uid of this namespace, which marks the installation in Kafka", Where.LEASES),
    Need(
        "", "configmaps", ("get", "create"), "copies of undo records of a namespace that is being deleted", Where.LEASES
    ),
    Need("", "pods", ("get",), "whether the operator's container has ended", Where.LEASES, Only.KILLED),
    Need("", "nodes", ("get",), "whether its node has booted again", Where.CLUSTER, Only.EVERYWHERE),
)
"""Permissions of ``bellwether operator``."""

_CLIENT_OF_STRIMZI = (
    Need(STRIMZI, "kafkas", ("get",), "how to reach the cluster", only=Only.STRIMZI),
    Need(STRIMZI, "kafkausers", ("get",), "user for the connection", only=Only.STRIMZI),
)

_SEVERAL = Need(BELLWETHER, "leadershippolicies", ("list",), "which policies there are", only=Only.SEVERAL)

PROBER = (
    Need(BELLWETHER, "leadershippolicies", ("get",), "what to measure, and how"),
    _SEVERAL,
    Need(BELLWETHER, "brokerhealths", ("get", "list"), "brokers, and its own entries"),
    Need(BELLWETHER, "brokerhealths/status", ("patch",), "its own entries in status.signals"),
    Need(COORDINATION, "leases", ("get", "create", "update"), "its own Lease"),
    Need("", "secrets", ("get",), "credentials for Kafka or Prometheus", only=Only.SECRETS),
    *_CLIENT_OF_STRIMZI,
)
"""Permissions of ``bellwether probe``, for all signal types."""

SOURCE_PROBER = (
    Need(BELLWETHER, "signalsources", ("list",), "rules and plug-ins that its policies name"),
    Need(BELLWETHER, "signalsources/status", ("patch",), "whether it can use a source"),
)
"""Permissions of ``bellwether probe prometheus`` and ``probe plugin`` in addition to those of a prober."""

QUARANTINE_AGENT = (Need(COORDINATION, "leases", ("get",), "the order to hold its broker", Where.LEASES),)
"""Permissions of ``bellwether quarantine-agent`` in addition to those of a prober."""

SAMPLER = (
    Need(BELLWETHER, "leadershippolicies", ("get",), "how to connect"),
    Need(BELLWETHER, "leaderrebalances", ("list",), "in which store samples lie, and for how long"),
    _SEVERAL,
    Need("", "secrets", ("get",), "credentials for Kafka", only=Only.SECRETS),
    *_CLIENT_OF_STRIMZI,
)
"""Permissions of ``bellwether sample``."""


def operator_lacks(api: KubernetesClient, namespaces: Sequence[str], lease_namespace: str) -> Iterator[str]:
    """Permissions that this account lacks to run the operator for ``namespaces`` (empty: all), each with the remedy.

    Raises Transient or Terminal.
    """
    scopes: dict[Where, Sequence[str | None]] = {
        Where.POLICIES: namespaces or (None,),
        Where.LEASES: (lease_namespace,),
    }
    # Permissions that only some policies need may be granted for some names or namespaces; those policies report them.
    always = [need for need in OPERATOR if need.only is Only.ALWAYS]
    return (one for need in always for one in _lacks(api, need, scopes[need.where]))


def _lacks(api: KubernetesClient, need: Need, namespaces: Iterable[str | None]) -> Iterator[str]:
    resource, _, sub = need.resource.partition("/")
    group = f"API group {need.group}" if need.group else "the core API group"
    page = documentation.page("security/permissions.md")
    for namespace in namespaces:
        role = f"a Role of namespace {namespace}" if namespace else "a ClusterRole"
        for verb in need.verbs:
            asked = {"group": need.group, "resource": resource, "subresource": sub, "verb": verb}
            if namespace is not None:
                asked["namespace"] = namespace
            if not _allowed(api, asked):
                yield f"'{verb}' on {need.resource} in {group} ({need.why}): grant it in {role} ({page})"


def _allowed(api: KubernetesClient, asked: Object) -> bool:
    body = {"metadata": {}, "spec": {"resourceAttributes": asked}}
    return bool((api.create(REVIEWS, "", body).get("status") or {}).get("allowed"))
