"""What most producers wait for: the policy's setting, or what Kafka's remote time of produce requests proves.

In: the context with the signals of Prometheus rules that show acks. Out: the acks that cures are chosen by, and the
condition ``ProducerAcksFit``. Pure. Kafka counts as remote time how long a produce request waits for followers: with
``acks=1`` it is 0 (RequestChannel.updateRequestMetrics), so a median above 0 proves ``acks=all``. A median of 0 proves
nothing: Kafka rounds to milliseconds, and a partition with one replica waits for no follower.
"""

from __future__ import annotations

from bellwether.core.condition import Condition
from bellwether.core.detection.context import Context
from bellwether.core.detection.findings import fresh
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import ProducerAcks
from bellwether.core.signals import Reading, Signal, SignalType

_FIELD = "spec.demotion.producerAcks"


def producer_acks(context: Context) -> ProducerAcks:
    """The acks that cures are chosen by: the policy's, unless a fresh figure of any broker proves ``acks=all``."""
    waiting = any(s.reading is Reading.FAILING for s in _measured(context))
    return ProducerAcks.ALL if waiting else context.policy.demotion.producer_acks


def producer_acks_condition(context: Context) -> Condition | None:
    """``ProducerAcksFit``; None where the policy has no rule that shows acks."""
    rules, set_to = context.policy.detection.acks_rules, context.policy.demotion.producer_acks
    if not rules:
        return None
    said = _measured(context)
    worst = max(
        (s for s in said if s.reading is Reading.FAILING), key=lambda s: (s.value or 0, -s.broker), default=None
    )
    if worst is not None and set_to is ProducerAcks.ONE:
        figure = f" (median {worst.value:.3g} ms)" if worst.value is not None else ""
        text = (
            f"{_FIELD} is One, and produce requests to broker {worst.broker} wait for followers{figure}, as only"
            " acks=all does: slow brokers are treated as with All. Set it to All"
        )
        return Condition("ProducerAcksFit", False, Reason.ACKS_CONTRADICTED, text)
    if worst is not None or (said and set_to is ProducerAcks.ONE):
        return Condition("ProducerAcksFit", True, Reason.UP_TO_DATE, f"what Kafka measures fits {_FIELD} ({set_to})")
    why = "is at no broker above its threshold, which proves no acks" if said else "has no fresh value"
    text = f"Prometheus rule {', '.join(sorted(rules))} {why}; {_FIELD} ({set_to}) applies"
    return Condition("ProducerAcksFit", None, Reason.NO_EVIDENCE, text)


def _measured(context: Context) -> list[Signal]:
    """Fresh remote times of live brokers."""
    rules, live = context.policy.detection.acks_rules, context.snapshot.cluster.live
    own = (s for s in context.snapshot.signals if s.type == SignalType.PROMETHEUS and s.source in rules)
    return [s for s in own if s.broker in live and fresh(s, rules[s.source])]
