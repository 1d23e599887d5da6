"""An API server that keeps account of who asked for what, as RBAC sees it, and whether it was allowed.

In: what ``ApiServer`` takes. Out: calls, read from its audit log. Entries are written before a request is answered, so
what a test has seen the effect of is in the log.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from realparts.apiserver import ApiServer
from realparts.processes import whole_lines

_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    userGroups: ["system:serviceaccounts"]
  - level: None
"""


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a service account. ``resource`` names a subresource too, as in ``brokerhealths/status``."""

    user: str
    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    code: int
    forbidden: bool
    """RBAC refused it; what admission refuses has a code of 400 or more, and this is False."""


class AuditedApiServer(ApiServer):
    """A running API server whose audit log can be asked."""

    @property
    def audit_log(self) -> Path:
        """Where it writes, one JSON document a line."""
        return self.directory / "audit.log"

    def calls(self, user: str) -> set[Call]:
        """Every different request of a user so far, but for discovery and reviews of its own rights."""
        lines = whole_lines(self.audit_log) if self.audit_log.exists() else []
        entries = (json.loads(line) for line in lines if f'"{user}"' in line)
        found = {_call(entry) for entry in entries if entry["user"]["username"] == user and "objectRef" in entry}
        return {call for call in found if call.resource and call.group != "authorization.k8s.io"}

    def _server_command(self, server: Path) -> list[str]:
        policy = self.directory / "audit-policy.yaml"
        policy.write_text(_POLICY)
        return [
            *super()._server_command(server),
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self.audit_log}",
            "--audit-log-mode=blocking",
            "--audit-log-maxsize=10000",  # MB: a log that begins again would have forgotten calls
        ]


def _call(entry: dict[str, Any]) -> Call:
    about, annotations = entry["objectRef"], entry.get("annotations") or {}
    resource = about.get("resource", "")
    return Call(
        user=entry["user"]["username"],
        verb=entry["verb"],
        group=about.get("apiGroup", ""),
        resource=f"{resource}/{about['subresource']}" if about.get("subresource") else resource,
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        code=int((entry.get("responseStatus") or {}).get("code") or 0),
        forbidden=annotations.get("authorization.k8s.io/decision") == "forbid",
    )
