"""What a log directory and a link between two brokers share: which new ones may be demoted, and when one returns.

In: the context, and what is known of each part. Out: the parts that are admitted and a refusal for each of the others;
the seconds that a part is known to be good. Called by ``log_dirs`` and ``links``. A part follows the rules of a broker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from bellwether.core.demotion.cap import BY_OVERRIDE, cap_reached, dwell_left
from bellwether.core.detection.context import Context
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.refusals import Refusal
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import PromotionMode

Part = TypeVar("Part")


@dataclass(frozen=True)
class AdmittedParts(Generic[Part]):
    """Parts that may be demoted now, those that may not with the reason, and seconds of dwell time left by broker."""

    parts: list[Part] = field(default_factory=list)
    refused: list[tuple[Part, Refusal]] = field(default_factory=list)
    dwelling: dict[int, float] = field(default_factory=dict)


def admit_parts(
    new: Iterable[Part],
    brokers: Callable[[Part], Collection[int]],
    counted: Collection[int],
    context: Context,
    *,
    shared: str | None,
    refusal: Callable[[Part], Refusal | None] = lambda _: None,
    how: str,
    beyond: str = BY_OVERRIDE,
) -> AdmittedParts[Part]:
    """Invariant 4. A part needs room in the cap, by its first broker, next to those ``counted``; it uses up none of it
    for a broker that is sick as a whole.

    ``shared`` says that they have a shared cause, ``refusal`` what else is against a part; ``how`` and ``beyond`` are
    for the message about the cap.
    """
    found, affected = AdmittedParts[Part](), set(counted)
    cap = context.policy.demotion.cap(len(context.snapshot.cluster.named))
    for part in new:
        at = brokers(part)
        first = min(at)
        against = Refusal(Reason.SYSTEMIC_CAUSE, shared) if shared is not None else refusal(part)
        if against is None and first not in affected and len(affected) >= cap:
            against = Refusal(Reason.CAP_REACHED, cap_reached(affected, how, context, beyond=beyond))
        if against is not None:
            found.refused.append((part, against))
        elif left := max(dwell_left(context.verdicts[broker], context) for broker in at):
            found.dwelling.update(dict.fromkeys(at, left))
        else:
            found.parts.append(part)
            affected.add(first)
    return found


def by_partition(brokers: Iterable[tuple[Iterable[PartitionKey], Iterable[int]]]) -> dict[PartitionKey, frozenset[int]]:
    """Brokers that may not lead a partition, by partition, from what several parts keep from leading."""
    found: defaultdict[PartitionKey, frozenset[int]] = defaultdict(frozenset)
    for keys, here in brokers:
        for key in keys:
            found[key] |= frozenset(here)
    return dict(found)


def return_blocker(context: Context, where: str = "") -> Refusal | None:
    """What keeps a part from returning that was good for long enough; ``where`` says at which broker to override."""
    if context.policy.promotion.mode is PromotionMode.MANUAL:
        text = f"set spec.override.state to Promoted{where} to restore leaders"
        return Refusal(Reason.PROMOTION_MANUAL, text)
    return context.deferral
