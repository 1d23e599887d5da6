"""External operations that a policy waits for, such as reassignments or Strimzi's, summed up in one condition.

In: plan, held partitions and the result of a wave. Out: what waits for which operation, with a reason and a few names;
None where nothing waits. Called by ``policy_conditions``. ``docs/placement/coexistence.md`` has the whole table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bellwether.core.listing import few, named
from bellwether.core.model.refusals import Hold
from bellwether.core.model.strimzi import Blocker
from bellwether.core.planning.plan import Plan
from bellwether.core.reasons import Reason
from bellwether.core.waves.rebalance_waves import WaveResult

NAMED = 3
"""How many partitions or brokers a message names for each reason."""

EXTERNAL_REASONS = (Reason.EXTERNAL_OPERATION, Reason.REASSIGNING, Reason.ORDER_OVERWRITTEN)
"""Reasons of external operations, the most far-reaching first."""


def waiting_for_external_operations(
    plan: Plan, held: Iterable[Hold], progress: WaveResult | None, operation: Blocker | None = None
) -> Blocker | None:
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
    return Blocker(found[0][0], "; ".join(text for _, text in found))


def _brokers(plan: Plan, reason: Reason) -> Iterable[str]:
    brokers = {h.broker for h in plan.decisions.held if h.reason is reason}
    brokers |= {b for b, wait in plan.decisions.waits.items() if wait.reason is reason}
    if brokers:
        yield named(sorted(brokers), NAMED)


def _partitions(held: Sequence[Hold]) -> Iterable[str]:
    if held:
        first = sorted((h.topic, h.key.partition) for h in held)
        noun = "partition" if len(held) == 1 else "partitions"
        yield f"{len(held)} {noun} ({few([f'{topic}-{index}' for topic, index in first], NAMED)})"
