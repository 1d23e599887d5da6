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
from bellwether.core.execution.recovery import RecoveredRecord, set_aside
from bellwether.core.execution.reorder_checks import ExecutionResult, seen_late
from bellwether.core.model.history.flap_damping import count_flaps, kept_from_leading
from bellwether.core.model.history.move_cost import MOVES_KEPT
from bellwether.core.model.quarantine_order import quarantine_changes
from bellwether.core.planning.plan import Plan, build_plan
from bellwether.core.planning.preferred_election import leaders_of_released, plan_preferred_election
from bellwether.core.quarantine.hold_decision import decide_quarantines
from bellwether.core.reporting.audit import AuditEntry, begin_entry, quarantine_entry
from bellwether.core.reporting.report import Report, report
from bellwether.core.settings.policy import Policy
from bellwether.core.waves.approved_plan import RebalanceInput
from bellwether.core.waves.rebalance_waves import apply_next_wave
from bellwether.execute import cancel_strays, execute, save
from bellwether.gather import Memory, gather
from bellwether.ports.rebalance import ProblemSnapshot
from bellwether.ports.world import World
from bellwether.steady_clock import SteadyClock

NOTHING = RebalanceInput()


@dataclass(frozen=True)
class ReconcileResult:
    """Result of one reconcile: the report, the memory for the next one, and a snapshot where one was wanted."""

    report: Report
    memory: Memory
    snapshot: ProblemSnapshot | None = None


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
    clock = SteadyClock(world.clock, memory.clock, memory.last_recorded, slews=not memory.timer_runs(policy))
    world = replace(world, clock=clock)
    snapshot, recovered, memory = gather(world, policy, memory, rebalance_input.loads)

    # 2. Judge every broker, then decide which may lead, and which is held. "Unknown" is a verdict and moves
    # nothing.
    context = Context(snapshot, judge(snapshot, policy, memory.verdicts), policy).with_rankings(memory.rankings)
    decisions = decide(context)
    quarantines = decide_quarantines(context, decisions.demoted, decisions.to_hold)

    # 3. Plan: the order every partition should have. Moves that a guard refuses stay in the plan, with their
    # reason. The next wave of an approved rebalance plan changes baselines first.
    wanted = ProblemSnapshot(context, decisions.demoted) if rebalance_input.wants_snapshot else None
    progress = apply_next_wave(rebalance_input, context, decisions)
    context = context.with_snapshot(record=progress.record)
    last = memory.report
    plan = build_plan(context, decisions, last.plan if last is not None else None)
    election = plan_preferred_election(memory.rounds, context, plan)
    elections_due = (election.moves if election is not None else ()) or leaders_of_released(context, plan)
    if elections_due:
        plan = replace(plan, moves=(*plan.moves, *elections_due), inputs=None)

    # 4. Quarantine orders first: their end must not wait for moves. Then elect: batch by batch, each checked again with
    # a fresh read.
    world.quarantine_orders.keep(quarantines.orders)
    changes = quarantine_changes(snapshot.quarantine_orders, quarantines.orders)
    before = kept_from_leading(memory.record, snapshot.quarantine_orders)
    late, unseen = seen_late(memory.unseen_elections, snapshot.cluster, snapshot.now)
    memory = replace(memory, unseen_elections=unseen)
    if policy.acts:
        occasion, approved_by = rebalance_input.occasion, rebalance_input.approved_by
        entry = begin_entry(context, memory.record, plan, progress, occasion, approved_by, changes)
        result, memory = _act(world, context, plan, recovered, memory, entry)
    else:
        result, memory = _end_actions(world, recovered, memory, quarantine_entry(snapshot, changes))

    # 5. Report. The same input makes the same bytes.
    kept = kept_from_leading(memory.record, quarantines.orders)
    flaps = count_flaps(snapshot.flaps, before, kept, snapshot.now, policy.promotion.flap_window_seconds)
    context = context.with_snapshot(flaps=flaps)
    elected = election.done(result.elected, snapshot.now) if election is not None else None
    result = replace(result, elected=result.elected + late)
    said = report(context, plan, result, recovered.notes, progress, quarantines, elected, last, memory.elections)
    return ReconcileResult(said, memory.after(said, context, quarantines), wanted)


def _act(
    world: World, context: Context, plan: Plan, recovered: RecoveredRecord, memory: Memory, entry: AuditEntry | None
) -> tuple[ExecutionResult, Memory]:
    """Execute the plan; the memory has the record as stored, how long elections took, and which checks begin again."""
    world.clusters.avoid(replace(memory, verdicts=context.verdicts).suspects | set(plan.decisions.demoted))
    done = execute(plan, context.snapshot.record, context.policy, world, recovered.strays, entry)
    unseen = {key: one for key, one in memory.unseen_elections.items() if key not in done.led} | done.unseen
    elections, checks = memory.elections, after_sending(memory.checks, done.unproven)
    if done.led:
        elections = (*elections, done.election_seconds)[-MOVES_KEPT:]
    memory = replace(memory, record=done.record, overwritten={}, checks=checks, elections=elections)
    return replace(done.result, elected=len(done.led)), replace(memory, unseen_elections=unseen)


def _end_actions(
    world: World, recovered: RecoveredRecord, memory: Memory, entry: AuditEntry | None
) -> tuple[ExecutionResult, Memory]:
    """In Observe mode or suspended nothing is moved; only what a late request of ours has set moving is cancelled.

    What recovery found is kept, so that another tool's order is not lost when the set of replicas changes next.
    """
    record, overwritten = set_aside(memory.record, recovered.record)
    save(record, world)
    done = cancel_strays(recovered.strays, record, world)
    if entry is not None:
        world.trail.conclude(entry)
    memory = replace(memory, checks=after_sending(memory.checks, done.unproven))
    return done.result, replace(memory, record=done.record, overwritten=overwritten)
