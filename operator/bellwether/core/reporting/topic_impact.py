"""Which topics are hit: how many partitions are offline, led by an unhealthy broker, under or at min.insync.replicas.

In: a ``Context`` and the risks of its partitions. Out: ``TopicImpact``s, the worst first. Pure. Called by ``report``.
Topics without such a partition are left out; without a fault no partition is read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from bellwether.core.demotion.log_dirs import in_slow_log_dirs
from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.doctor.risks import OFFLINE, Risk, RiskSummary
from bellwether.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class TopicImpact:
    """Numbers of partitions of one topic; one with an unhealthy leader may be at or under min.insync.replicas, too."""

    topic: str
    partitions: int
    """All partitions of the topic."""
    offline: int = 0
    unhealthy_leader: int = 0
    """Clients do not reach the leader, or it is slow: Sick or Down, Suspect for a reason of ``CLIENTS_SUFFER``, or with
    the replica in a slow log directory.
    """
    under_min_isr: int = 0
    at_min_isr: int = 0


CLIENTS_SUFFER = frozenset({Reason.HARM_BELOW_COST, Reason.SYSTEMIC_CAUSE, Reason.VANTAGE_CONFLICT, Reason.UNREACHABLE})
"""Reasons of a Suspect broker whose clients do not reach it or find it slow; only the decision to move waits."""


def topic_impacts(context: Context, risks: RiskSummary) -> tuple[TopicImpact, ...]:
    """Topics with the most offline partitions, then unhealthy leaders, then under and at ``min.insync.replicas``."""
    cluster = context.snapshot.cluster
    classes: Counter[tuple[str, Risk]] = Counter()
    hurts = OFFLINE | {Risk.UNDER_MIN_ISR, Risk.AT_MIN_ISR}
    classes.update((d.partition.topic, d.risk) for d in risks.at_risk if d.risk in hurts)
    led = _badly_led(context)
    found = [
        TopicImpact(
            topic,
            cluster.topic_sizes[topic],
            sum(classes[topic, risk] for risk in OFFLINE),
            led[topic],
            classes[topic, Risk.UNDER_MIN_ISR],
            classes[topic, Risk.AT_MIN_ISR],
        )
        for topic in {*led, *(topic for topic, _ in classes)}
    ]
    return tuple(
        sorted(found, key=lambda t: (-t.offline, -t.unhealthy_leader, -t.under_min_isr, -t.at_min_isr, t.topic))
    )


def _badly_led(context: Context) -> Counter[str]:
    """Partitions by topic whose leader clients do not reach or find slow."""
    cluster, slow = context.snapshot.cluster, in_slow_log_dirs(context)
    suspect = {b for b, v in context.verdicts.items() if v.state is HealthState.SUSPECT and v.reason in CLIENTS_SUFFER}
    unhealthy = context.sick_or_down | suspect
    if not any(cluster.leader_counts.get(broker) for broker in (*unhealthy, *slow)):
        return Counter()
    in_slow = {(broker, key) for broker, keys in slow.items() for key in keys}
    return Counter(p.topic for p in cluster.partitions if p.leader in unhealthy or (p.leader, p.key) in in_slow)
