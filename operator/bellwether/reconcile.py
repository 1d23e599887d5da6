"""Reconcile one policy: gather facts, judge brokers, decide, plan, execute, report.

Called by the operator's policy loop, by the command line and by simulations. Everything it needs comes through ports,
so a reconcile can be replayed in memory; every decision is made in :mod:`bellwether.core`.
"""

from __future__ import annotations

from dataclasses import replace

from bellwether.core.demotion.decisions import DecisionFunction, decide
from bellwether.core.detection.verdicts import judge
from bellwether.core.execution.result import ExecutionResult
from bellwether.core.model.flap_damping import count_flaps
from bellwether.core.planning.guards import remember_refusals
from bellwether.core.planning.plan import build_plan
from bellwether.core.planning.preferred_election import PreferredElectionStatus, plan_preferred_election
from bellwether.core.quarantine.pause_decision import decide_quarantines
from bellwether.core.rebalance.problem_builder import problem_from_snapshot
from bellwether.core.rebalance.rebalance_waves import RebalanceInput, apply_next_wave
from bellwether.core.reporting.audit import begin_entry
from bellwether.core.reporting.report import Report, report
from bellwether.core.settings.policy import Policy
from bellwether.execute import execute
from bellwether.gather import Memory, gather
from bellwether.ports.world import World

NOTHING = RebalanceInput()


def reconcile(
    world: World,
    policy: Policy,
    memory: Memory,
    decide: DecisionFunction = decide,
    rebalance_input: RebalanceInput = NOTHING,
) -> tuple[Report, Memory]:
    """Reconcile once. ``decide`` is the policy's decision step or a manual command's.

    Raises what the ports raise; the caller decides when to retry.
    """
    # 1. Observe: gather all facts once. No later step reads the cluster to decide.
    observed = gather(world, policy, memory, rebalance_input.loads)
    snapshot, now = observed.snapshot, observed.snapshot.now

    # 2. Judge every broker, then decide which may lead, and whose process is paused. "Unknown" is a verdict and moves
    # nothing.
    verdicts = judge(snapshot, policy, memory.verdicts)
    decisions = decide(snapshot, verdicts, policy)
    quarantines = decide_quarantines(snapshot, policy, verdicts, decisions)

    # 3. Plan: the order every partition should have. Moves that a guard refuses stay in the plan, with their
    # reason. The next wave of an approved rebalance plan changes baselines first.
    problem = (
        problem_from_snapshot(snapshot, decisions.demoted, verdicts, policy) if rebalance_input.wants_problem else None
    )
    progress = apply_next_wave(rebalance_input, snapshot, decisions, verdicts, policy)
    snapshot = replace(snapshot, record=progress.record)
    plan = build_plan(snapshot, decisions, verdicts, policy)
    election = plan_preferred_election(observed.rounds, snapshot, plan, decisions, verdicts, policy)
    plan = replace(plan, moves=(*plan.moves, *election.moves)) if election is not None else plan

    # 4. Elect: batch by batch, each checked again with a fresh read. In Observe mode or suspended, nothing is changed.
    result, record = ExecutionResult(), memory.record
    if policy.acts:
        world.clusters.avoid(replace(memory, verdicts=verdicts).suspects | set(decisions.demoted))
        entry = begin_entry(
            snapshot, memory.record, verdicts, plan, progress, rebalance_input.occasion, rebalance_input.approved_by
        )
        execution = execute(plan, progress.record, policy, world, observed.recovered.strays, entry)
        result, record = execution.result, execution.record

    # 5. Report. The same input makes the same bytes.
    rounds = election.done(result.elected, now) if election is not None else None
    window = policy.promotion.flap_window_seconds
    flaps = count_flaps(snapshot.flaps, memory.record.demoted, record.demoted, now, window)
    snapshot = replace(snapshot, flaps=flaps)
    said = report(snapshot, policy, verdicts, plan, result, observed.recovered.notes, progress, problem, quarantines)
    if election is not None and rounds is not None:
        balance = PreferredElectionStatus(election.imbalance, rounds.auto, rounds.last, election.again_seconds)
        said = replace(said, election=balance)
    refused = remember_refusals(memory.refused, result.holds, plan.targets, now)
    kept = replace(memory, record=record, verdicts=verdicts, refused=refused, flaps=flaps)
    return said, replace(kept, rounds=rounds, quarantine_orders=quarantines.orders, floors=observed.floors)
