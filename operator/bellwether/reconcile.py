"""Reconcile one policy: gather facts, judge brokers, decide, plan, execute, report.

Called by the operator's policy loop, by the command line and by simulations. Everything it needs comes through ports,
so a reconcile can be replayed in memory; every decision is made in :mod:`bellwether.core`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bellwether.core.demotion.decisions import DecisionFunction, decide
from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import judge
from bellwether.core.execution.arrivals import after_sending
from bellwether.core.execution.recovery import OverwrittenOrders, set_aside
from bellwether.core.execution.result import ExecutionResult
from bellwether.core.model.flap_damping import count_flaps, kept_from_leading
from bellwether.core.model.move_cost import MOVES_KEPT
from bellwether.core.model.quarantine_order import quarantine_changes
from bellwether.core.planning.guards import remember_refusals
from bellwether.core.planning.plan import build_plan
from bellwether.core.planning.preferred_election import (
    PreferredElectionStatus,
    leaders_of_released,
    plan_preferred_election,
)
from bellwether.core.quarantine.hold_decision import decide_quarantines
from bellwether.core.rebalance.problem import Problem
from bellwether.core.rebalance.problem_builder import rebalance_problem
from bellwether.core.reporting.audit import begin_entry, quarantine_entry
from bellwether.core.reporting.report import Report, report
from bellwether.core.reporting.requeue import timer_delays
from bellwether.core.settings.policy import Policy
from bellwether.core.waves.approved_plan import RebalanceInput
from bellwether.core.waves.rebalance_waves import apply_next_wave
from bellwether.execute import cancel_strays, execute
from bellwether.gather import Memory, gather
from bellwether.ports.world import World
from bellwether.steady_clock import SteadyClock

NOTHING = RebalanceInput()


@dataclass(frozen=True)
class ReconcileResult:
    """Result of one reconcile: the report, the memory for the next one, and a rebalance problem where one was wanted.

    A problem may hold hundreds of thousands of partitions: pass it on, and do not keep it.
    """

    report: Report
    memory: Memory
    problem: Problem | None = None


def reconcile(
    world: World,
    policy: Policy,
    memory: Memory,
    decide: DecisionFunction = decide,
    rebalance_input: RebalanceInput = NOTHING,
) -> ReconcileResult:
    """Reconcile once. ``decide`` is the policy's decision step or a manual command's.

    Raises what the ports raise; the caller decides when to retry.
    """
    # 1. Observe: gather all facts once, by a clock without steps. No later step reads the cluster to decide.
    clock = SteadyClock(world.clock, memory.clock, memory.last_recorded, slews=not _timer_runs(memory, policy))
    world = replace(world, clock=clock)
    observed = gather(world, policy, memory, rebalance_input.loads)
    snapshot, now = observed.snapshot, observed.snapshot.now

    # 2. Judge every broker, then decide which may lead, and which is held. "Unknown" is a verdict and moves
    # nothing.
    context = Context(snapshot, judge(snapshot, policy, memory.verdicts), policy).with_rankings(memory.rankings)
    decisions = decide(context)
    quarantines = decide_quarantines(context, decisions.demoted, decisions.to_hold)

    # 3. Plan: the order every partition should have. Moves that a guard refuses stay in the plan, with their
    # reason. The next wave of an approved rebalance plan changes baselines first.
    problem = rebalance_problem(context, decisions.demoted) if rebalance_input.wants_problem else None
    progress = apply_next_wave(rebalance_input, context, decisions)
    context = context.with_snapshot(record=progress.record)
    last = memory.report
    plan = build_plan(context, decisions, last.plan if last is not None else None)
    election = plan_preferred_election(observed.rounds, context, plan)
    elections_due = (election.moves if election is not None else ()) or leaders_of_released(context, plan)
    if elections_due:
        plan = replace(plan, moves=(*plan.moves, *elections_due), inputs=None)

    # 4. Quarantine orders first: their end must not wait for moves. Then elect: batch by batch, each checked again with
    # a fresh read. In Observe mode or suspended, orders end and nothing is moved; only what a late request of ours
    # has set moving is cancelled. What recovery found is kept, so that another tool's order is not lost when the set of
    # replicas changes next.
    world.quarantine_orders.keep(quarantines.orders)
    orders_changed = quarantine_changes(snapshot.quarantine_orders, quarantines.orders)
    result, checks, elections = ExecutionResult(), observed.checks, memory.elections
    overwritten: OverwrittenOrders = {}
    if policy.acts:
        world.clusters.avoid(replace(memory, verdicts=context.verdicts).suspects | set(decisions.demoted))
        occasion, approved_by = rebalance_input.occasion, rebalance_input.approved_by
        entry = begin_entry(context, memory.record, plan, progress, occasion, approved_by, orders_changed)
        execution = execute(plan, progress.record, policy, world, observed.recovered.strays, entry)
        result, record = execution.result, execution.record
        if execution.elected:
            elections = (*elections, execution.election_seconds)[-MOVES_KEPT:]
        if execution.unanswered and execution.asked is not None:
            checks = after_sending(checks, execution.asked)
    else:
        record, overwritten = set_aside(memory.record, observed.recovered.record)
        world.records.save(record)
        result = cancel_strays(observed.recovered.strays, record, world)
        if (ended := quarantine_entry(snapshot, orders_changed)) is not None:
            world.trail.conclude(ended)

    # 5. Report. The same input makes the same bytes.
    rounds = balance = None
    if election is not None:
        rounds = election.done(result.elected, now)
        balance = PreferredElectionStatus(election.imbalance, rounds.auto, rounds.last, election.again_seconds)
    before = kept_from_leading(memory.record, snapshot.quarantine_orders)
    kept = kept_from_leading(record, quarantines.orders)
    flaps = count_flaps(snapshot.flaps, before, kept, now, policy.promotion.flap_window_seconds)
    context = context.with_snapshot(flaps=flaps)
    said = report(context, plan, result, observed.recovered.notes, progress, quarantines, balance, last)
    harm_history = snapshot.harm_history.after({broker: v.harm for broker, v in context.verdicts.items()})
    said = replace(said, elections=elections, harm_history=harm_history)
    after = replace(
        memory,
        record=record,
        overwritten=overwritten,
        verdicts=context.verdicts,
        refused=remember_refusals(snapshot, result.refused_orders, result.refused_elections, plan.targets),
        flaps=flaps,
        clock=clock.reading,
        known_good={**decisions.log_dirs.known_good, **decisions.links.known_good, **quarantines.known_good},
        quarantine_orders=quarantines.orders,
        rounds=rounds,
        floors=observed.floors,
        log_dirs=observed.log_dirs,
        hosts=observed.hosts,
        checks=checks,
        elections=elections,
        harm_history=harm_history,
        recovered=observed.recovered,
        rankings=context.rankings,
        report=said,
    )
    return ReconcileResult(said, after, problem)


def _timer_runs(memory: Memory, policy: Policy) -> bool:
    held = any(order.active for order in memory.quarantine_orders.values())
    return held or memory.report is None or bool(timer_delays(memory.report, policy))
