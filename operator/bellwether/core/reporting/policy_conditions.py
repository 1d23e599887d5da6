"""Conditions of a policy: whether it is ready, settled, contested, held, waiting for external operations.

In: the context, plan and execution result. Out: conditions with the reasons and messages of the decisions, no times.
Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bellwether.core.condition import Condition
from bellwether.core.detection.context import Context
from bellwether.core.detection.findings import recent
from bellwether.core.detection.producer_acks import producer_acks_condition
from bellwether.core.doctor.risks import RiskSummary
from bellwether.core.execution.reorder_checks import ExecutionResult
from bellwether.core.listing import few, named
from bellwether.core.model.loads import loads_missing_message
from bellwether.core.model.rack_ranking import LeadersOutsidePreferredRacks
from bellwether.core.model.refusals import Hold, Refusal
from bellwether.core.planning.plan import Plan
from bellwether.core.reasons import Reason
from bellwether.core.reporting.broker_report import BrokerReport
from bellwether.core.reporting.readiness import PolicyState, ready
from bellwether.core.signals import Reading, SignalType
from bellwether.core.waves.rebalance_waves import WaveResult

WARNINGS_NAMED = 5
"""How many warnings about racks a message contains; the others are counted."""


def policy_conditions(
    context: Context,
    plan: Plan,
    result: ExecutionResult,
    held: tuple[Hold, ...],
    would: tuple[int, ...],
    brokers: tuple[BrokerReport, ...],
    risks: RiskSummary,
    progress: WaveResult | None = None,
) -> tuple[Condition, ...]:
    """Conditions of the policy. ``held`` are held partitions, ``would`` the brokers it would demote if it acted."""
    others = (
        _settled(plan, result, held, context),
        _contested(held),
        _held(plan),
        *_placement(context),
        *_unmeasured(context),
        *_waiting(plan, held, progress, context.snapshot.external_operation),
    )
    return (ready(PolicyState(context, plan, result, brokers, risks, others, would)), *others)


def _unmeasured(context: Context) -> Iterable[Condition]:
    """Conditions for settings that measurements contradict or do not reach; none where there is nothing to measure."""
    if (acks := producer_acks_condition(context)) is not None:
        yield acks
    if context.policy.detection.canary.enabled:
        yield _canary(context)
    text = loads_missing_message(context.policy.demotion.capacity, context.snapshot.loads)
    if text is not None:
        yield Condition("LoadsAvailable", False, Reason.NO_EVIDENCE, text)


def _canary(context: Context) -> Condition:
    """Whether the canary measures each live broker from anywhere; what fails is measured, and counts elsewhere."""
    settings, readings, why = context.policy.detection.canary, dict[int, set[Reading]](), dict[int, str]()
    for signal in context.snapshot.signals:
        counts = signal.type == SignalType.CANARY and signal.broker in context.snapshot.cluster.live
        if counts and recent(signal, settings.stale_after_seconds):
            readings.setdefault(signal.broker, set()).add(signal.reading)
            why[signal.broker] = signal.message
    if not readings:
        text = "no canary prober reports: run bellwether probe canary at each vantage"
        return Condition("CanaryAvailable", None, Reason.NO_EVIDENCE, text)
    blank = sorted(broker for broker, said in readings.items() if said == {Reading.UNKNOWN})
    if not blank:
        return Condition("CanaryAvailable", True, Reason.UP_TO_DATE, f"topic {settings.topic} measures every broker")
    text = f"{named(blank)}: {why[blank[0]]} (spec.detection.canary.topic is {settings.topic}); nothing is moved for it"
    return Condition("CanaryAvailable", False, Reason.NO_EVIDENCE, text[:1024])


def _placement(context: Context) -> tuple[Condition, ...]:
    """``PlacementFits`` and ``PlacementMet``."""
    rankings = context.rankings
    if rankings is None or not context.snapshot.cluster.partitions:
        return ()
    return (_fits(rankings.warnings), _met(rankings.leaders_outside))


def _fits(found: tuple[Refusal, ...]) -> Condition:
    if not found:
        text = "every preferred rack has brokers, and every rule has topics"
        return Condition("PlacementFits", True, Reason.UP_TO_DATE, text)
    more = f"; and {len(found) - WARNINGS_NAMED} more" if len(found) > WARNINGS_NAMED else ""
    text = "; ".join(warning.message for warning in found[:WARNINGS_NAMED]) + more
    return Condition("PlacementFits", False, found[0].reason, text)


def _met(found: LeadersOutsidePreferredRacks) -> Condition:
    if not found.leaders:
        text = "every partition is led from the most preferred rack that has a replica of it"
        return Condition("PlacementMet", True, Reason.UP_TO_DATE, text)
    text = (
        f"{found.leaders} of {found.of} partitions are led from a less preferred rack than one that has a replica of"
        f" them, for example {found.first}"
    )
    return Condition("PlacementMet", False, Reason.OTHER_RACKS_LEAD, text)


def _waiting(
    plan: Plan, held: tuple[Hold, ...], progress: WaveResult | None, operation: Refusal | None
) -> Iterable[Condition]:
    """Condition for external operations that the policy waits for; none where nothing waits."""
    waiting = waiting_for_external_operations(plan, held, progress, operation)
    if waiting is not None:
        yield Condition("WaitingForExternalOperation", True, waiting.reason, waiting.message[:1024])


def _settled(plan: Plan, result: ExecutionResult, held: tuple[Hold, ...], context: Context) -> Condition:
    if result.stopped is not None:
        return Condition("Settled", False, result.stopped.reason, result.stopped.message)
    if not plan.empty and not context.policy.acts:
        text = f"{len(plan.moves)} partitions would be moved. {context.policy.inactivity}"
        return Condition("Settled", False, Reason.NOT_ENFORCING, text)
    if not plan.empty:
        return Condition("Settled", False, Reason.LEADERS_MOVING, f"{len(plan.moves)} partitions are being moved")
    waves = sorted(plan.decisions.returning.items())
    coming = [f"{b} ({wave.share} %)" for b, wave in waves if b in context.snapshot.cluster.live]
    if coming:
        text = f"leaders are restored in waves to brokers {', '.join(coming)}"
        return Condition("Settled", False, Reason.RESTORING_IN_WAVES, text[:1024])
    if held:
        counts = Counter(h.reason for h in held)
        text = ", ".join(f"{n} {r}" for r, n in sorted(counts.items()))
        why = context.snapshot.cluster.immovable
        text = f"partitions not moved: {text}{f': {why}' if why else ''}"
        return Condition("Settled", True, Reason.MOVES_BLOCKED, text[:1024])
    text = "Every partition has the intended replica order and leader."
    return Condition("Settled", True, Reason.UP_TO_DATE, text)


def _contested(held: tuple[Hold, ...]) -> Condition:
    contested = [h for h in held if h.reason is Reason.ORDER_OVERWRITTEN]
    if contested:
        topic = contested[0].topic
        text = f"another tool changed the order of {len(contested)} partitions, for example of topic {topic}"
        return Condition("Contested", True, Reason.ORDER_OVERWRITTEN, text)
    text = "no other tool is changing the replica order of managed partitions"
    return Condition("Contested", False, Reason.UP_TO_DATE, text)


def _held(plan: Plan) -> Condition:
    if held := plan.decisions.held:
        texts: dict[str, list[int]] = {}
        for hold in held:
            texts.setdefault(hold.message, []).append(hold.broker)
        text = "; ".join(f"{named(sorted(brokers))}: {message}" for message, brokers in texts.items())
        return Condition("DemotionBlocked", True, held[0].reason, text[:1024])
    return Condition("DemotionBlocked", False, Reason.UP_TO_DATE, "no demotion or promotion is blocked")


OPERATIONS_NAMED = 3
"""How many partitions or brokers a message names for each external operation."""

EXTERNAL_REASONS = (Reason.EXTERNAL_OPERATION, Reason.REASSIGNING, Reason.ORDER_OVERWRITTEN)
"""Reasons of external operations, the most far-reaching first."""


def waiting_for_external_operations(
    plan: Plan, held: Iterable[Hold], progress: WaveResult | None, operation: Refusal | None = None
) -> Refusal | None:
    """The most far-reaching reason, and what waits for which operation; None if nothing does.

    ``operation`` is the operation in progress, to name it.
    """
    partitions: dict[Reason, list[Hold]] = {}
    for hold in held:
        if hold.reason in EXTERNAL_REASONS:
            partitions.setdefault(hold.reason, []).append(hold)
    found = []
    for reason in EXTERNAL_REASONS:
        waits = list(_brokers(plan, reason))
        waits += _partitions(partitions.get(reason, ()))
        if progress is not None and progress.waits is not None and progress.waits.reason is reason:
            waits.append("the next wave of the load plan")
        if waits:
            case = f" ({operation.message})" if operation is not None and operation.reason is reason else ""
            found.append((reason, f"{reason}: {', '.join(waits)}{case}"))
    if not found:
        return None
    return Refusal(found[0][0], "; ".join(text for _, text in found))


def _brokers(plan: Plan, reason: Reason) -> Iterable[str]:
    brokers = {h.broker for h in plan.decisions.held if h.reason is reason}
    brokers |= {b for b, wait in plan.decisions.waits.items() if wait.reason is reason}
    if brokers:
        yield named(sorted(brokers), OPERATIONS_NAMED)


def _partitions(held: Sequence[Hold]) -> Iterable[str]:
    if held:
        first = sorted((h.topic, h.key.partition) for h in held)
        noun = "partition" if len(held) == 1 else "partitions"
        yield f"{len(held)} {noun} ({few([f'{topic}-{index}' for topic, index in first], OPERATIONS_NAMED)})"
