"""Errors of Kubernetes API requests: what the caller must do next, in one sentence with the remedy.

In: status and body of an answer. Out: ``Transient`` (unavailable, overloaded), ``Terminal`` (rejected, invalid), and
classes of them for callers that expect them. Called by ``api_client`` for every request that failed.
"""

from __future__ import annotations

import json
import re

from bellwether import documentation
from bellwether.ports.errors import Terminal, Transient

MESSAGE_LENGTH = 4096
"""Bytes of a message that are read: admission webhooks of others write it, and regular expressions search it."""

_ACCOUNT = "system:serviceaccount:"
_RBAC = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)
_POLICY = re.compile(r"ValidatingAdmissionPolicy '(?P<policy>[^']*)'.* denied request: (?P<why>.*)", re.DOTALL)


class NotFound(Terminal):
    """The object, or its kind, does not exist."""


class TooLarge(Terminal):
    """More bytes than are read of one answer."""


class NamespaceEnding(Terminal):
    """Nothing can be created in a namespace that is being deleted."""


class OutdatedDefinition(Terminal):
    """The served CRD does not have a field that this version writes."""


class Conflict(Transient):
    """Another writer was first: the object exists, has another resourceVersion, or another manager owns the field."""


def denied(what: str, said: str) -> str:
    """Message for a request on ``what`` that the API server rejected with the message ``said``."""
    refused = _POLICY.search(said)
    if refused is not None:
        return f"{what}: rejected by the admission policy {refused['policy']}: {refused['why'].strip()}"
    found = _RBAC.search(said)
    page = documentation.page("security/permissions.md")
    if found is None:
        return f"{what}: forbidden: {said or 'no reason given'}: grant this account the permission ({page})"
    group = f"API group {found['group']}" if found["group"] else "the core API group"
    missing = f"{who(found['user'])} lacks the verb '{found['verb']}' on {found['resource']} in {group}"
    if found["namespace"]:
        return f"{what}: {missing}: grant it in a Role of namespace {found['namespace']} that is bound to it ({page})"
    return f"{what}: {missing}: grant it in a ClusterRole that is bound to it ({page})"


def who(user: str) -> str:
    """Display name of a user."""
    if user.startswith(_ACCOUNT):
        return f"ServiceAccount {user.removeprefix(_ACCOUNT).replace(':', '/')}"
    return f"user {user}"


_VERBS = {"GET": "get or list", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}

_UNDECLARED = re.compile(r"(\.[\w.\[\]\"=,-]+): field not declared in schema")


def refusal(status: int, text: bytes, method: str, what: str, *, ours: bool) -> Terminal | Transient:
    """What an answer that is no success means for the caller; ``ours``: of a kind that Bellwether defines."""
    try:
        said = str(json.loads(text).get("message", ""))[:MESSAGE_LENGTH]
    except ValueError:
        said = ""
    if status == 404:
        return NotFound(f"Kubernetes API: {what} not found{': ' + said if said else ''}")
    if status == 409:
        return Conflict(f"Kubernetes API: {method} {what}: {said or 'conflict'}")
    unknown = _UNDECLARED.search(said)
    if unknown is not None and ours:
        return OutdatedDefinition(
            f"Kubernetes API: {what}: the installed CRD is older than this version and has no field"
            f" {unknown.group(1)}: upgrade the CRDs (crds.install of the chart, or kubectl apply -f crds/)"
        )
    if status in (408, 410, 429) or status >= 500:  # 410: a list took so long that its next page is gone
        return Transient(f"Kubernetes API: {method} {what}: HTTP {status} {said}".rstrip())
    if status == 401:
        return Terminal(f"Kubernetes API: {method} {what}: authentication failed: renew the token or the kubeconfig")
    if status == 403 and "because it is being terminated" in said:
        return NamespaceEnding(f"Kubernetes API: cannot {_VERBS[method]} {what}: its namespace is being deleted")
    if status == 403:
        return Terminal(f"Kubernetes API: {denied(f'{method} {what}', said)}")
    return Terminal(f"Kubernetes API: {method} {what} was rejected: HTTP {status} {said}".rstrip())
