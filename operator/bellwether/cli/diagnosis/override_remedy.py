"""What to do about brokers that a person demoted: who did it, why, until when, and the command that ends it.

In: BrokerHealth objects. Out: text with the placeholders of ``remedies``. Shown by ``bellwether status``.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.cli.moments import clock
from bellwether.core.detection.health_states import HealthState

NAMED = 5
"""How many brokers the text names; the others are counted."""


def override_remedy(healths: Sequence[BrokerHealth]) -> str:
    """Remedy for brokers with an override; empty if none of them has one."""
    overridden = [health for health in healths if health.spec.override is not None]
    texts = [_remedy(health) for health in overridden[:NAMED]]
    if len(healths) > 1:
        texts = [f"broker {health.spec.broker_id} is {text}" for health, text in zip(overridden, texts, strict=False)]
    if (more := len(overridden) - NAMED) > 0:
        texts.append(f"and {more} more broker{'' if more == 1 else 's'}")
    return "; ".join(texts)


def _remedy(health: BrokerHealth) -> str:
    override, verdict, broker = health.spec.override, health.status.verdict, health.spec.broker_id
    if override is None:
        return ""
    by = f" by {override.by}" if override.by else ""
    until = f" until {clock(override.until)}" if override.until is not None else " without an end"
    text = f"demoted{by}{until}: {override.reason}"
    state = verdict.state if verdict is not None else HealthState.UNKNOWN
    command = f"`bellwether release {broker} --policy NAME -n NAMESPACE`"
    if state is HealthState.HEALTHY:
        return f"{text}; it is healthy: {command} lets it lead"
    if state is HealthState.UNKNOWN:
        return f"{text}; its health is not known: {command} lets it lead nevertheless"
    reason = f" ({verdict.reason})" if verdict is not None else ""
    return f"{text}; it is {state}{reason}: after {command} it stays demoted until it is healthy"
