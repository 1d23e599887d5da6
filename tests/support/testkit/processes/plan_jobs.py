"""The Job that computes a load plan, played by a test: nothing runs pods here, and no controller ends Jobs.

In: a ``Site`` whose policy rebalances, and a small planner. Out: the Job with the status that a controller would give
it. Called by tests of rebalances.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import JOBS, Object
from bellwether_load.controller.job_commands import file_name
from testkit.processes.sites import POLICY, Site
from testkit.simulation.rebalance_fixture import Planner
from waiting import ran

MOMENT = "2026-11-21T12:00:00Z"


def waiting_job(site: Site) -> Object:
    """The one Job that has not ended."""

    def begun() -> list[Object]:
        return [job for job in site.api.list(JOBS, site.namespace) if not job.get("status")]

    site.until(begun, 60, "there is a Job", site.rebalance)
    (job,) = begun()
    return job


def complete(site: Site, job: Mapping[str, Any], planner: Planner) -> str:
    """Do a Job's work, and say that it is complete; the name of its files in the store."""
    name = file_name(site.namespace, POLICY, job["metadata"]["labels"][object_names.RUN_LABEL])
    planner.work(name)
    conditions = [met("SuccessCriteriaMet"), met("Complete")]
    end_job(site, job, succeeded=1, completionTime=MOMENT, conditions=conditions)
    return name


def run_jobs(site: Site) -> None:
    """Run the commands of the Jobs that have not ended, without Spark, and say what came of them."""
    for job in site.api.list(JOBS, site.namespace):
        if job.get("status"):
            continue
        pod = job["spec"]["template"]["spec"]
        if all(_runs(container) for container in (*pod["initContainers"], *pod["containers"])):
            conditions = [met("SuccessCriteriaMet"), met("Complete")]
            end_job(site, job, succeeded=1, completionTime=MOMENT, conditions=conditions)
        else:
            end_job(site, job, failed=1, conditions=[met("FailureTarget"), met("Failed")])


def _runs(container: Mapping[str, Any]) -> bool:
    given = list(container["args"])
    if "--memory" in given:
        given = [*given[: given.index("--memory")], "--engine", "process"]
    return ran([sys.executable, *container["command"][1:], *given], 120).returncode == 0


def end_job(site: Site, job: Mapping[str, Any], **status: Any) -> None:
    """Give a Job a status."""
    ended = {"startTime": MOMENT, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}, **status}
    site.api.merge(JOBS, site.namespace, job["metadata"]["name"], {"status": ended}, sub="status")


def met(kind: str) -> dict[str, str]:
    """A condition of a Job that holds."""
    return {"type": kind, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": MOMENT}
