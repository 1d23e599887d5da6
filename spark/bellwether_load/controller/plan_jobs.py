"""Port to the jobs that measure loads and compute a rebalance plan.

Implemented by ``kubernetes_jobs`` and ``process_jobs``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


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

    def close(self) -> None:
        """Stop polling; end jobs that would be orphaned."""
        ...
