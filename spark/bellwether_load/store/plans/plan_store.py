"""Plan store of one policy: save a problem, find the plan computed for it, verify it.

In: a policy's problems, by the name of their run. Out: plans that were found, verified and compared with what was
approved; the loads that were measured for them. A plan that a job wrote is not trusted: it is verified before it is
proposed and again before it is applied, against a problem and loads that its digest covers, and the problem against the
digest of the one that was put. Measured loads are taken as they are: nothing else knows them. Called by the operator
and by ``bellwether rebalance``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bellwether.core.model.loads import Loads
from bellwether.core.settings.objective import Objective
from bellwether.core.waves.approved_plan import ApprovedPlan
from bellwether_load.plan.digests import plan_digest
from bellwether_load.plan.problem import Problem
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import plan_files, problem_files
from bellwether_load.store.plans.load_reader import read_loads
from bellwether_load.store.plans.plan_verification import recheck_stored
from bellwether_load.store.store_errors import PlanUnfit, StoreDamaged, StoreMissing
from bellwether_load.verify.plan_verifier import INPUT_DIGEST, Report

KEPT = 5
"""Number of problems of a policy that are kept with their loads, to verify plans. All plans are kept."""


MOST_MOVES = 500_000
"""Of a plan that is applied: they are held in memory, 400 bytes each."""


@dataclass(frozen=True, slots=True)
class Rechecked:
    """A plan that passed its verification, and the report of that."""

    plan: RebalancePlan
    report: Report


class FilePlanStore:
    """The part of a store that belongs to one policy; its plans must be for that ``cluster_id`` and ``policy``."""

    def __init__(self, store: Store, cluster_id: str, policy: str) -> None:
        self._store = store
        self._cluster_id = cluster_id
        self._policy = policy

    def has_problem(self, name: str) -> bool:
        """Whether a complete problem of that name exists."""
        return self._store.exists(f"{problem_files.FOLDER}/{name}/{problem_files.TERMS}")

    def put_problem(self, name: str, problem: Problem) -> str:
        """Write a problem; returns its digest. Raises StoreError."""
        return problem_files.write_problem(self._store, name, problem)

    def plan_for(self, name: str, input_digest: str) -> Rechecked:
        """The plan for a problem, verified from its inputs alone. PlanUnfit names what is wrong.

        ``input_digest``: what ``put_problem`` returned; a stored problem with another one is refused.
        """
        terms = problem_files.read_terms(self._store, name)
        found = (plan for plan in plan_files.each_plan(self._store) if plan_files.poses(terms, plan))
        plan = max(found, key=plan_files.by_age, default=None)
        if plan is None:
            raise PlanUnfit(
                f"the job succeeded, but {self._store.where(plan_files.FOLDER)} has no plan for problem {name}"
            )
        self._check_whose(plan)
        return self._rechecked(name, plan, input_digest)

    def _rechecked(self, name: str, plan: RebalancePlan, input_digest: str) -> Rechecked:
        report = recheck_stored(self._store, name, plan, input_digest)
        if exchanged := report.faults_of(INPUT_DIGEST):
            where = self._store.where(f"{problem_files.FOLDER}/{name}")
            remedy = "find out who else writes to the store, then request a new plan"
            raise PlanUnfit(f"plan {plan.digest} is rejected: {where}: {exchanged[0]}; {remedy}")
        if not report.passed:
            more = f" (and {len(report.faults) - 3} more)" if len(report.faults) > 3 else ""
            raise PlanUnfit(f"plan {plan.digest} is rejected: {'; '.join(report.faults[:3])}{more}")
        return Rechecked(plan, report)

    def accepted(self, digest: str, input_digest: str = "") -> ApprovedPlan:
        """An approved plan, ready to be applied. Raises PlanUnfit if its moves do not match the digest, or if it does
        not hold for the problem and the loads that are stored now.

        ``input_digest`` as in ``plan_for``; without it, only the plan's own digest pins problem and loads.
        """
        try:
            plan = plan_files.read_plan(self._store, digest)
            moves = plan_files.read_table(self._store.below(f"{plan_files.FOLDER}/{digest}"))
        except StoreMissing as error:
            raise PlanUnfit(f"plan {digest} is not in the store any more: {error}") from None
        self._check_whose(plan)
        if len(moves) > MOST_MOVES:
            raise PlanUnfit(f"plan {digest} has more than {MOST_MOVES:,} moves: set a smaller spec.maxMoves")
        found = plan_digest(plan.problem_digest, moves)
        if found != digest:
            raise PlanUnfit(f"plan {digest} is rejected: its moves have the digest {found}, they were changed")
        if (problem := plan_files.source(self._store, plan)) is None:
            raise PlanUnfit(
                f"plan {plan.digest} cannot be verified: its problem is not in the store any more (the last {KEPT} are"
                " kept): request a new plan"
            )
        self._rechecked(problem, plan, input_digest)
        closed = frozenset(b.id for b in plan.brokers if not b.open)
        loads = {b.id: (b.before, b.capacity) for b in plan.brokers}
        each = list(plan_files.each_move(moves))
        return ApprovedPlan.by_relief(plan.digest, plan.made_at, closed, each, loads)

    def finished(self, prefix: str) -> tuple[str, ...]:
        """This policy's problems with this name prefix for which a plan exists, the newest first.

        Their loads are then complete. Unreadable ones are ignored. Raises StoreError.
        """
        ours = (self._cluster_id, self._policy)
        made = {p.made_at for p in plan_files.each_plan(self._store) if (p.cluster_id, p.policy) == ours}
        terms = problem_files.all_terms(self._store, prefix)
        found = [(t.made_at, n) for n, t in terms.items() if (t.cluster_id, t.policy) == ours and t.made_at in made]
        return tuple(name for _, name in sorted(found, reverse=True))

    def measured(self, name: str, objective: Objective, capacities: Mapping[int, int]) -> Loads:
        """Loads that were measured for a problem, weighted by ``objective``. Raises StoreError."""
        terms = problem_files.read_terms(self._store, name)
        if (terms.cluster_id, terms.policy) != (self._cluster_id, self._policy):
            where = self._store.where(f"{problem_files.FOLDER}/{name}")
            whose = f"policy {terms.policy} on Kafka cluster {terms.cluster_id}"
            raise StoreDamaged(f"{where}: belongs to {whose}, not to {self._policy} on {self._cluster_id}")
        return read_loads(self._store, name, terms, objective, capacities)

    def tidy(self, prefix: str) -> None:
        """Remove all but the latest problems with this name prefix, and their loads."""
        for name in problem_files.problem_names(self._store, prefix)[:-KEPT]:
            self._store.delete_directory(f"{problem_files.FOLDER}/{name}")
            self._store.delete_directory(f"{plan_files.LOADS}/{name}")

    def _check_whose(self, plan: RebalancePlan) -> None:
        if plan.cluster_id != self._cluster_id:
            raise PlanUnfit(f"plan {plan.digest} is for Kafka cluster {plan.cluster_id}, not for {self._cluster_id}")
        if plan.policy != self._policy:
            raise PlanUnfit(f"plan {plan.digest} is of policy {plan.policy}, not of {self._policy}")
