"""kubectl as the node's administrator. In: arguments, objects. Out: what it printed, or an error with what it said.

Called by ``lifecycle`` and by the tests on a node. (``realparts.apiserver`` has its own: there the server is at hand.)
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from realparts import kubernetes_binaries
from waiting import ran, until

T = TypeVar("T")


class KubectlFailed(RuntimeError):
    """kubectl ended with an error; the message holds what it printed."""


class Kubectl:
    """One kubeconfig, and what is done with it."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._program = kubernetes_binaries.kubectl()

    def __call__(self, *arguments: str, stdin: str | None = None, timeout_seconds: float = 180) -> str:
        """Run it and return what it printed. Raises KubectlFailed."""
        command = [str(self._program), "--kubeconfig", str(self.kubeconfig), *arguments]
        try:
            ended = ran(command, timeout_seconds, input=stdin)
        except subprocess.TimeoutExpired as late:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: no end after {timeout_seconds:g} s") from late
        if ended.returncode != 0:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: {ended.stderr.strip() or ended.stdout.strip()}")
        return ended.stdout

    def get(self, *arguments: str) -> Any:
        """An object, or with a kind alone a list's items."""
        answer = json.loads(self("get", *arguments, "--output", "json"))
        return answer["items"] if answer.get("kind", "").endswith("List") else answer

    def apply(self, objects: Sequence[Mapping[str, Any]]) -> None:
        """Apply objects by server-side apply."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(listed))

    def ready(self, *arguments: str) -> bool:
        """Whether an object has the condition Ready."""
        try:
            found = self.get(*arguments)
        except KubectlFailed:
            return False
        conditions = found.get("status", {}).get("conditions", [])
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def eventually(look: Callable[[], T], so: Callable[[T], object], seconds: float, what: str) -> T:
    """Look every half second until it is so, and return what was seen. Raises TooLate with what was seen last.

    A look that kubectl cannot answer counts as not so: API server and node may be restarting.
    """
    return until(look, seconds, what, so=so, every=0.5, ignoring=(KubectlFailed,))
