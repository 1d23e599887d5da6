"""Messages for requests that the Kubernetes API forbids: who lacks which verb on what, and where to grant it.

In: the API server's own words with HTTP 403, as RBAC and admission policies put them. Out: one sentence with the
remedy. Called by ``api_client`` for every request that is forbidden.
"""

from __future__ import annotations

import re

PAGE = "docs/security/permissions.md"
_ACCOUNT = "system:serviceaccount:"
_RBAC = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)
_POLICY = re.compile(r"ValidatingAdmissionPolicy '(?P<policy>[^']*)'.* denied request: (?P<why>.*)", re.DOTALL)


def denied(what: str, said: str) -> str:
    """The sentence for a request on ``what`` that was forbidden with the words ``said``."""
    refused = _POLICY.search(said)
    if refused is not None:
        return f"{what}: refused by the admission policy {refused['policy']}: {refused['why'].strip()}"
    found = _RBAC.search(said)
    if found is None:
        return f"{what}: forbidden: {said or 'no reason given'}: grant this account the permission ({PAGE})"
    group = f"API group {found['group']}" if found["group"] else "the core API group"
    missing = f"{who(found['user'])} lacks the verb '{found['verb']}' on {found['resource']} in {group}"
    if found["namespace"]:
        return f"{what}: {missing}: grant it in a Role of namespace {found['namespace']} that is bound to it ({PAGE})"
    return f"{what}: {missing}: grant it in a ClusterRole that is bound to it ({PAGE})"


def who(user: str) -> str:
    """A user as a person calls it."""
    if user.startswith(_ACCOUNT):
        return f"ServiceAccount {user.removeprefix(_ACCOUNT).replace(':', '/')}"
    return f"user {user}"
