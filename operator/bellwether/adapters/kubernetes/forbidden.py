"""Messages for forbidden Kubernetes API requests: which account lacks which verb, and where to grant it.

In: the API server's message with HTTP 403, from RBAC or an admission policy. Out: one sentence with the remedy. Called
by ``api_client`` for every forbidden request.
"""

from __future__ import annotations

import re

from bellwether import documentation

_ACCOUNT = "system:serviceaccount:"
_RBAC = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)
_POLICY = re.compile(r"ValidatingAdmissionPolicy '(?P<policy>[^']*)'.* denied request: (?P<why>.*)", re.DOTALL)


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
