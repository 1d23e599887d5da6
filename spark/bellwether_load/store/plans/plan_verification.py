"""Verify a plan from three folders of a store: read problem, loads and plan, and pass them to ``plan_verifier``.

In: a store opened at each folder. Out: the verifier's report, or a StoreError if a file cannot be read. Loads by hour
are streamed. Called by ``bellwether verify-plan`` and by the operator.
"""

from __future__ import annotations

from bellwether_load.plan.documents import PLAN, PROBLEM, header_line
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import plan_files, problem_files
from bellwether_load.store.plans.load_hours import hour_blocks, known_hours, load_files, load_table, read_account
from bellwether_load.verify.plan_verifier import Report, verify


def recheck(
    problem: Store,
    loads: Store,
    plan: Store,
    *,
    summary: RebalancePlan | None = None,
    input_digest: str = "",
) -> Report:
    """Verify a plan.

    ``summary``: the plan's summary if the caller has read it, so that what it uses is what was verified.
    ``input_digest``: of the problem that the operator wrote; it is compared if given, in the pass that verifies.
    """
    posed = problem_files.read_document(problem, problem_files.TERMS, PROBLEM)
    claimed = summary or problem_files.read_document(plan, plan_files.SUMS, PLAN)
    files = load_files(loads)
    hours = known_hours(loads, files)
    return verify(
        posed,
        header_line(posed),
        problem_files.read_partitions(problem),
        load_table(loads, files, posed.objective.statistic),
        claimed,
        plan_files.read_table(plan),
        input_digest,
        hours,
        hour_blocks(loads, files, len(hours), requests=posed.objective.request_bytes > 0),
        read_account(loads),
    )


def recheck_stored(store: Store, name: str, plan: RebalancePlan, input_digest: str = "") -> Report:
    """Verify a plan of the store for the problem and the loads of that name."""
    folders = f"{problem_files.FOLDER}/{name}", f"{plan_files.LOADS}/{name}", f"{plan_files.FOLDER}/{plan.digest}"
    return recheck(*map(store.below, folders), summary=plan, input_digest=input_digest)
