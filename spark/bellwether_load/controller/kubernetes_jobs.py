"""Run plan jobs as Kubernetes Jobs: created once under the run's name, then polled (``job_commands.PlanJobs``).

A Job is found by its name alone, so a restarted operator finds the Job of its predecessor. The cause of a failure is
taken from its condition and from the termination message of its pod.
"""

from __future__ import annotations

from contextlib import suppress

import structlog

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import JOBS, PODS, KubernetesClient, Object
from bellwether.adapters.kubernetes.api_errors import Conflict
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.ports.errors import BellwetherError
from bellwether_load.api.load_config import LoadSettings
from bellwether_load.controller.job_commands import JobState, JobStatus, last_words
from bellwether_load.controller.job_manifest import manifest, run_labels

log = structlog.get_logger(__name__)


class KubernetesJobs:
    """The jobs of one policy, in its namespace."""

    def __init__(
        self, api: KubernetesClient, policy: LeadershipPolicy, settings: LoadSettings, cluster_id: str
    ) -> None:
        self._api = api
        self._policy = policy
        self._settings = settings
        self._cluster_id = cluster_id
        self._said = ""

    def start(self, run: str) -> None:
        """Create the Job of that run unless it exists."""
        job = manifest(self._policy, self._settings, run, self._cluster_id)
        with suppress(Conflict):  # created before, by this process or by the previous one
            self._api.create(JOBS, self._policy.metadata.namespace, job)

    def look(self, run: str) -> JobStatus | None:
        """State of the Job; None if it does not exist or is being deleted."""
        metadata = self._policy.metadata
        found = self._api.find(JOBS, metadata.namespace, object_names.plan_job(metadata.name, run))
        if found is None or found["metadata"].get("deletionTimestamp"):
            return None
        for condition in (found.get("status") or {}).get("conditions") or []:
            if condition.get("status") != "True":
                continue
            if condition.get("type") == "Complete":
                return JobStatus(JobState.SUCCEEDED)
            if condition.get("type") == "Failed":
                return JobStatus(JobState.FAILED, self._why(run, condition))
        return JobStatus(JobState.ACTIVE, self._trouble(run))

    def _why(self, run: str, condition: Object) -> str:
        name = object_names.plan_job(self._policy.metadata.name, run)
        said = f"Job {name}: {condition.get('reason', 'Failed')}"
        words = [text for pod in self._pods(run) for text in _last_words(pod)]
        detail = words[-1] if words else str(condition.get("message", ""))
        return f"{said}: {detail}" if detail else said

    def _trouble(self, run: str) -> str:
        """Why its pod does not start, if known, for example an image that cannot be pulled."""
        for pod in self._pods(run):
            for status in _statuses(pod):
                waiting = (status.get("state") or {}).get("waiting") or {}
                if waiting.get("reason") in ("ErrImagePull", "ImagePullBackOff", "CreateContainerConfigError"):
                    return last_words([f"{waiting['reason']}: {waiting.get('message', '')}"])
        return ""

    def _pods(self, run: str) -> list[Object]:
        """Pods of the run, the oldest first; none without the permission to list them, which only affects messages."""
        try:
            found = self._api.list(PODS, self._policy.metadata.namespace, run_labels(self._policy, run))
        except BellwetherError as error:
            if self._said != str(error):
                self._said = str(error)
                log.warning("job_pods_not_read", error=self._said)
            return []
        return sorted(found, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")))


def _statuses(pod: Object) -> list[Object]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def _last_words(pod: Object) -> list[str]:
    words = []
    for status in _statuses(pod):
        ended = (status.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            said = last_words(str(ended.get("message", "")).splitlines())
            reason = ended.get("reason", "Error")
            words.append(f"{status.get('name')}: {reason}, exit status {ended['exitCode']}: {said}".removesuffix(": "))
    return words
