"""Plays the kubelet for the pods that Helm waits for: runs their commands for real, and says in status how they ended.

In: an API server without kubelets and controllers, a namespace. Out: Jobs and Pods of hooks that complete or fail by
what ``bellwether`` itself did, as the ServiceAccount that the manifest names. Called by the chart's tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from bellwether.adapters.kubernetes.api_client import JOBS, PODS, connect
from bellwether.ports.errors import Terminal, Transient
from realparts import gotools
from realparts.apiserver import ApiServer, KubectlFailed
from waiting import ran

_LOOK_SECONDS = 0.2
_RUN_SECONDS = 120.0
# Kubernetes 1.30 refuses the first of a Job without success policy, later versions refuse the second without the first.
_COMPLETE = ("Complete",) if gotools.KUBERNETES_MINOR < 31 else ("SuccessCriteriaMet", "Complete")
_OURS = {"app.kubernetes.io/component": "hook"}


@dataclass(frozen=True, slots=True)
class Ran:
    """One command that was run."""

    kind: str
    name: str
    arguments: tuple[str, ...]
    status: int
    output: str


@dataclass
class FakeKubelet:
    """A context manager. ``reach`` turns arguments into others, as names of Services mean nothing here.

    Without ``pulls`` no image can be pulled: a Job fails at its deadline, which tests do not wait for.
    """

    server: ApiServer
    namespace: str
    reach: Callable[[Sequence[str]], Sequence[str]] = tuple
    pulls: bool = True
    ran: list[Ran] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._api = connect(self.server.kubeconfig)
        self._stop = threading.Event()
        self._seen = {body["metadata"]["uid"] for body in self._hooks()}  # of an earlier one
        self._thread = threading.Thread(target=self._work, name="hooks", daemon=True)

    def __enter__(self) -> FakeKubelet:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _hooks(self) -> list[dict[str, Any]]:
        return [one for kind in (JOBS, PODS) for one in self._api.list(kind, self.namespace, _OURS)]

    def _work(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            try:
                found = self._hooks()
            except (Terminal, Transient):
                continue
            for body in found:
                if body["metadata"]["uid"] not in self._seen:
                    self._seen.add(body["metadata"]["uid"])
                    # Its account, or the object itself, may be gone meanwhile.
                    with suppress(KubectlFailed, Terminal, Transient):
                        self._run(body)

    def _run(self, body: Mapping[str, Any]) -> None:
        kind, name = body["kind"], body["metadata"]["name"]
        spec = body["spec"]["template"]["spec"] if kind == "Job" else body["spec"]
        started = _now()
        if not self.pulls:
            reason = "DeadlineExceeded"
        else:
            arguments = tuple(self.reach(spec["containers"][0]["args"]))
            ended = bellwether(self.server, self.namespace, spec["serviceAccountName"], arguments)
            self.ran.append(Ran(kind, name, arguments, ended.returncode, ended.stdout + ended.stderr))
            reason = "BackoffLimitExceeded" if ended.returncode else ""
        status = _job_status(reason, started) if kind == "Job" else {"phase": "Failed" if reason else "Succeeded"}
        self._api.merge(JOBS if kind == "Job" else PODS, self.namespace, name, {"status": status}, sub="status")


def bellwether(
    server: ApiServer, namespace: str, account: str, arguments: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    """Run the command line outside, with the token of a ServiceAccount."""
    return ran(command(arguments), _RUN_SECONDS, env=environment(server, namespace, account))


def command(arguments: Sequence[str]) -> list[str]:
    """The product's command line."""
    return [sys.executable, "-m", "bellwether", *arguments]


def environment(server: ApiServer, namespace: str, account: str) -> dict[str, str]:
    """What a process needs to speak as a ServiceAccount, which must exist."""
    return {**os.environ, "KUBECONFIG": str(server.service_account_kubeconfig(namespace, account))}


def _job_status(failed: str, started: str) -> dict[str, Any]:
    """``failed`` is the reason, empty for a Job that is complete."""
    now = _now()
    types = ("FailureTarget", "Failed") if failed else _COMPLETE
    conditions = [
        {"type": one, "status": "True", "reason": failed or "CompletionsReached"}
        | {"lastTransitionTime": now, "lastProbeTime": now, "message": ""}
        for one in types
    ]
    done: dict[str, Any] = {"failed": 1} if failed else {"succeeded": 1, "completionTime": now}
    return {"startTime": started, "conditions": conditions, **done}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
