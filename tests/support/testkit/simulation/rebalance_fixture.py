"""A desk for rebalances in tests: a real store, and a small planner in the place of the Spark jobs.

``Planner`` is a ``PlanJobs`` that makes an honest plan of the problem in the store when it is let;
``desk_of`` makes desks that are not started, so that a test takes each step itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import LEADER_REBALANCES
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.rebalance_status import LeaderRebalanceStatus
from bellwether.controllers.policy_controller import PolicyController
from bellwether.controllers.policy_rebalance import MakeRebalancer
from bellwether.ports.clock import Clock
from bellwether_load.api.load_config import LoadConfig
from bellwether_load.controller.job_commands import JobState, JobStatus, file_name
from bellwether_load.controller.rebalance_controller import RebalanceBackend, RebalanceController
from bellwether_load.plan.problem import PartitionInput
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import problem_files
from bellwether_load.store.plans.load_hours import write_account
from bellwether_load.store.plans.plan_store import FilePlanStore
from testkit.kubernetes.api_objects import LOADS
from testkit.loads.approved_plans import write_plan
from testkit.loads.load_configs import load_config
from testkit.loads.small_planner import account, planned, write_loads
from testkit.simulation.operator_fixture import MemoryOperator
from testkit.values.builders import site

Rates = Callable[[PartitionInput], float | None]
"""Bytes/s of a partition; None where nothing is known of it, so that it stays."""


def skewed(slot: PartitionInput) -> float:
    """The first partitions of a topic carry most."""
    return 1000.0 / (1 + slot.partition)


@dataclass
class Planner:
    """Jobs that end well after so many looks; ``fails`` and ``gone`` change what becomes of them."""

    store: Store
    policy: tuple[str, str] = ("default", "main")
    rates: Rates = skewed
    looks: int = 0
    fails: str = ""
    gone: bool = False
    tamper: Callable[[RebalancePlan], RebalancePlan] = lambda plan: plan
    started: list[str] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)

    def start(self, run: str) -> None:
        """Remember the run; a second start changes nothing."""
        if run not in self.started:
            self.started.append(run)
            self.left[run] = self.looks

    def look(self, run: str) -> JobStatus | None:
        """Active so many times, then done."""
        if run not in self.started or self.gone:
            return None
        if self.left[run] > 0:
            self.left[run] -= 1
            return JobStatus(JobState.ACTIVE)
        if self.fails:
            return JobStatus(JobState.FAILED, self.fails)
        self.work(file_name(*self.policy, run))
        return JobStatus(JobState.SUCCEEDED)

    def work(self, name: str) -> None:
        """Measure and plan: what the jobs of a run do."""
        posed = problem_files.read_problem(self.store, name)
        known = {s.key: (rate, 0.0) for s in posed.partitions if (rate := self.rates(s)) is not None}
        written = write_loads(self.store, name, known, {s.topic_id: s.topic for s in posed.partitions})
        write_account(self.store, written, account() | {"clusterId": posed.header.cluster_id})
        plan, moves = planned(posed, known)
        write_plan(self.store, self.tamper(plan), moves)


def desk_of(
    planner: Planner,
    clock: Clock | None = None,
    made: list[RebalanceController] | None = None,
    config: LoadConfig | None = None,
) -> MakeRebalancer:
    """How a loop gets its desk; every desk that was made is appended to ``made``. ``config``: what it may use."""
    config = config or load_config(str(planner.store))

    def tools(policy: LeadershipPolicy, cluster_id: str) -> RebalanceBackend:
        plans = FilePlanStore(planner.store, cluster_id, f"{policy.metadata.namespace}/{policy.metadata.name}")
        return RebalanceBackend(plans, planner)

    def make(status: LeaderRebalanceStatus, wake: Callable[[], None]) -> RebalanceController:
        desk = RebalanceController(status, config.settings, tools, clock or SystemClock(), wake)
        if made is not None:
            made.append(desk)
        return desk

    return make


def asking(**annotations: str) -> Mapping[str, Any]:
    """A merge patch with annotations of ours: ``rebalance="now"``, ``approve_plan=digest``; empty takes one away."""
    named = {f"bellwether.dev/{name.replace('_', '-')}": value or None for name, value in annotations.items()}
    return {"metadata": {"annotations": named}}


SPEC: dict[str, Any] = {
    "waves": {"partitions": 2, "pauseSeconds": 0},
}


class Desked(MemoryOperator):
    """An operator whose policy rebalances: eight skewed partitions on three well brokers."""

    def __init__(self, folder: Path) -> None:
        super().__init__(site=site(3, {"orders": 8}))
        self.planner = Planner(Store.open(str(folder)))
        self.desks: list[RebalanceController] = []
        self.desk = desk_of(self.planner, self.site.clock, self.desks)
        self.site.well()

    def annotate(self, **annotations: str) -> None:
        """Set annotations of ours on the LeaderRebalance."""
        self.api.merge(LEADER_REBALANCES, "default", LOADS, dict(asking(**annotations)))

    def go(self, loop: PolicyController, times: int = 1, seconds: float = 1.0) -> None:
        """Turns, and after each one whatever the desk can do."""
        for _ in range(times):
            self.step(loop, seconds=seconds)
            for _ in range(5):
                if not (self.desks and self.desks[-1].step()):
                    break

    def until(self, loop: PolicyController, state: str, most: int = 30) -> None:
        """Go on until the rebalance is in that state. Raises AssertionError when it does not get there."""
        for _ in range(most):
            if self.state == state:
                return
            self.go(loop)
        raise AssertionError(f"{state} was not reached: {self.status}")

    @property
    def status(self) -> dict[str, Any]:
        """The status of the LeaderRebalance; empty before there is one."""
        found = self.api.find(LEADER_REBALANCES, "default", LOADS)
        return dict((found or {}).get("status") or {})

    def rebalance_condition(self, type_: str) -> tuple[str, str, str]:
        """Status, reason and message of a condition of the LeaderRebalance."""
        found = next(c for c in self.status["conditions"] if c["type"] == type_)
        return found["status"], found["reason"], found["message"]

    @property
    def state(self) -> str:
        """Its state."""
        return str(self.status.get("state", ""))

    def proposed(self, **spec: Any) -> PolicyController:
        """A loop whose policy has a plan that waits for approval."""
        loop = self.make(rebalance={**SPEC, **spec})
        self.annotate(rebalance="please")
        self.until(loop, "Proposed")
        return loop

    def approve(self) -> str:
        """Name the digest of the plan that is proposed; returns it."""
        digest = str(self.status["digest"])
        self.annotate(approve_plan=digest)
        return digest

    def led(self) -> dict[int, float]:
        """What each broker leads, by the planner's own rates."""
        found = dict.fromkeys(self.site.cluster.brokers, 0.0)
        for p in self.site.cluster.partitions():
            assert p.leader is not None
            found[p.leader] += 1000.0 / (1 + p.index)
        return found
