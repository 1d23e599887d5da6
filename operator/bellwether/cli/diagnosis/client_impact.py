"""What clients suffer now, in words: from brokers that lead and should not, and from slow ones that acks=all waits for.

In: BrokerHealth objects and their policy. Out: lines of text. Called by ``status`` and ``doctor``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.status_conditions import Condition, condition, true_condition
from bellwether.core.detection.health_states import SHOULD_NOT_LEAD
from bellwether.core.doctor.unhealthy_leaders import ACKS_ALL_FIGURES
from bellwether.core.listing import counted
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import QuarantineMode

SHOWN = 5
_CANNOT: Mapping[str, str] = {
    Reason.EXTERNALLY_UNREACHABLE: "external clients cannot read or write",
    Reason.FREEZING: "while it freezes no client can read or write",
    Reason.NOT_FENCED_IN_TIME: "no client can read or write",
    Reason.UNREACHABLE: "no client can read or write",
    Reason.STORAGE_SLOW: "writes fail or are slow in",
    Reason.READS_SLOW: "reads fail or are slow in",
}


def impact(brokers: Iterable[BrokerHealth], policy: LeadershipPolicy) -> Iterator[str]:
    """One line for each broker by which clients suffer: first those that lead, the one with the most leaders first."""
    known = sorted(brokers, key=lambda health: -(health.status.leaders or 0))
    leading = ((h, text) for h in known if (text := _leading(h)))
    lines = [*leading, *((h, _held_back(h, policy)) for h in known if holds_back(h) is not None)]
    yield from (text for _, text in lines[:SHOWN])
    named, whole = ({h.spec.broker_id for h, _ in some} for some in (lines[:SHOWN], lines))
    if more := len(whole - named):
        options = f"--policy {policy.metadata.name} -n {policy.metadata.namespace}"
        yield f"and {counted(more, 'more broker')}: bellwether doctor {options}"


def _leading(health: BrokerHealth) -> str:
    verdict, led = health.status.verdict, health.status.leaders
    if verdict is None or verdict.state not in SHOULD_NOT_LEAD or not led:
        return ""
    cannot = _CANNOT.get(verdict.reason, "requests fail or are slow in")
    what = "the partition" if led == 1 else f"the {led} partitions"
    return f"{cannot} {what} that broker {health.spec.broker_id} leads"


def holds_back(health: BrokerHealth) -> Condition | None:
    """The condition HoldsBackISR, if acks=all waits for the broker."""
    return true_condition(health.status.conditions, "HoldsBackISR")


def _held_back(health: BrokerHealth, policy: LeadershipPolicy) -> str:
    reason = why_not_held(health, policy).partition(": ")[0]
    why = "it is being held" if held(health) else f"it is not held: {reason}"
    return (
        f"acks=all writes wait for slow broker {health.spec.broker_id} where it is in the ISR, whichever broker leads"
        f" ({ACKS_ALL_FIGURES}); {why}"
    )


def held(health: BrokerHealth) -> bool:
    """Whether the broker is quarantined: it leaves the ISRs at once, or within its session timeout (9 s)."""
    return true_condition(health.status.conditions, "Quarantined") is not None


def why_not_held(health: BrokerHealth, policy: LeadershipPolicy) -> str:
    """Why the process of a slow broker, for which acks=all waits, is not held."""
    if policy.spec.quarantine.to_core().mode is QuarantineMode.OFF:
        return "quarantine is off (spec.quarantine.mode)"
    found = condition(health.status.conditions, "Quarantined")
    if found is None:
        return "only a broker with a slow disk that does not keep up is held (spec.quarantine)"
    return f"{found.reason}: {found.message}"
