"""A desk for rebalances in tests: a real store, and a small planner in the place of the Spark jobs.

``Planner`` is a ``ports.PlanJobs`` that makes an honest plan of the problem in the store when it is let; ``desk_of``
makes desks that nobody starts, so that a test takes each step itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.parquet import plans, problems
from bellwether.adapters.parquet.filesystems import Store
from bellwether.adapters.parquet.shelves import Shelf
from bellwether.adapters.planwork import file_name
from bellwether.api.v1alpha1.leadershippolicy import LeadershipPolicy
from bellwether.core.loadplans import LoadPlan
from bellwether.core.problems import PartitionSlot
from bellwether.core.runs import Run
from bellwether.handlers.loops import MakeDesk
from bellwether.handlers.rebalancing import Desk, Tools
from bellwether.ports import Clock, JobState, JobWord
from testkit.loadplanning import planned, write_loads

Rates = Callable[[PartitionSlot], float]


def skewed(slot: PartitionSlot) -> float:
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
    tamper: Callable[[LoadPlan], LoadPlan] = lambda plan: plan
    started: list[str] = field(default_factory=list)
    closed: int = 0
    left: dict[str, int] = field(default_factory=dict)

    def start(self, run: str) -> None:
        """Remember the run; a second start changes nothing."""
        if run not in self.started:
            self.started.append(run)
            self.left[run] = self.looks

    def look(self, run: str) -> JobWord | None:
        """Active so many times, then done."""
        if run not in self.started or self.gone:
            return None
        if self.left[run] > 0:
            self.left[run] -= 1
            return JobWord(JobState.ACTIVE)
        if self.fails:
            return JobWord(JobState.FAILED, self.fails)
        self._work(file_name(*self.policy, run))
        return JobWord(JobState.SUCCEEDED)

    def close(self) -> None:
        """Counted."""
        self.closed += 1

    def _work(self, name: str) -> None:
        posed = problems.read_problem(self.store, name)
        known = {s.key: (self.rates(s), 0.0) for s in posed.partitions}
        write_loads(self.store, name, known)
        plan, moves = planned(posed, known)
        plans.write_plan(self.store, self.tamper(plan), moves)


def desk_of(planner: Planner, clock: Clock | None = None, made: list[Desk] | None = None) -> MakeDesk:
    """How a loop gets its desk; every desk that was made is appended to ``made``."""

    def tools(policy: LeadershipPolicy, cluster_id: str) -> Tools:
        shelf = Shelf(planner.store, cluster_id, f"{policy.metadata.namespace}/{policy.metadata.name}")
        return Tools(shelf, planner)

    def make(run: Run, wake: Callable[[], None]) -> Desk:
        desk = Desk(run, tools, clock or SystemClock(), wake)
        if made is not None:
            made.append(desk)
        return desk

    return make


def asking(**annotations: str) -> Mapping[str, Any]:
    """A merge patch with annotations of ours: ``rebalance="now"``, ``approve_plan=digest``; empty takes one away."""
    named = {f"bellwether.dev/{name.replace('_', '-')}": value or None for name, value in annotations.items()}
    return {"metadata": {"annotations": named}}
