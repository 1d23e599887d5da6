"""Plan store of one policy: save a problem, find the plan computed for it, verify it.

In: a policy's problems, by the name of their run. Out: plans that were found, rechecked and bound to what was approved;
the loads that were measured for them.
Nothing that a job wrote is trusted: the recheck derives it anew, and the digest holds the moves. Called by the operator
and by ``bellwether rebalance``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from bellwether.adapters.store.filesystems import Store
from bellwether.adapters.store.plans import plan_files, problem_files
from bellwether.adapters.store.plans.load_reader import LOADS, read_loads
from bellwether.adapters.store.plans.plan_verification import recheck
from bellwether.adapters.store.store_errors import PlanUnfit, StoreDamaged, StoreMissing
from bellwether.core.model.loads import Loads
from bellwether.core.rebalance.problem import Problem
from bellwether.core.rebalance.rebalance_plan import RebalancePlan, plan_digest
from bellwether.core.rebalance.waves import ApprovedPlan
from bellwether.core.settings.objective import Objective
from bellwether.plan_verifier.partition_sums import FORCED

KEPT = 5
"""How many problems of a policy stay, with their loads: to recheck a plan by. Plans stay all, for their history."""


@dataclass(frozen=True, slots=True)
class Rechecked:
    """A plan whose every claim is so, and how many of its leaders may not stay where they are (racks, say)."""

    plan: RebalancePlan
    forced: int


class FilePlanStore:
    """The part of a store that one policy works with; its plans must name that ``cluster_id`` and that ``policy``."""

    def __init__(self, store: Store, cluster_id: str, policy: str) -> None:
        self._store = store
        self._cluster_id = cluster_id
        self._policy = policy

    def has_problem(self, name: str) -> bool:
        """Whether a whole problem of that name is there."""
        return self._store.exists(f"{problem_files.FOLDER}/{name}/{problem_files.TERMS}")

    def put_problem(self, name: str, problem: Problem) -> None:
        """Write a problem. Raises StoreError, or Terminal where it makes no sense."""
        problem_files.write_problem(self._store, name, problem)

    def plan_for(self, name: str) -> Rechecked:
        """The plan that was made of a problem, rechecked from its inputs alone. PlanUnfit names what is wrong."""
        terms = problem_files.read_terms(self._store, name)
        wanted = (terms.cluster_id, terms.policy, terms.made_at)
        found = [p for p in plan_files.plans(self._store) if (p.cluster_id, p.policy, p.made_at) == wanted]
        if not found:
            raise PlanUnfit(
                f"the job ended well and {self._store.where(plan_files.FOLDER)} holds no plan of problem {name}"
            )
        plan = found[-1]
        self._check_whose(plan)
        below = self._store.below
        report = recheck(
            below(f"{problem_files.FOLDER}/{name}"),
            below(f"{LOADS}/{name}"),
            below(f"{plan_files.FOLDER}/{plan.digest}"),
        )
        if not report.passed:
            more = f" (and {len(report.faults) - 3} more)" if len(report.faults) > 3 else ""
            raise PlanUnfit(f"plan {plan.digest} is refused: {'; '.join(report.faults[:3])}{more}")
        forced = next(check.found for check in report.checks if check.name == FORCED)
        return Rechecked(plan, int(forced.replace(",", "")))

    def accepted(self, digest: str) -> ApprovedPlan:
        """An approved plan, ready to be applied. PlanUnfit where its moves are not those that the digest names."""
        try:
            plan = plan_files.read_plan(self._store, digest)
            moves = list(plan_files.read_moves(self._store, digest))
        except StoreMissing as error:
            raise PlanUnfit(f"plan {digest} is not in the store any more: {error}") from None
        self._check_whose(plan)
        found = plan_digest(plan.problem_digest, moves)
        if found != digest:
            raise PlanUnfit(f"plan {digest} is refused: its moves have the digest {found}, somebody changed them")
        return ApprovedPlan.of(plan, moves)

    def finished(self, prefix: str) -> tuple[str, ...]:
        """Of this policy's problems whose names begin so: those that a plan was made of, the newest first.

        Then their loads are whole. What cannot be read is left out. Raises StoreError.
        """
        ours = (self._cluster_id, self._policy)
        made = {p.made_at for p in plan_files.plans(self._store) if (p.cluster_id, p.policy) == ours}
        found = []
        for name in self._runs(prefix):
            with suppress(StoreDamaged, StoreMissing):
                terms = problem_files.read_terms(self._store, name)
                if (terms.cluster_id, terms.policy) == ours and terms.made_at in made:
                    found.append((terms.made_at, name))
        return tuple(name for _, name in sorted(found, reverse=True))

    def measured(self, name: str, objective: Objective, capacities: Mapping[int, int]) -> Loads:
        """What was measured for a problem, weighed as ``objective`` says. Raises StoreError."""
        terms = problem_files.read_terms(self._store, name)
        if (terms.cluster_id, terms.policy) != (self._cluster_id, self._policy):
            where = self._store.where(f"{problem_files.FOLDER}/{name}")
            whose = f"policy {terms.policy} on Kafka cluster {terms.cluster_id}"
            raise StoreDamaged(f"{where}: is a problem of {whose}, not of {self._policy} on {self._cluster_id}")
        return read_loads(self._store, name, terms, objective, capacities)

    def tidy(self, prefix: str) -> None:
        """Remove all but the last problems, and their loads, whose names are this and a run's name."""
        for name in self._runs(prefix)[:-KEPT]:
            self._store.delete_directory(f"{problem_files.FOLDER}/{name}")
            self._store.delete_directory(f"{LOADS}/{name}")

    def _runs(self, prefix: str) -> list[str]:
        """The whole problems whose names are this and a run's name, the oldest first."""
        found = []
        for stored in self._store.list(problem_files.FOLDER):
            _, name, *rest = stored.path.split("/")
            # A run's name has no dot: what has one belongs to a policy whose name begins like this one's.
            if rest == [problem_files.TERMS] and name.startswith(prefix) and "." not in name.removeprefix(prefix):
                found.append((str(stored.modified), name))
        return [name for _, name in sorted(found)]

    def _check_whose(self, plan: RebalancePlan) -> None:
        if plan.cluster_id != self._cluster_id:
            raise PlanUnfit(f"plan {plan.digest} is for Kafka cluster {plan.cluster_id}, not for {self._cluster_id}")
        if plan.policy != self._policy:
            raise PlanUnfit(f"plan {plan.digest} is of policy {plan.policy}, not of {self._policy}")
