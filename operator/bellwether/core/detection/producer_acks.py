"""What most producers wait for: the policy's setting, or what Kafka's remote time of produce requests proves.

In: the context with the signals of Prometheus rules that show acks. Out: the acks that cures are chosen by, and the
condition ``ProducerAcksFit``. Pure. Kafka counts as remote time how long a produce request waits for followers: with
``acks=1`` it is 0 (RequestChannel.updateRequestMetrics), so a median above 0 proves ``acks=all``. A median of 0 proves
nothing: Kafka rounds to milliseconds, and a partition with one replica waits for no follower.
"""

from __future__ import annotations

from collections.abc import Mapping

from bellwether.core.detection.context import Context
from bellwether.core.detection.findings import fresh
from bellwether.core.model.condition import Condition
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import ProducerAcks
from bellwether.core.signals import Reading, Signal, SignalType

_FIELD = "spec.demotion.producerAcks"


def producer_acks(context: Context) -> ProducerAcks:
    """The acks that cures are chosen by: the policy's, unless a fresh figure of any broker proves ``acks=all``."""
    waiting = any(s.reading is Reading.FAILING for s in _measured(context).values())
    return ProducerAcks.ALL if waiting else context.policy.demotion.producer_acks


def producer_acks_condition(context: Context) -> Condition | None:
    """``ProducerAcksFit``; None where the policy has no rule that shows acks."""
    rules, said, set_to = context.policy.detection.acks_rules, _measured(context), context.policy.demotion.producer_acks
    if not rules:
        return None
    waiting = sorted(
        (s for s in said.values() if s.reading is Reading.FAILING), key=lambda s: (-(s.value or 0), s.broker)
    )
    if not said:
        text = f"Prometheus rule {', '.join(sorted(rules))} has no fresh value; {_FIELD} ({set_to}) applies"
        return Condition("ProducerAcksFit", None, Reason.NO_EVIDENCE, text)
    if not waiting and set_to is ProducerAcks.ALL:
        text = f"the median remote time of produce requests is 0 ms, which proves no acks; {_FIELD} ({set_to}) applies"
        return Condition("ProducerAcksFit", None, Reason.NO_EVIDENCE, text)
    if not waiting or set_to is ProducerAcks.ALL:
        return Condition("ProducerAcksFit", True, Reason.UP_TO_DATE, f"what Kafka measures fits {_FIELD} ({set_to})")
    first = waiting[0]
    figure = f" (median {first.value:.3g} ms)" if first.value is not None else ""
    text = (
        f"{_FIELD} is One, and produce requests to broker {first.broker} wait for followers{figure}, as only acks=all"
        " does: slow brokers are treated as with All. Set it to All"
    )
    return Condition("ProducerAcksFit", False, Reason.ACKS_CONTRADICTED, text)


def _measured(context: Context) -> Mapping[int, Signal]:
    """Fresh remote times, by broker; the one beyond its threshold where several rules measure them."""
    detection, live = context.policy.detection, context.snapshot.cluster.live
    patience, rules, found = detection.prometheus.stale_after_seconds, detection.acks_rules, dict[int, Signal]()
    if not rules:
        return found
    for signal in context.snapshot.signals:
        counts = signal.type == SignalType.PROMETHEUS and signal.source in rules and signal.broker in live
        if counts and fresh(signal, patience) and (signal.broker not in found or signal.reading is Reading.FAILING):
            found[signal.broker] = signal
    return found
