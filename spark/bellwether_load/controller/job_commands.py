"""Jobs that measure loads and compute a rebalance plan: the two command lines, Spark's settings, the state of a job.

Pure. In: the store and the job profile of a policy, and a run's name. Out: argument lists and variables, the same for a
Job in one pod and Spark on Kubernetes: one job code. ``PlanJobs`` runs them.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from kubernetes.utils import parse_quantity

from bellwether_load.api.job_profile import JobType
from bellwether_load.api.load_config import LoadSettings

KUBERNETES_MASTER = "k8s://https://kubernetes.default.svc"
HEAP_SHARE = 0.6
"""Of a pod's memory; the rest is for Python, Arrow and the JVM itself."""


class JobState(StrEnum):
    """The state of a job."""

    ACTIVE = "Active"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The state of a job, and why it failed."""

    state: JobState
    message: str = ""


class PlanJobs(Protocol):
    """Runs the jobs that measure loads and make a plan, somewhere else: no call waits for one to end.

    Raises Transient, or Terminal when a person must act.
    """

    def start(self, run: str) -> None:
        """Start the job of that run; nothing happens where it has been started before."""
        ...

    def look(self, run: str) -> JobStatus | None:
        """Its status; None if there is no such job."""
        ...


def file_name(namespace: str, policy: str, run: str) -> str:
    """What the problem and the loads of a run are called in the store; letters that Kubernetes' names have.

    The command line may use a policy's store, too, so it contains the policy.
    """
    return f"{namespace}.{policy}.{run}"


def commands(settings: LoadSettings, name: str, days: int, cluster_id: str) -> tuple[list[str], list[str]]:
    """The two steps, one after the other: measure the loads of so many days, make the plan, which needs no Spark."""
    profile, base, store = settings.profile, ["python", "-m", "bellwether_load"], ["--store", settings.uri]
    engine = ["--memory", f"{heap_mebibytes(profile.resources.memory)}m"]
    if profile.type is JobType.SPARK_ON_KUBERNETES:
        engine += ["--master", KUBERNETES_MASTER]
    loads = [*base, "loads", *store, "--name", name, "--days", str(days), "--cluster", cluster_id, *engine]
    return loads, [*base, "plan", *store, "--problem", name, "--loads", name]


def submit_arguments(settings: Mapping[str, str]) -> str:
    """The value of ``PYSPARK_SUBMIT_ARGS`` that gives Spark these settings."""
    arguments: list[str] = []
    for name, value in settings.items():
        arguments += ["--conf", f"{name}={value}"]
    return shlex.join([*arguments, "pyspark-shell"])


def heap_mebibytes(quantity: str) -> int:
    """The JVM's heap in a pod of that much memory, in MiB; Spark wants 512 at least."""
    return max(512, math.floor(_number(quantity) * HEAP_SHARE / 2**20))


def cores(quantity: str) -> int:
    """Whole cores for a CPU quantity, one at least."""
    return max(1, math.ceil(_number(quantity)))


def last_words(lines: Iterable[str], most: int = 600) -> str:
    """The end of a job's output in one line: usually the reason why it failed."""
    said = [" ".join(line.split()) for line in lines if line.strip()]
    errors = [line for line in said if line.startswith("error:")]
    text = errors[-1] if errors else " | ".join(said[-3:])
    return text if len(text) <= most else f"…{text[-most:]}"


def _number(quantity: str) -> float:
    return float(parse_quantity(quantity))
